"""A gang of 1,000 whose leader dies in the middle of its binds. Called by ``reliability_bench``."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.cluster.loads import CreateJob
from tools.harness.faults import clear_lease
from tools.harness.scheduler import Quorate, Replicas
from tools.harness.world import World
from tools.objects import gang_pods, pod, pod_group
from tools.testing import wait_for

MEMBERS = 1000
NODES, CPU = 125, 8
TRIES_MAX = 5


def finished_s(world: World, replicas: Replicas, chance: random.Random) -> float:
    """Return the seconds from the successor's leading until all members are bound."""
    successor, _ = _left_in_part(world, replicas, chance)
    clear_lease(world)
    return _since_leading_s(world, successor, "=")


def undone_s(world: World, replicas: Replicas, chance: random.Random) -> float:
    """Return the seconds from the successor's leading until no member is bound any more.

    Another scheduler has taken the rest of the room.
    """
    successor, used = _left_in_part(world, replicas, chance)
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    foreign = []
    for index, node in enumerate(f"{world.namespace}-{i}" for i in range(NODES)):
        free = CPU - used.get(node, 0)
        if free:
            cpu = {"cpu": str(free)}
            taken = pod(f"foreign-{index}", scheduler="other", requests=cpu, nodeName=node)
            taken["metadata"]["labels"] = {"gang": "foreign"}
            foreign.append(taken)
    _create(world, path, foreign)
    time.sleep(1.0)  # the successor has seen them
    clear_lease(world)
    return _since_leading_s(world, successor, "!=")


def _left_in_part(
    world: World, replicas: Replicas, chance: random.Random
) -> tuple[Quorate, dict[str, int]]:
    """Kill the leader in mid-commit; return who stands by, and the members on each node."""
    world.nodes(NODES, allocatable={"cpu": str(CPU)})
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    successor: Quorate | None = None
    for _ in range(TRIES_MAX):
        world.apply(pod_group("g", MEMBERS))
        leader = successor or replicas()
        wait_for(leader.leads, "it leads")
        successor = replicas()
        pods = gang_pods("g", MEMBERS, scheduler=world.scheduler)
        for one in pods:
            one["spec"]["terminationGracePeriodSeconds"] = 0
        _create(world, path, pods[:-1])
        time.sleep(1.0)
        world.create_pod(pods[-1])
        wait_for(lambda: world.pod("g-0")["spec"].get("nodeName"), "the binds have begun")
        time.sleep(chance.uniform(0.0, 0.3))
        leader.kill()
        time.sleep(0.5)
        nodes = list(world.where("gang=g").values())
        if 0 < len(nodes) < MEMBERS:
            return successor, {node: nodes.count(node) for node in set(nodes)}
        clear_lease(world)
        wait_for(lambda: world._delete_pods(path), "no pods are left")
    raise RuntimeError(f"{TRIES_MAX} kills, none in mid-commit")


def _since_leading_s(world: World, successor: Quorate, node: str) -> float:
    """Return the seconds until no member's node is as ``node`` says: ``=`` none, ``!=`` any.

    One member at a time is asked for: a list of 1,000 would cost what is to be measured.
    """
    base = f"/api/v1/namespaces/{world.namespace}/pods?limit=1&labelSelector=gang%3Dg"
    path = f"{base}&fieldSelector=spec.nodeName{node.replace('=', '%3D')}"
    while not successor.leads():
        time.sleep(0.01)
    started_s = time.monotonic()
    while world.cluster.api("GET", path)["items"]:
        if time.monotonic() > started_s + 30.0:
            raise RuntimeError(f"after 30 s {world.bound('gang=g')} of {MEMBERS} are bound")
        time.sleep(0.02)
    return time.monotonic() - started_s


def _create(world: World, path: str, objects: list[dict[str, object]]) -> None:
    job = CreateJob(
        kubeconfig=str(world.cluster.kubeconfig),
        path=path,
        objects=[msgspec.Raw(msgspec.json.encode(one)) for one in objects],
    )
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_bytes(msgspec.json.encode(job))
        command = [sys.executable, "-m", "bench.cluster.loads", "create", file.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
