"""What the recorded answers do not show: addresses, selectable fields, accounts, hooks of CRDs."""

import copy
import dataclasses

import pytest

from embedded.tests.unit.registry.rules_world import KINDS, World
from pocketkube.errors import ApiError
from pocketkube.registry.rules import RULES, rules_of
from pocketkube.registry.rules.pods.pods import PODS


def pod_of(**spec) -> dict:
    containers = [{"name": "c", "image": "x"}]
    return {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}


def service_of(name: str, **spec) -> dict:
    spec = {"ports": [{"port": 80}], **spec}
    return {"kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_services_get_addresses_of_their_own():
    world = World()
    found = [world.create(service_of(name))["spec"]["clusterIP"] for name in "abc"]
    assert len(set(found)) == 3
    assert all(address.startswith("10.96.") for address in found)


def test_an_address_that_was_asked_for_is_given_to_no_other():
    world = World()
    first = world.create(service_of("a"))["spec"]["clusterIP"]
    del world.objects["services", "rules", "a"]
    world.create(service_of("b", clusterIP=first))
    assert world.create(service_of("c"))["spec"]["clusterIP"] != first


def test_node_ports_are_given_once_each():
    world = World()
    ports = [{"port": 80, "name": "x"}, {"port": 81, "name": "y"}]
    one = world.create(service_of("a", type="NodePort", ports=ports))
    two = world.create(service_of("b", type="LoadBalancer"))
    found = [port["nodePort"] for obj in (one, two) for port in obj["spec"]["ports"]]
    assert len(set(found)) == 3
    assert all(30000 <= port < 32768 for port in found)


def test_a_service_keeps_its_node_port_when_it_is_not_sent_again():
    world = World()
    old = world.create(service_of("a", type="NodePort"))
    sent = copy.deepcopy(old)
    del sent["spec"]["ports"][0]["nodePort"]
    assert world.update(old, sent)["spec"]["ports"] == old["spec"]["ports"]


def test_a_pod_needs_no_default_account_to_be_there():
    world = World()
    del world.objects["serviceaccounts", "rules", "default"]
    assert world.create(pod_of())["spec"]["serviceAccountName"] == "default"


def test_two_pods_share_nothing_that_admission_added():
    world = World()
    first, second = world.create(pod_of()), world.create(pod_of())
    first["spec"]["tolerations"][0]["tolerationSeconds"] = 1
    first["spec"]["volumes"][0]["projected"]["sources"].clear()
    assert second["spec"]["tolerations"][0]["tolerationSeconds"] == 300
    assert len(second["spec"]["volumes"][0]["projected"]["sources"]) == 3


def test_defaults_of_a_stored_pod_change_nothing():
    pod = World().create(pod_of(volumes=[{"name": "v", "secret": {"secretName": "s"}}]))
    again = copy.deepcopy(pod)
    PODS.defaults(again)
    assert again == pod


def test_pods_are_selected_by_node_phase_and_scheduler():
    pod = World().create(pod_of(nodeName="n", schedulerName="quorate"))
    found = {field: read(pod) for field, read in PODS.selectable.items()}
    assert found == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "quorate",
        "spec.serviceAccountName": "default",
        "spec.hostNetwork": "false",
        "status.phase": "Pending",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    }


def test_fields_of_bare_objects_can_be_selected_by_too():
    bare = {"metadata": {"name": "a"}, "spec": {}}
    for bucket, rules in RULES.items():
        for field, read in rules.selectable.items():
            assert isinstance(read(bare), str), f"{bucket}: {field}"


def test_a_node_is_selected_by_whether_it_is_cordoned():
    read = RULES["nodes"].selectable["spec.unschedulable"]
    assert read({"spec": {"unschedulable": True}}) == "true"
    assert read({"spec": {}}) == "false"


def test_custom_resources_have_a_generation_and_need_a_version_to_be_updated():
    frogs = dataclasses.replace(KINDS["PodGroup"], group="a.b", plural="frogs", crd="frogs.a.b")
    rules = rules_of(frogs)
    assert rules.has_generation
    frog = {"metadata": {"name": "f"}}
    with pytest.raises(ApiError, match=r'frogs.a.b "f" is invalid: metadata.resourceVersion'):
        rules.prepare_update(frog, frog, World())
    rules.prepare_update({"metadata": {"name": "f", "resourceVersion": "7"}}, frog, World())


def test_a_kind_without_rules_has_those_of_all():
    unknown = dataclasses.replace(KINDS["Pod"], bucket="frogs")
    assert rules_of(unknown).selectable == {}
    assert rules_of(unknown).validate({"metadata": {}}) == []


def test_a_gang_of_a_workload_that_goes_is_refused():
    workload = {
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}]},
    }
    world = World(workload)
    found = world.objects["workloads.scheduling.k8s.io", "rules", "w"]
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    spec = {"podGroupTemplateRef": reference, "schedulingPolicy": {"basic": {}}}
    with pytest.raises(ApiError, match="is being deleted"):
        world.create({"kind": "PodGroup", "metadata": {"name": "a"}, "spec": spec})


def test_what_the_secret_holds_has_to_be_base64():
    secret = {"kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "?"}}
    with pytest.raises(ApiError, match="must be base64"):
        World().create(secret)


def test_a_pod_that_goes_gets_no_new_finalizers():
    old = World().create(pod_of())
    old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    sent = copy.deepcopy(old)
    sent["metadata"]["finalizers"] = ["a/b", "c/d"]
    with pytest.raises(ApiError, match="no new finalizers can be added"):
        World().update(old, sent)


def test_a_jobs_empty_pod_failure_policy_is_a_policy():
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "x"}]}}
    spec = {"template": template, "podFailurePolicy": {"rules": []}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}
    with pytest.raises(ApiError, match='only "Never" is supported when podFailurePolicy') as caught:
        World().create({**job, "spec": {**spec, "podReplacementPolicy": "TerminatingOrFailed"}})
    assert "spec.podReplacementPolicy: Unsupported value" in caught.value.message
    template["spec"]["restartPolicy"] = "Never"
    assert World().create(job)["spec"]["podReplacementPolicy"] == "Failed"
    spec["podFailurePolicy"] = {}
    assert World().create(job)["spec"]["podReplacementPolicy"] == "Failed"
