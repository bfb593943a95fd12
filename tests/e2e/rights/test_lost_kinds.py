"""A scheduler that lacks a right: who needs it waits and says which, all others are placed."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.e2e.harness.devices import API, gpus
from tests.e2e.harness.gang_shapes import SHAPES
from tools.harness.scheduler import RBAC
from tools.harness.world import World
from tools.objects import pod
from tools.testing import manifests, wait_for

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "there-is-none"}}
LOST = {"persistentvolumeclaims", "podgroups"}


def role_of(namespace: str, *options: str) -> dict:
    """Return the role that these options print, under a name of its own."""
    text = manifests("--namespace", namespace, "--only", "rbac", *options)
    [role] = [one for one in yaml.safe_load_all(text) if one["kind"] == "ClusterRole"]
    role["metadata"]["name"] = f"quorate-{namespace}"
    return role


def less(role: dict, lost: set[str]) -> dict:
    """Return the role without these resources."""
    left = copy.deepcopy(role)
    for rule in left["rules"]:
        rule["resources"] = [one for one in rule["resources"] if one not in lost]
    left["rules"] = [rule for rule in left["rules"] if rule["resources"]]
    return left


@contextmanager
def world_under(cluster, beside, role: dict, **config: object) -> Iterator[World]:
    """A world whose scheduler, started for it, has the rights of this role and no others."""
    name = beside.scheduler_name
    [binding] = [
        one
        for one in yaml.safe_load_all(manifests("--namespace", name, "--only", "rbac"))
        if one["kind"] == "ClusterRoleBinding"
    ]
    binding["metadata"]["name"] = binding["roleRef"]["name"] = role["metadata"]["name"]
    cluster.apply(role)
    cluster.delete(f"{RBAC}/clusterrolebindings/{role['metadata']['name']}")
    cluster.apply(binding)
    world = World(cluster, beside(config), f"{name}-world", scheduler=name)
    try:
        yield world
    finally:
        world.remove()
        cluster.delete(f"{RBAC}/clusterroles/{role['metadata']['name']}")


def test_missing_rights_hold_up_those_alone_who_need_them(cluster, beside):
    whole = role_of(beside.scheduler_name)
    with world_under(cluster, beside, less(whole, LOST)) as world:
        world.nodes(1)
        world.create_pod(pod("plain", scheduler=world.scheduler))
        world.create_pod(pod("stores", scheduler=world.scheduler, volumes=[CLAIM]))
        world.create_pods(world.gang("g", 2))
        world.wait_bound(1)
        for kind in ("persistentvolumeclaims", "podgroups.scheduling.x-k8s.io"):
            world.wait_condition(f"not permitted to list and watch {kind}")
        assert set(world.where()) == {"plain"}
        running, path = world.quorate, "/api/v1/persistentvolumeclaims"
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 1.0, "it is told")
        cluster.apply(whole)
        world.wait_bound(3)
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 0.0, "it is listed")


@pytest.fixture
def gpu_class(cluster, beside):
    """A class of all devices, and the removal of what a test writes of that name."""
    name = beside.scheduler_name
    yield name
    for plural in ("deviceclasses", "resourceslices"):
        cluster.delete(f"{API}/{plural}/{name}")


def a_volcano_gang_starts(world: World) -> None:
    world.apply(SHAPES["volcano"].group("v", 2))
    world.create_pods(SHAPES["volcano"].pods("v", 2, scheduler=world.scheduler))
    world.wait_bound(2)


@pytest.mark.usefixtures("volcano")
def test_without_the_writing_of_claims_and_queues_who_uses_devices_waits_and_nobody_else(
    cluster, beside, gpu_class
):
    """Who has no devices and no Volcano had to grant the writing of ResourceClaims and queues.

    Of them nothing is said until they are needed.
    """
    role = role_of(beside.scheduler_name, "--without", "devices", "--without", "volcano-queues")
    with world_under(cluster, beside, role) as world:
        [node] = world.nodes(1)
        a_volcano_gang_starts(world)
        assert "ResourceClaim" not in world.quorate.log()
        assert "queue" not in world.quorate.log()

        asked = {"name": "gpu", "exactly": {"deviceClassName": gpu_class}}
        for kind, spec in (
            ("DeviceClass", {}),
            ("ResourceSlice", gpus(node, 1)),
            ("ResourceClaim", {"devices": {"requests": [asked]}}),
        ):
            about = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": gpu_class}}
            world.apply(about | {"kind": kind, "spec": spec})
        uses = [{"name": "gpu", "resourceClaimName": gpu_class}]
        world.create_pod(pod("with-device", scheduler=world.scheduler, resourceClaims=uses))
        words = (
            "quorate may not patch ResourceClaims, so that it can give no devices: grant it with"
        )
        words += " quorate manifests, without the option --without devices"
        world.wait_condition(words)
        world.wait_event("FailedScheduling", words)
        assert words in world.quorate_cli("why", "with-device", "-n", world.namespace).stdout
        cluster.apply(role_of(beside.scheduler_name))
        world.wait_bound(3)


@pytest.mark.usefixtures("volcano")
def test_without_the_right_to_volcanos_queues_gangs_start_and_the_log_says_how_to_grant_it(
    cluster, beside
):
    role = role_of(beside.scheduler_name, "--without", "volcano-queues")
    names = [beside.scheduler_name, "volcano"]  # whose queues are made only then
    with world_under(cluster, beside, role, schedulerNames=names) as world:
        world.nodes(1)
        a_volcano_gang_starts(world)
        words = "quorate manifests, without the option --without volcano-queues"
        wait_for(lambda: words in world.quorate.log(), "the log says it")
