"""The API as calls: names, versions, deletion, policies, definitions. Pure: no HTTP, no clock."""

import pytest

from embedded.tests.unit.api.api_world import World, refused
from pocketkube.api.checking import checked
from pocketkube.api.writing import Patch, Writing


@pytest.fixture
def world() -> World:
    return World()


def test_a_generated_name_that_is_taken_is_drawn_again(world):
    resource = world.named("v1", "configmaps")
    names = set()
    for seed in (1, 1, 1):
        world.api._chance.seed(seed)
        made = world.api.create(resource, "a", {"metadata": {"generateName": "x-"}})
        names.add(made["metadata"]["name"])
    assert len(names) == 3


def test_finalizers_hold_a_deletion_until_the_last_is_gone(world):
    made = world.create("v1", "configmaps", {"metadata": {"name": "x", "finalizers": ["t/hold"]}})
    held = world.delete("configmaps", "x")
    assert held["metadata"]["deletionTimestamp"]
    assert world.api.find("configmaps", "a", "x")
    held["metadata"]["finalizers"] = []
    world.update("configmaps", held)
    assert world.api.find("configmaps", "a", "x") is None
    assert made["metadata"]["uid"] == held["metadata"]["uid"]


def pod(name: str, **spec) -> dict:
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"metadata": {"name": name}, "spec": spec}


def test_a_pod_on_a_node_ends_with_grace_and_one_without_goes_at_once(world):
    world.create("v1", "pods", pod("placed", nodeName="n"))
    world.create("v1", "pods", pod("waiting"))
    marked = world.delete("pods", "placed")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    world.delete("pods", "waiting")
    assert [entry.name for entry in world.api.store.entries("pods")] == ["placed"]
    world.delete("pods", "placed", grace_period_s=0)
    assert not list(world.api.store.entries("pods"))


def test_amend_writes_only_what_changed(world):
    world.config_map("x", data={"k": "v"})
    before = world.api.store.revision
    world.api.amend("configmaps", "a", "x", lambda obj: obj["data"].update(k="v"))
    assert world.api.store.revision == before
    world.api.amend("configmaps", "a", "x", lambda obj: obj["data"].update(k="w"))
    assert world.api.find("configmaps", "a", "x")["data"] == {"k": "w"}
    assert world.api.amend("configmaps", "a", "none", lambda _obj: None) is None


def test_an_apply_patch_creates_and_the_last_writer_counts(world):
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    patch = Patch("apply", {**named, "data": {"k": "v"}})
    resource = world.named("v1", "configmaps")
    made = world.api.patch(resource, "a", "x", patch)
    assert "managedFields" not in made["metadata"]
    other = Patch("apply", {**named, "data": {"k": "w"}})
    changed = world.api.patch(resource, "a", "x", other)
    assert changed["data"] == {"k": "w"}


def policy(expression: str) -> tuple[dict, dict]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["configmaps"]}]},
        "validations": [{"expression": expression, "message": "not like this"}],
    }
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    return (
        {"metadata": {"name": "p"}, "spec": spec},
        {"metadata": {"name": "b"}, "spec": binding},
    )


def bind_policy(world: World, expression: str) -> None:
    api = "admissionregistration.k8s.io/v1"
    made, binding = policy(expression)
    world.create(api, "validatingadmissionpolicies", made)
    world.create(api, "validatingadmissionpolicybindings", binding)


def test_a_bound_policy_refuses_what_breaks_its_expression(world):
    bind_policy(world, "has(object.data) && object.data.k == 'v'")
    world.config_map("good", data={"k": "v"})
    error = refused(422, world.config_map, "bad", data={"k": "w"})
    assert "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not like this" in str(
        error
    )
    assert world.api.find("configmaps", "a", "bad") is None


def test_an_expression_that_fails_refuses_too(world):
    bind_policy(world, "object.nothing.at.all")
    assert "resulted in error" in refused(422, world.config_map, "x").message


def test_what_is_not_evaluated_of_a_policy_is_refused(world):
    made, _ = policy("true")
    made["spec"] |= {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    plural = "validatingadmissionpolicies"
    error = refused(422, world.create, "admissionregistration.k8s.io/v1", plural, made)
    assert [cause["field"] for cause in error.details["causes"]] == ["spec.paramKind"]


def definition(kind: str, plural: str) -> dict:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{plural}.t.dev"},
        "spec": {
            "group": "t.dev",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


def test_a_definition_is_served_until_it_is_deleted_with_its_objects(world):
    crds = world.named("apiextensions.k8s.io/v1", "customresourcedefinitions")
    world.api.create(crds, "", definition("Thing", "things"))
    thing = {"apiVersion": "t.dev/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"n": 1}}
    world.create("t.dev/v1", "things", thing)
    world.api.delete(crds, "", "things.t.dev")
    assert (
        world.api.find("customresourcedefinitions.apiextensions.k8s.io", "", "things.t.dev") is None
    )
    assert not list(world.api.store.entries("things.t.dev"))
    refused(404, world.named, "t.dev/v1", "things")


def test_metadata_of_a_custom_resource_is_written_anew_as_of_any_other_kind(world):
    crds = world.named("apiextensions.k8s.io/v1", "customresourcedefinitions")
    world.api.create(crds, "", definition("Thing", "things"))
    thing = {"apiVersion": "t.dev/v1", "kind": "Thing"}
    thing["metadata"] = {"name": "x", "labels": {}, "finalizers": [], "annotations": {"a": ""}}
    decoded = checked(thing, world.named("t.dev/v1", "things"), Writing())
    assert decoded["metadata"] == {"name": "x", "annotations": {"a": ""}}


def test_a_custom_resource_in_which_1_becomes_true_has_changed(world):
    crds = world.named("apiextensions.k8s.io/v1", "customresourcedefinitions")
    made = definition("Thing", "things")
    made["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    world.api.create(crds, "", made)
    thing = {"apiVersion": "t.dev/v1", "kind": "Thing", "metadata": {"name": "x"}, "any": [1, 2]}
    things, made = world.named("t.dev/v1", "things"), world.create("t.dev/v1", "things", thing)
    for one, generation in ((1, 1), (True, 2)):
        made = world.api.update(things, "a", "x", {**made, "any": [one, 2]})
        assert made["metadata"]["generation"] == generation


def test_a_definition_waits_for_finalizers_of_its_objects(world):
    crds = world.named("apiextensions.k8s.io/v1", "customresourcedefinitions")
    world.api.create(crds, "", definition("Thing", "things"))
    thing = {"apiVersion": "t.dev/v1", "kind": "Thing"}
    thing["metadata"] = {"name": "x", "finalizers": ["t.dev/hold"]}
    world.create("t.dev/v1", "things", thing)
    world.api.delete(crds, "", "things.t.dev")
    assert world.api.get(crds, "", "things.t.dev")["metadata"]["deletionTimestamp"]
    world.api.amend("things.t.dev", "a", "x", lambda obj: obj["metadata"].update(finalizers=[]))
    assert (
        world.api.find("customresourcedefinitions.apiextensions.k8s.io", "", "things.t.dev") is None
    )
