"""A scheduler that lacks a right: who needs it waits and says which, all others are placed."""

import copy

import yaml

from tools.harness.scheduler import RBAC
from tools.harness.world import World
from tools.objects import pod
from tools.testing import manifests, wait_for

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "there-is-none"}}
LOST = {"persistentvolumeclaims", "podgroups"}


def bind_role_without(cluster, namespace: str, lost: set[str]) -> dict:
    """Bind the scheduler's account to a role that cannot list these; return the whole role."""
    parts = list(yaml.safe_load_all(manifests("--namespace", namespace, "--only", "rbac")))
    [whole] = [one for one in parts if one["kind"] == "ClusterRole"]
    [binding] = [one for one in parts if one["kind"] == "ClusterRoleBinding"]
    whole["metadata"]["name"] = binding["metadata"]["name"] = f"quorate-{namespace}"
    binding["roleRef"]["name"] = f"quorate-{namespace}"
    role = copy.deepcopy(whole)
    for rule in role["rules"]:
        rule["resources"] = [one for one in rule["resources"] if one not in lost]
    role["rules"] = [rule for rule in role["rules"] if rule["resources"]]
    cluster.apply(role)
    cluster.delete(f"{RBAC}/clusterrolebindings/quorate-{namespace}")
    cluster.apply(binding)
    return whole


def test_missing_rights_hold_up_those_alone_who_need_them(cluster, beside):
    name = beside.scheduler_name
    whole = bind_role_without(cluster, name, LOST)
    running = beside()
    world = World(cluster, running, f"{name}-world", scheduler=name)
    world.nodes(1)
    try:
        world.create_pod(pod("plain", scheduler=name))
        world.create_pod(pod("stores", scheduler=name, volumes=[CLAIM]))
        world.create_pods(world.gang("g", 2))
        world.wait_bound(1)
        for kind in ("persistentvolumeclaims", "podgroups.scheduling.x-k8s.io"):
            world.wait_condition(f"not permitted to list and watch {kind}")
        assert set(world.where()) == {"plain"}
        path = "/api/v1/persistentvolumeclaims"
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 1.0, "it is told")
        cluster.apply(whole)
        world.wait_bound(3)
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 0.0, "it is listed")
    finally:
        world.remove()
        cluster.delete(f"{RBAC}/clusterroles/{whole['metadata']['name']}")
