"""Schedulers come and go: restarts, replicas, an API server that restarts, APIs that appear."""

import subprocess
import time

import pytest

from tests.e2e.harness.gang_shapes import SHAPES
from tests.e2e.harness.relay import Relay
from tests.e2e.harness.volcano import install_volcano, remove_volcano
from tools.controlplane import ApiError
from tools.harness.faults import clear_lease
from tools.harness.scheduler import SHORT_LEASE
from tools.objects import VOLCANO, gang_pods
from tools.testing import wait_for


def more_nodes(world, count: int = 1) -> None:
    world.nodes(count, prefix=f"{world.namespace}-more-")


def lease(world, namespace: str) -> dict:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/quorate"
    return world.cluster.api("GET", path)


@pytest.mark.core
def test_pages_of_a_running_scheduler(world):
    assert world.quorate.page("/healthz") == "ok"
    assert world.quorate.page("/readyz") == "ok"
    assert "not found" in world.quorate.page("/")
    page = world.quorate.page("/metrics")
    for name in ("quorate_leader 1.0", "quorate_gangs{", "quorate_decide_seconds_count"):
        assert name in page


def test_metrics_say_how_long_gangs_wait_and_for_how_many_gpus(world):
    """No metric told of waiting time, the oldest gang, GPUs free and waiting."""
    gpu, metric = f"{world.namespace}.example.com/gpu", world.quorate.metric
    started = metric("quorate_gang_wait_seconds_count")
    world.nodes(1, allocatable={"cpu": "8", gpu: "8"})
    world.create_pods(world.gang("runs", 2, requests={"cpu": "1", gpu: "1"}))
    world.wait_bound(2)
    world.create_pods(world.gang("waits", 2, requests={"cpu": "1", gpu: "4"}))
    world.wait_condition("2 members must start together")
    found = [("quorate_gpus_free", 6.0), ("quorate_gpus_waiting", 8.0)]
    for name, amount in found:
        wait_for(lambda n=name, a=amount: metric(n, resource=gpu) == a, f"{name} is {amount}")
    oldest = "quorate_oldest_waiting_gang_seconds"
    wait_for(lambda: metric(oldest, reason=world.why("waits")["reason"]) >= 1, oldest)
    assert metric("quorate_gang_wait_seconds_count") > started


def test_an_api_that_is_installed_later_is_picked_up(apart, beside):
    scheduler = beside({"schedulerNames": [apart.scheduler, "volcano-later", "volcano"]})
    apart.nodes(1)
    shape = SHAPES["volcano"]._replace(scheduler="volcano-later")
    apart.create_pods(shape.pods("job", 2))
    apart.wait_condition("this cluster does not serve scheduling.volcano.sh/v1beta1")
    install_volcano(apart.cluster)
    try:
        apart.wait_condition("PodGroup job (scheduling.volcano.sh/v1beta1) does not exist")
        apart.apply(shape.group("job", 2))
        apart.wait_bound(2)
        apart.wait_status("job", VOLCANO, phase="Running", running=2)
        wait_for(lambda: has_queues(apart), "both queues are made")
    finally:
        remove_volcano(apart.cluster)
    apart.create_pods(shape.pods("gone", 1))
    apart.wait_condition("this cluster does not serve", "gang=gone")
    assert apart.bound("gang=job") == 2, "what runs goes on"
    assert scheduler.page("/readyz") == "ok"

    install_volcano(apart.cluster)
    try:
        wait_for(lambda: has_queues(apart), "they are made anew")
    finally:
        remove_volcano(apart.cluster)


def has_queues(world) -> bool:
    try:
        return len(world.cluster.api("GET", f"/apis/{VOLCANO}/queues")["items"]) == 2
    except ApiError as error:
        if error.status in (404, 429):  # not served yet, or "storage is (re)initializing"
            return False
        raise


@pytest.mark.core
def test_gangs_that_wait_start_after_a_restart_of_the_api_server(world):
    world.nodes(1, allocatable={"cpu": "2"})
    world.create_pods(world.gang("g", 4))
    world.wait_condition("4 members must start together and 2 fit")
    pid = world.quorate.process.pid
    world.cluster.restart_apiserver()
    world.quorate.wait_well()
    assert world.quorate.process.poll() is None
    assert world.quorate.process.pid == pid
    world.stays_unbound()
    more_nodes(world)
    world.wait_bound(4)


def test_nothing_is_lost_when_the_api_server_crashes_while_a_gang_arrives(world):
    world.nodes(2)
    world.create_pods(world.gang("g", 20)[:10])
    world.cluster.restart_apiserver(kill=True)
    wait_for(lambda: whole_pods_created(world), "pods can be created again")
    world.wait_bound(20)
    world.quorate.wait_well()
    assert not world.events("GangRolledBack")


def whole_pods_created(world) -> bool:
    """Create what is missing; a server that just restarted may refuse for a moment."""
    try:
        there = {p["metadata"]["name"] for p in world.pods()}
        for one in gang_pods("g", 20):
            if one["metadata"]["name"] not in there:
                world.create_pod(one)
    except (ApiError, OSError):
        return False
    return True


@pytest.fixture
def relay(relays) -> Relay:
    return relays()


