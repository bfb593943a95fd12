"""What a dead leader left half done, and what a kubelet refused, is finished or undone."""

import itertools
import time
from contextlib import ExitStack

import pytest

from quorate.core.model.policy import Policy
from tests.e2e.harness.recording_proxy import Recording, is_bind
from tests.e2e.harness.relay import Relay
from tools.harness import invariants
from tools.harness.faults import clear_lease
from tools.harness.scheduler import SHORT_LEASE
from tools.objects import pod
from tools.testing import wait_for


@pytest.mark.parametrize("carried_out", [1, pytest.param(90, marks=pytest.mark.core), 119])
def test_a_scheduler_killed_after_so_many_of_120_binds_leaves_no_gang_in_part(
    apart, beside, carried_out
):
    """Three gangs of 60 want the room of two."""
    binds = itertools.count()
    cluster = apart.cluster
    invariants.room_for_two(apart)

    def holds(method: str, path: str) -> bool:
        return is_bind(method, path) and next(binds) >= carried_out

    with Recording(cluster.server, str(cluster.ca), holds=holds) as proxy:
        scheduler = beside(through=proxy.url)
        wait_for(scheduler.leads, "it leads")
        gangs = invariants.groups(apart, "k")
        invariants.members(apart, gangs)
        wait_for(lambda: apart.bound() == carried_out and proxy.held, "the next one is held up")
        scheduler.kill()
    assert apart.bound() == carried_out
    clear_lease(apart)
    successor = beside()
    invariants.wait_kept(apart, gangs, whole=2)
    assert not successor.violations()


def test_answers_of_binds_that_are_lost_leave_no_gang_in_part(apart, beside):
    """All connections are cut when a bind was carried out, before its answer is passed on."""
    cluster, binds, cuts = apart.cluster, itertools.count(1), []

    def cut(method: str, path: str) -> bool:
        if is_bind(method, path) and next(binds) in (1, 15, 30, 45, 60):
            relay.cut()
            cuts.append(path)
        return False

    with ExitStack() as stack:
        proxy = stack.enter_context(Recording(cluster.server, str(cluster.ca), loses=cut))
        relay = stack.enter_context(Relay(("127.0.0.1", int(proxy.url.rpartition(":")[2]))))
        scheduler = beside(through=f"http://127.0.0.1:{relay.port}")
        wait_for(scheduler.leads, "it leads")
        apart.nodes(3)
        apart.create_pods(apart.gang("g", 60))
        apart.wait_bound(60)
        bound = "quorate_binds_total"
        wait_for(lambda: scheduler.metric(bound, outcome="bound") == 60, "all are known")
        wait_for(lambda: scheduler.metric("quorate_gangs", state="Started") == 1, "it has started")
        assert len(cuts) == 5
        assert not apart.events("GangRolledBack")
        assert scheduler.stop() == 0


@pytest.mark.core
def test_a_successor_finishes_what_a_crash_left_in_part(apart, beside):
    """Two of four are bound, by Bindings of an attempt that nobody carries on."""
    (node,) = apart.nodes(1, allocatable={"cpu": "4"})
    apart.create_pods(apart.gang("g", 4))
    for name in ("g-0", "g-1"):
        bind_as_a_dead_leader(apart, name, node)
    beside()
    apart.wait_bound(4)
    assert not apart.events("GangRolledBack")


def bind_as_a_dead_leader(world, name: str, node: str) -> None:
    world.bind(name, node, {"quorate.dev/attempt": "dead-1", "quorate.dev/attempt-size": "4"})


@pytest.mark.core
def test_what_a_dead_leader_left_is_undone_when_the_rest_does_not_fit(apart, beside):
    (node,) = apart.nodes(1, allocatable={"cpu": "3"})
    apart.create_pods(apart.gang("g", 4))
    for name in ("g-0", "g-1"):
        bind_as_a_dead_leader(apart, name, node)
    scheduler = beside()
    wait_for(scheduler.leads, "it leads")
    started_s = time.monotonic()
    wait_for(lambda: apart.bound() == 0, "nothing is left in part")
    print(f"undone {time.monotonic() - started_s:.1f} s after it became leader")
    assert "did not come together in time" in apart.wait_event("GangRolledBack", "2 of 4")


def test_a_gang_that_had_started_is_left_alone_by_a_successor(apart, beside):
    first = beside({"leaderElection": SHORT_LEASE})
    apart.nodes(1, allocatable={"cpu": "3"})
    apart.create_pods(apart.gang("g", 3))
    apart.wait_bound(3)
    first.kill()
    apart.delete_pod("g-0", wait=True)
    second = beside({"leaderElection": SHORT_LEASE})
    wait_for(second.leads, "the second leads", timeout_s=120)
    time.sleep(Policy().recovery_s + 1.0)  # the time to recover is over: now it would be undone
    apart.stays_bound(2)
    assert not apart.events("GangRolledBack")


def refuse(world, name: str, reason: str = "OutOfcpu") -> None:
    """Have the pod's kubelet refuse it, as its status would say."""
    path = f"/api/v1/namespaces/{world.namespace}/pods/{name}/status"
    status = {"phase": "Failed", "reason": reason, "message": "Pod was rejected"}
    content_type = "application/merge-patch+json"
    world.cluster.api("PATCH", path, {"status": status}, content_type=content_type)


@pytest.mark.core
def test_the_replacement_of_a_refused_pod_goes_elsewhere(world):
    world.nodes(2, allocatable={"cpu": "2"})
    world.create_pods(world.gang("g", 2))
    world.wait_bound(2)
    node = world.where()["g-1"]
    refuse(world, "g-1")
    warning = f"node {node} refused pod g-1: OutOfcpu"
    wait_for(lambda: warning in world.why("g")["warnings"], "the refusal is told")
    world.create_pod(pod("again", labels={"scheduling.x-k8s.io/pod-group": "g", "gang": "g"}))
    world.wait_bound(3)
    assert world.where()["again"] != node


def test_a_gang_that_kubelets_keep_in_part_is_undone(world):
    world.nodes(1, allocatable={"cpu": "2"})
    slowly = {"quorate.dev/start-after": "60s"}  # a kubelet refuses what has not run yet
    group = {"scheduleTimeoutSeconds": 2}
    world.create_pods(world.gang("g", 2, group=group, annotations=slowly))
    world.wait_bound(2)
    refuse(world, "g-1")
    world.wait_event("GangRolledBack", "1 of 2 members were bound")
    wait_for(lambda: [p["metadata"]["name"] for p in world.pods()] == ["g-1"], "g-0 is gone")
