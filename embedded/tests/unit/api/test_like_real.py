"""What the differential test found: each of these was different from a real server once."""

import copy

import pytest
from multidict import MultiDict

from embedded.tests.unit.api.api_world import World, refused
from pocketkube.api.binding import bind
from pocketkube.api.eviction import evict
from pocketkube.api.scale import scale_of
from pocketkube.api.writing import Deleting, Patch, User, Writing
from pocketkube.server import options

CONTAINERS = [{"name": "main", "image": "a"}]
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": CONTAINERS}}
DEPLOYMENT = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}


@pytest.fixture
def world() -> World:
    made = World()
    made.create("v1", "serviceaccounts", {"metadata": {"name": "default"}})
    return made


def pod(world: World, name: str = "p", **spec) -> dict:
    obj = {"metadata": {"name": name}, "spec": {"containers": CONTAINERS, **spec}}
    obj = copy.deepcopy(obj)
    return world.create("v1", "pods", obj)


def deployment(world: World) -> dict:
    obj = {"metadata": {"name": "d"}, "spec": copy.deepcopy(DEPLOYMENT)}
    return world.create("apps/v1", "deployments", obj)


def put_status(world: World, api_version: str, plural: str, obj: dict) -> dict:
    resource, metadata = world.named(api_version, plural), obj["metadata"]
    where = metadata.get("namespace", "")
    return world.api.update(resource, where, metadata["name"], obj, subresource="status")


def written(method: str = "POST", *, is_apply: bool = False, **query: str) -> Writing:
    about = (MultiDict(query), User("u"), "agent/1", lambda _text: None)
    return options.writing_of(*about, method=method, is_apply=is_apply)


@pytest.mark.parametrize(
    ("method", "kind"),
    [("POST", "CreateOptions"), ("PUT", "UpdateOptions"), ("PATCH", "PatchOptions")],
)
def test_a_wrong_option_is_told_under_the_name_of_the_options(method, kind):
    error = refused(422, written, method, dryRun="Some", fieldManager="x" * 129)
    assert error.details["kind"] == kind
    fields = [cause["field"] for cause in error.details["causes"]]
    assert fields == ["fieldManager", "dryRun"]


def test_only_an_apply_can_be_forced_and_it_needs_a_manager():
    refused(422, written, "PATCH", force="true")
    refused(422, written, "PATCH", is_apply=True)
    assert written("PATCH", is_apply=True, fieldManager="me", force="x").force


def test_delete_options_in_a_body_hide_those_of_the_query():
    query = MultiDict(gracePeriodSeconds="x", dryRun="All")
    assert not options.deleting_of(b"{}", query, "application/json").dry_run
    refused(400, options.deleting_of, b"", query)
    both = b'{"orphanDependents": true, "propagationPolicy": "Orphan"}'
    refused(422, options.deleting_of, both, MultiDict(), "application/json")
    refused(400, options.deleting_of, b'{"kind": "Pod"}', MultiDict(), "application/json")


