"""Subresources that write a part of an object's spec, or some of its conditions."""

import copy

import pytest

from embedded.tests.unit.controllers.controllers_world import World
from pocketkube.api.writing import Deleting, Patch
from pocketkube.errors import ApiError


@pytest.fixture
def world():
    world = World(kubelets=False)
    world.manager.controllers.clear()
    return world


def resource(world, api_version, plural):
    return world.api.registry.named(api_version, plural)


def test_a_finalized_namespace_goes_and_one_that_is_not_keeps_its_status(world):
    namespaces = resource(world, "v1", "namespaces")
    world.namespace("gone")
    world.api.delete(namespaces, "", "gone", Deleting())
    body = world.find("namespaces", "gone", "")
    body["status"] = {}
    body["spec"] = {"finalizers": ["kubernetes", "example.com/other"]}
    world.api.update(namespaces, "", "gone", copy.deepcopy(body), subresource="finalize")
    kept = world.find("namespaces", "gone", "")
    assert kept["status"]["phase"] == "Terminating"
    assert kept["spec"]["finalizers"] == ["kubernetes", "example.com/other"]
    body["spec"], body["metadata"] = {}, kept["metadata"]
    world.api.update(namespaces, "", "gone", body, subresource="finalize")
    assert world.find("namespaces", "gone", "") is None


def test_a_create_in_a_namespace_that_goes_says_so_in_a_cause(world):
    world.namespace("going")
    world.api.delete(resource(world, "v1", "namespaces"), "", "going", Deleting())
    body = {"metadata": {"name": "a"}}
    with pytest.raises(ApiError) as caught:
        world.create("v1", "configmaps", body, "going")
    error = caught.value.status()
    words = "unable to create new content in namespace going because it is being terminated"
    assert error["message"] == f'configmaps "a" is forbidden: {words}'
    assert error["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace going is being terminated",
            "field": "metadata.namespace",
        }
    ]


POD = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}


def patched(world, subresource, change):
    pods = resource(world, "v1", "pods")
    patch = Patch("strategic", change)
    return world.api.patch(pods, "default", "p", patch, subresource=subresource)


def test_ephemeral_containers_are_added_and_nothing_else_changes(world):
    made = world.create("v1", "pods", {"metadata": {"name": "p"}, "spec": copy.deepcopy(POD)})
    added = {"name": "d", "image": "debug"}
    other = {"activeDeadlineSeconds": 5, "ephemeralContainers": [added]}
    after = patched(world, "ephemeralcontainers", {"spec": other, "status": {"phase": "Failed"}})
    assert after["spec"].pop("ephemeralContainers")[0].items() >= added.items()
    assert after["spec"] == made["spec"]
    assert after["status"] == made["status"]
    assert after["metadata"]["generation"] == made["metadata"]["generation"] + 1


def test_a_subresource_that_nobody_may_write_is_not_written(world):
    world.create("v1", "pods", {"metadata": {"name": "p"}, "spec": copy.deepcopy(POD)})
    with pytest.raises(ApiError) as caught:
        patched(world, "binding", {"metadata": {"labels": {"a": "b"}}})
    assert caught.value.code == 405


def test_a_resize_changes_the_resources_of_containers_only(world):
    world.create("v1", "pods", {"metadata": {"name": "p"}, "spec": copy.deepcopy(POD)})
    bigger = {"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}
    after = patched(world, "resize", {"spec": {"containers": [bigger]}})
    container = after["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"cpu": "2"}}
    assert container["image"] == "x"
