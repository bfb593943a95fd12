"""kubectl where the API server says no, or acts by itself: quotas and volumes."""

from embedded.tests.clients.running import WAITS, as_yaml, claim, config_map, pod


def test_a_quota_refuses_what_is_too_much_and_shows_what_is_used(kubectl):
    kubectl("create", "quota", "few", "--hard=pods=1")
    kubectl("wait", "--for=jsonpath={.status.hard.pods}=1", "resourcequota/few", WAITS)
    kubectl("create", "-f", "-", manifest=as_yaml(pod()))
    said = kubectl.refused("create", "-f", "-", manifest=as_yaml(pod("more")))
    assert said == (
        'Error from server (Forbidden): error when creating "STDIN": pods "more" is forbidden: '
        "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
    )
    kubectl("delete", "pod", "solo", "--force")
    kubectl("wait", "--for=jsonpath={.status.used.pods}=0", "resourcequota/few", WAITS)
    kubectl("create", "-f", "-", manifest=as_yaml(pod("more")))


def test_a_claim_is_bound_to_a_volume_and_the_volume_is_released_with_it(kubectl):
    disk = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": kubectl.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/disk"},
            "storageClassName": kubectl.namespace,
        },
    }
    data = claim()
    data["spec"]["storageClassName"] = kubectl.namespace
    kubectl("create", "-f", "-", manifest=as_yaml(disk, data))
    kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", WAITS)
    shown = kubectl("get", "pvc", "data", "--no-headers")
    assert shown.split()[:4] == ["data", "Bound", kubectl.namespace, "1Gi"]
    kubectl("delete", "pvc", "data", WAITS)
    phase = "--for=jsonpath={.status.phase}=Released"
    kubectl("wait", phase, f"pv/{kubectl.namespace}", WAITS)
    kubectl("delete", "pv", kubectl.namespace, WAITS)


def test_apply_takes_a_list_and_says_what_an_unknown_kind_needs(kubectl):
    maps = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    assert kubectl("apply", "-f", "-", manifest=as_yaml(maps)).splitlines() == [
        "configmap/a created",
        "configmap/b created",
    ]
    unknown = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    unknown |= {"metadata": {"name": "x"}, "spec": {}}
    said = kubectl.refused("apply", "-f", "-", manifest=as_yaml(unknown))
    assert 'no matches for kind "JobSet" in version "jobset.x-k8s.io/v1alpha2"' in said
    assert "ensure CRDs are installed first" in said


def test_who_may_not_ask_for_an_unknown_kind_learns_just_that(kubectl):
    nobody = f"system:serviceaccount:{kubectl.namespace}:default"
    said = kubectl.refused("get", "--raw", "/apis/nobody.example.com/v1/things", f"--as={nobody}")
    assert "(Forbidden)" in said
    said = kubectl.refused("get", "--raw", "/apis/nobody.example.com/v1/things")
    assert "(NotFound)" in said