@pytest.mark.core
def test_watches_that_are_cut_are_resumed_without_a_new_list(apart, beside, relay):
    path = {"resource": "/api/v1/pods"}
    scheduler = beside(relay_port=relay.port)
    wait_for(scheduler.leads, "it leads")
    apart.nodes(1)
    first, second, third = apart.gang("g", 3)
    apart.create_pods([first, second])
    apart.wait_condition("2 of 3 members exist")
    for cuts in (1, 2, 3):
        relay.cut()
        wait_for(
            lambda n=cuts: scheduler.metric("quorate_watch_reconnects", **path) >= n,
            "its watch of pods is connected again",
        )
    apart.create_pod(third)
    apart.wait_bound(3)
    assert scheduler.metric("quorate_watch_relists", **path) == 0
    assert scheduler.leads()


def test_a_server_that_does_not_answer_for_a_while_costs_nothing_but_time(apart, beside, relay):
    scheduler = beside(relay_port=relay.port)
    wait_for(scheduler.leads, "it leads")
    apart.nodes(1)
    relay.stall()
    apart.create_pods(apart.gang("g", 3))
    wait_for(lambda: relay.held, "something is held back")
    assert apart.bound() == 0
    assert scheduler.page("/healthz") == "ok"
    relay.go_on()
    apart.wait_bound(3)


@pytest.mark.core
def test_of_two_replicas_one_leads_and_a_graceful_stop_hands_over_at_once(apart, beside):
    # The lease is long: only its release can explain a quick successor.
    first, second = beside(wait_ready=False), beside()
    wait_for(lambda: first.leads() or second.leads(), "one leads")
    leader, other = (first, second) if first.leads() else (second, first)
    assert leader.metric("quorate_leader") + other.metric("quorate_leader") == 1.0
    standing_by = "ok\nstanding by: "
    wait_for(lambda: other.page("/readyz").startswith(standing_by), "the other one stands by")
    assert leader.identity() in other.page("/readyz"), "it says who leads"
    wait_for(lambda: leader.page("/readyz") == "ok", "the leader has listed all")
    found = lease(apart, apart.scheduler)
    assert found["spec"]["holderIdentity"]
    assert found["metadata"]["annotations"]["quorate.dev/scheduler-names"] == apart.scheduler
    apart.nodes(1, allocatable={"cpu": "2"})
    apart.create_pods(apart.gang("g", 3))
    apart.wait_condition("3 members must start together and 2 fit")

    started_s = time.monotonic()
    assert leader.stop() == 0
    wait_for(other.leads, "the other leads")
    print(f"\nhand-over after a graceful stop: {time.monotonic() - started_s:.1f} s")
    more_nodes(apart)
    apart.wait_bound(3)


def test_a_lease_without_the_right_to_it_is_told_with_the_remedy(beside):
    scheduler = beside({"leaderElection": {"name": "not-granted"}}, wait_ready=False)
    told = "grant 'get' on leases of coordination.k8s.io in namespace"
    wait_for(lambda: "not leading: " in scheduler.page("/readyz"), "it is not ready")
    wait_for(lambda: told in scheduler.page("/readyz"), "it says which right is missing")
    assert scheduler.metric("quorate_lease_errors_total", kind="Forbidden") >= 1
    assert scheduler.page("/healthz") == "ok"
    assert scheduler.log().count("the lease was not taken or renewed") == 1


@pytest.mark.core
def test_a_crashed_leader_is_succeeded_after_its_lease(apart, beside):
    config = {"leaderElection": SHORT_LEASE}
    first = beside(config)
    wait_for(first.leads, "the first leads")
    second = beside(config)
    assert not second.leads()
    apart.nodes(1)
    first.kill()
    started_s = time.monotonic()
    apart.create_pods(apart.gang("g", 3))
    apart.wait_bound(3)
    print(f"\nleader killed -> gang bound by its successor: {time.monotonic() - started_s:.1f} s")
    assert second.leads()


@pytest.mark.core
def test_a_leader_that_cannot_renew_stops_by_itself(apart, beside):
    leader = beside({"leaderElection": SHORT_LEASE})
    wait_for(leader.leads, "it leads")
    binding = f"quorate-{apart.scheduler}"
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{apart.scheduler}/rolebindings"
    apart.cluster.api("DELETE", f"{path}/quorate-leader-election")
    wait_for(lambda: leader.process.poll() is not None, f"it has ended ({binding})")
    assert leader.process.returncode == 1
    assert "Error: the lease was lost" in leader.log()


def test_a_restart_adopts_gangs_that_run_and_replaces_a_member_alone(apart, beside):
    apart.nodes(1, allocatable={"cpu": "3"})
    first = beside()
    apart.create_pods(apart.gang("g", 3))
    apart.wait_bound(3)
    before = apart.where()
    first.kill()
    apart.delete_pod("g-1", wait=True)
    apart.create_pod(gang_pods("g", 2, scheduler=apart.scheduler)[1])

    second = beside({"leaderElection": {"name": "quorate"}}, wait_ready=False)
    clear_lease(apart)
    wait_for(second.leads, "the successor leads")
    apart.wait_bound(3)
    after = apart.where()
    assert {n: after[n] for n in ("g-0", "g-2")} == {n: before[n] for n in ("g-0", "g-2")}
    assert not apart.events("GangRolledBack")


def test_a_scheduler_that_is_stopped_leaves_nothing_behind(apart, beside):
    scheduler = beside()
    wait_for(scheduler.leads, "it leads")
    apart.nodes(1)
    apart.create_pods(apart.gang("g", 2))
    apart.wait_bound(2)
    children = subprocess.run(
        ["pgrep", "-P", str(scheduler.process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    assert scheduler.stop() == 0
    assert not children
    assert lease(apart, apart.scheduler)["spec"]["holderIdentity"] == "", "it is given back"
    assert scheduler.page("/healthz") == ""
    assert scheduler.log().count('"stopped"') == 1