@pytest.mark.parametrize(
    "query", [{"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "x"}]
)
def test_a_list_needs_a_version_to_match(query):
    refused(422, options.check_listing, MultiDict(query))


def test_an_update_needs_the_name_of_its_path_before_the_object_is_looked_for(world):
    resource = world.named("v1", "configmaps")
    for metadata in ({}, {"name": "other"}):
        refused(400, world.api.update, resource, "a", "x", {"metadata": metadata})
    refused(404, world.api.update, resource, "a", "x", {"metadata": {"name": "x"}})


def test_an_update_creates_some_kinds_unless_it_is_meant_for_an_object_that_was_there(world):
    leases = world.named("coordination.k8s.io/v1", "leases")
    obj = {"metadata": {"name": "x"}, "spec": {}}
    assert world.api.update(leases, "a", "x", obj)["metadata"]["uid"]
    gone = {"metadata": {"name": "y", "uid": "u"}, "spec": {}}
    refused(409, world.api.update, leases, "a", "y", gone)


def test_a_version_on_a_new_object_is_a_fault_of_the_storage(world):
    obj = {"metadata": {"name": "x", "resourceVersion": "1"}}
    assert refused(500, world.create, "v1", "configmaps", obj).reason == ""
    world.create("v1", "configmaps", {"metadata": {"name": "y", "resourceVersion": "0"}})


def test_a_version_that_is_no_number_is_a_fault_of_the_server_and_no_conflict(world):
    made = world.config_map("x")
    made["metadata"]["resourceVersion"] = "abc"
    refused(500, world.update, "configmaps", made)


def test_a_name_that_is_still_going_is_told_so(world):
    world.create("v1", "configmaps", {"metadata": {"name": "x", "finalizers": ["a.b/c"]}})
    world.delete("configmaps", "x")
    assert refused(409, world.config_map, "x").message.startswith("object is being deleted: ")


def test_nobody_gives_a_living_object_a_time_of_deletion(world):
    made = world.config_map("x")
    made["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    error = refused(422, world.update, "configmaps", made)
    assert error.details["causes"][0]["field"] == "metadata.deletionTimestamp"


def test_a_link_to_itself_is_not_stored(world):
    made = world.config_map("x")
    made["metadata"]["selfLink"] = "/x"
    kept = world.update("configmaps", made)
    assert "selfLink" not in kept["metadata"]
    assert kept["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_namespace_that_is_going_gets_no_finalizers_of_another_deletion(world):
    namespaces = world.named("v1", "namespaces")
    going = world.api.delete(namespaces, "", "a", Deleting(propagation="Background"))
    again = world.api.delete(namespaces, "", "a", Deleting(propagation="Orphan"))
    assert again == going


def test_preconditions_of_a_deletion_name_the_kind(world):
    world.config_map("x")
    error = refused(409, world.delete, "configmaps", "x", uid="other")
    assert error.details["kind"] == "ConfigMap"
    assert "does not match the UID in record" in error.message
    refused(409, world.delete, "configmaps", "x", resource_version="")


def test_an_update_that_ends_a_deletion_answers_with_what_was_sent(world):
    world.create("v1", "configmaps", {"metadata": {"name": "x", "finalizers": ["a.b/c"]}})
    going = world.delete("configmaps", "x")
    last = world.update("configmaps", {"metadata": {"name": "x", "namespace": "a"}, "data": {}})
    assert "finalizers" not in last["metadata"]
    assert last["metadata"]["resourceVersion"] == going["metadata"]["resourceVersion"]
    assert world.api.find("configmaps", "a", "x") is None


def test_watchers_see_a_pod_marked_before_it_is_gone(world):
    pod(world)
    seen = []
    world.api.store.watch("pods", lambda event: seen.append((event.type, event.object)))
    last = world.delete("pods", "p")
    assert [type_ for type_, _ in seen] == ["MODIFIED", "DELETED"]
    assert seen[0][1]["metadata"]["deletionGracePeriodSeconds"] == 0
    assert last["metadata"]["generation"] == 2


def test_a_negative_grace_is_one_second(world):
    pod(world, nodeName="n")
    going = world.delete("pods", "p", grace_period_s=-5)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 1


def test_a_binding_names_its_pod_and_leaves_the_generation_alone(world):
    pod(world)
    target = {"kind": "Node", "name": "n"}
    refused(400, bind, world.api, "a", "p", {"target": target}, Writing())
    refused(500, bind, world.api, "a", "p", {"metadata": {"name": "p"}}, Writing())
    bind(world.api, "a", "p", {"metadata": {"name": "p"}, "target": target}, Writing())
    assert world.api.find("pods", "a", "p")["metadata"]["generation"] == 1


def test_an_eviction_says_why_before_it_deletes(world):
    pod(world)
    seen = []
    world.api.store.watch("pods", lambda event: seen.append((event.type, event.object)))
    evict(world.api, "a", "p", {"metadata": {"name": "p"}})
    assert [type_ for type_, _ in seen] == ["MODIFIED", "MODIFIED", "DELETED"]
    (condition,) = seen[0][1]["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


def test_a_status_update_takes_metadata_where_the_kind_allows_it(world):
    made = deployment(world)
    made["metadata"] |= {"labels": {"new": "x"}, "annotations": {"new": "x"}}
    metadata = put_status(world, "apps/v1", "deployments", made)["metadata"]
    assert "labels" not in metadata
    assert metadata["annotations"] == {"new": "x"}
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    group = world.create("scheduling.k8s.io/v1alpha2", "podgroups", group)
    group["metadata"]["labels"] = {"new": "x"}
    after = put_status(world, "scheduling.k8s.io/v1alpha2", "podgroups", group)
    assert "labels" not in after["metadata"]


def test_a_status_update_checks_metadata(world):
    made = deployment(world)
    bad = {**made, "metadata": {**made["metadata"], "annotations": {"a b": "c"}}}
    refused(422, put_status, world, "apps/v1", "deployments", bad)


def test_a_strategic_patch_cannot_change_the_kind_and_a_merge_patch_may_not(world):
    world.config_map("x")
    resource = world.named("v1", "configmaps")
    body = {"kind": "Secret", "data": {"a": "b"}}
    made = world.api.patch(resource, "a", "x", Patch("strategic", body))
    assert (made["kind"], made["data"]) == ("ConfigMap", {"a": "b"})
    refused(422, world.api.patch, resource, "a", "x", Patch("merge", {"kind": "Secret"}))


def test_a_patch_may_not_bring_another_uid(world):
    world.config_map("x")
    patch = Patch("merge", {"metadata": {"uid": "other"}})
    refused(422, world.api.patch, world.named("v1", "configmaps"), "a", "x", patch)


def test_a_scale_is_checked_like_any_object(world):
    deployment(world)
    resource = world.named("apps/v1", "deployments")
    about = {"subresource": "scale"}
    wrong = Patch("merge", {"spec": 5})
    refused(422, world.api.patch, resource, "a", "d", wrong, **about)
    other = Patch("apply", {"apiVersion": "apps/v1", "kind": "Deployment"})
    me = Writing(field_manager="me")
    refused(400, world.api.patch, resource, "a", "d", other, me, **about)


def test_a_scale_shows_the_whole_selector(world):
    made = deployment(world)
    made["spec"]["selector"]["matchExpressions"] = [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "app", "operator": "Exists"},
    ]
    selector = scale_of(world.named("apps/v1", "deployments"), made)["status"]["selector"]
    assert selector == "app=a,app,tier in (a,b)"


def test_events_have_no_dependents_to_orphan(world):
    obj = {"involvedObject": {"kind": "Pod", "namespace": "a", "name": "p"}}
    world.create("v1", "events", {"metadata": {"name": "e"}, **obj})
    resource = world.named("v1", "events")
    world.api.delete(resource, "a", "e", Deleting(propagation="Orphan"))
    assert world.api.find("events", "a", "e") is None
