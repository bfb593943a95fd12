"""kubectl where the API server says no, or acts by itself: quotas, limits, webhooks, volumes."""

import json

import pytest

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


def test_a_limit_range_gives_defaults_and_refuses_more_than_its_maximum(kubectl):
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "spec": limits}
    limit_range["metadata"] = {"name": "limits"}
    kubectl("create", "-f", "-", manifest=as_yaml(limit_range))
    kubectl("create", "-f", "-", manifest=as_yaml(pod()))
    shown = kubectl("get", "pod", "solo", "-o", "jsonpath={.spec.containers[0].resources}")
    assert json.loads(shown) == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    large = pod("large")
    large["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}}
    said = kubectl.refused("create", "-f", "-", manifest=as_yaml(large))
    assert "maximum cpu usage per Container is 2, but limit is 3" in said


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_is_away_fails_the_write_unless_its_policy_ignores_that(kubectl, policy):
    name = kubectl.namespace
    hook = {
        "name": "nobody.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
            }
        ],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    kubectl("create", "-f", "-", manifest=as_yaml(configuration))
    written = ("create", "-f", "-")
    if policy == "Fail":
        said = refused_in_time(kubectl, *written)
        assert 'failed calling webhook "nobody.example.com": failed to call webhook: Post' in said
    else:
        kubectl(*written, manifest=as_yaml(config_map(a="1")))
    kubectl("delete", "validatingwebhookconfiguration", name)


def refused_in_time(kubectl, *args: str) -> str:
    """Write until it is refused: a real API server takes a moment to know a new webhook."""
    for number in range(50):
        said = kubectl.run(*args, manifest=as_yaml(config_map(f"m{number}", a="1")))
        if said.code:
            return said.err
    raise AssertionError("the webhook is never called")


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
