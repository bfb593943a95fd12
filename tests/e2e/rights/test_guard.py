"""The admission guard, which the API server asks before it stores any Binding."""

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.e2e.harness.recording_proxy import Recording, is_bind
from tests.e2e.harness.relay import Relay
from tools.controlplane import ApiError
from tools.controlplane.process import free_port
from tools.harness.guard import Webhook, overcommitted
from tools.objects import pod
from tools.testing import wait_for

FOREIGN = "somebody-else"


@pytest.fixture
def webhook(cluster, tmp_path):
    made = Webhook(cluster, tmp_path)
    made.install()
    yield made
    made.remove()


@pytest.fixture
def guarded(apart, beside, webhook):
    """A world whose scheduler guards bindings, once it is seen to."""
    apart.quorate = beside({"guard": webhook.settings})
    wait_for(apart.quorate.leads, "it leads")
    return apart


@pytest.fixture
def kube_scheduler(cluster):
    yield cluster.start_kube_scheduler
    cluster.stop_kube_scheduler()


def denied(world, name: str, node: str, **options) -> str:
    with pytest.raises(ApiError) as caught:
        world.bind(name, node, **options)
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
    return caught.value.message


def seen(world, *names: str, node: str) -> None:
    """Wait until the guard is asked about these pods, and knows them and the node."""

    def judged() -> float:
        return sum(
            world.quorate.metric("quorate_guard_reviews_total", answer=answer)
            for answer in ("allowed", "denied")
        )

    def is_seen(name: str) -> bool:
        before = judged()
        with contextlib.suppress(ApiError):
            world.bind(name, node, dry_run=True)
        return judged() > before

    for name in names:
        wait_for(lambda name=name: is_seen(name), f"the guard judges {name}")


@pytest.mark.parametrize("legacy", [False, True], ids=["pods/binding", "bindings"])
def test_a_binding_that_overcommits_a_node_is_denied_and_one_that_fits_is_not(guarded, legacy):
    (node,) = guarded.nodes(1, allocatable={"cpu": "4"})
    for name, cpu in (("a", "3"), ("b", "2"), ("c", "1")):
        guarded.create_pod(pod(name, scheduler=FOREIGN, requests={"cpu": cpu}))
    seen(guarded, "a", "b", "c", node=node)
    guarded.bind("a", node, legacy=legacy)
    said = denied(guarded, "b", node, legacy=legacy)
    assert f"node {node} has no room for pod {guarded.namespace}/b: it asks for 2 cpu" in said
    assert "and 1 is free" in said
    guarded.bind("c", node, legacy=legacy)
    assert guarded.where() == {"a": node, "c": node}
    assert not overcommitted(guarded)


def test_without_the_scheduler_every_binding_goes_through(guarded):
    (node,) = guarded.nodes(1, allocatable={"cpu": "4"})
    for name in ("a", "b", "c"):
        guarded.create_pod(pod(name, scheduler=FOREIGN, requests={"cpu": "3"}))
    seen(guarded, "a", "b", "c", node=node)
    guarded.bind("a", node)
    denied(guarded, "b", node)
    assert guarded.quorate.stop() == 0
    guarded.bind("b", node)
    assert guarded.where() == {"a": node, "b": node}


def test_a_gang_of_ours_starts_while_each_of_its_binds_is_judged(guarded):
    guarded.nodes(3, allocatable={"cpu": "4"})
    guarded.create_pods(guarded.gang("g", 12))
    guarded.wait_bound(12)
    reviews = guarded.quorate.metric
    assert reviews("quorate_guard_reviews_total", answer="allowed") == 12.0
    assert reviews("quorate_guard_reviews_total", answer="denied") == 0.0


@pytest.fixture
def committing(cluster, apart, beside, webhook):
    """A world in which binds of gang ``g`` are under way for as long as the test lasts."""

    def refuses(method: str, path: str) -> bool:
        return is_bind(method, path) and "/pods/g-" in path

    with Recording(cluster.server, str(cluster.ca), loses=lambda *_: False, refuses=refuses) as to:
        running = beside({"guard": webhook.settings}, through=to.url)
        apart.quorate = running
        wait_for(running.leads, "it leads")
        (node,) = apart.nodes(1, allocatable={"cpu": "4"})
        apart.create_pods(apart.gang("g", 4))
        wait_for(lambda: any("/pods/g-0/binding" in path for _, path in to.requests), "binds go")
        yield SimpleNamespace(world=apart, node=node)
        running.stop()


def test_room_that_a_gang_is_committing_to_is_not_given_away(committing):
    world, node = committing.world, committing.node
    world.create_pod(pod("thief", scheduler=FOREIGN))
    seen(world, "thief", node=node)
    said = denied(world, "thief", node)
    assert said.endswith(f"being bound there: gang {world.namespace}/g")
    assert world.bound() == 0


@pytest.mark.core
@pytest.mark.real
def test_a_denied_kube_scheduler_says_why_and_finds_another_node(committing, kube_scheduler):
    world = committing.world
    kube_scheduler()
    world.create_pod(pod("other", scheduler="default-scheduler"))
    note = world.wait_event("FailedScheduling", f"being bound there: gang {world.namespace}/g")
    print(f"\n{note}")
    # Large, so that kube-scheduler likes it best: it knows nothing of the gang's binds under way,
    # and among equal nodes it may choose the same one again.
    (free,) = world.nodes(1, prefix=f"{world.namespace}-free-", allocatable={"cpu": "64"})
    world.wait_bound(1)
    assert world.where() == {"other": free}


@pytest.mark.core
@pytest.mark.real
def test_beside_kube_scheduler_under_contention_no_node_is_overcommitted(guarded, kube_scheduler):
    kube_scheduler()
    world = guarded
    first, *_ = world.nodes(4, allocatable={"cpu": "8"})
    world.create_pod(pod("probe", scheduler=FOREIGN))
    seen(world, "probe", node=first)  # the API server takes a new webhook up when it sees it
    gangs = [world.gang(f"g{i}", 4) for i in range(6)]
    singles = [
        pod(f"single-{i}", scheduler="default-scheduler", requests={"cpu": "2"}) for i in range(12)
    ]
    world.create_pods(*gangs, singles)

    def full() -> bool:
        assert not overcommitted(world)
        return sum(cpu_of(one) for one in world.pods() if "nodeName" in one["spec"]) >= 30

    def bound() -> list[str]:
        return [p["metadata"]["name"] for p in world.pods() if "nodeName" in p["spec"]]

    def whole() -> bool:
        assert not overcommitted(world)
        names = bound()
        return all(sum(one.startswith(f"g{i}-") for one in names) in (0, 4) for i in range(6))

    wait_for(full, "the nodes are full")
    world.settle()
    # A gang of which a bind was denied is made whole, or undone when its attempt's 60 s are over.
    wait_for(whole, "no gang is bound in part", timeout_s=90)
    names = bound()  # before the reviews are counted: kube-scheduler goes on binding
    answers = {
        answer: world.quorate.metric("quorate_guard_reviews_total", answer=answer)
        for answer in ("allowed", "denied", "unjudged")
    }
    print(f"\nguard reviews: {json.dumps(answers)}")
    assert answers["allowed"] + answers["unjudged"] >= len(names)


def cpu_of(one: dict) -> int:
    return int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])


@pytest.mark.core
def test_a_renewed_certificate_is_used_without_a_restart(guarded, webhook):
    (node,) = guarded.nodes(1, allocatable={"cpu": "4"})
    guarded.create_pod(pod("large", scheduler=FOREIGN, requests={"cpu": "5"}))
    seen(guarded, "large", node=node)
    webhook.trust_new_certificate()
    wait_for(lambda: "certificate was read again" in guarded.quorate.log(), "it was read again")
    # The API server trusts the new certificate only: with the old one the guard would not be asked.
    seen(guarded, "large", node=node)
    denied(guarded, "large", node)


def test_a_standby_lets_everything_through_and_denies_once_it_leads(apart, beside, webhook):
    leader = beside()
    wait_for(leader.leads, "the first leads")
    apart.quorate = standby = beside({"guard": webhook.settings})
    (node,) = apart.nodes(1, allocatable={"cpu": "4"})
    for name in ("a", "b", "c"):
        apart.create_pod(pod(name, scheduler=FOREIGN, requests={"cpu": "3"}))
    apart.bind("a", node)
    wait_for(lambda: apart.running() == 1, "the first runs")
    apart.bind("b", node)  # more than there is; but it cannot know what the leader commits to
    assert standby.metric("quorate_guard_reviews_total", answer="unjudged") == 2.0
    assert leader.stop() == 0
    wait_for(standby.leads, "the standby leads")
    seen(apart, "c", node=node)
    denied(apart, "c", node)


def test_through_a_service_connections_gather_at_the_leader(apart, beside, webhook):
    ports = free_port(), free_port()
    settings = [{**webhook.settings, "address": f"127.0.0.1:{port}"} for port in ports]
    replicas = [beside({"guard": each}) for each in settings]
    wait_for(lambda: any(one.leads() for one in replicas), "one leads")
    by_standby_first = sorted(zip(replicas, ports, strict=True), key=lambda one: one[0].leads())
    with Relay(*(("127.0.0.1", port) for _, port in by_standby_first)) as service:
        webhook.port = service.port
        webhook.update()
        (node,) = apart.nodes(1, allocatable={"cpu": "4"})
        apart.create_pod(pod("large", scheduler=FOREIGN, requests={"cpu": "5"}))
        (standby, _), (apart.quorate, _) = by_standby_first
        seen(apart, "large", node=node)
        for _ in range(30):
            denied(apart, "large", node, dry_run=True)
        let_through = standby.metric("quorate_guard_reviews_total", answer="unjudged")
        assert 1.0 <= let_through <= 2.0, "only what came before the leader had its connection"
        print(f"\n{let_through:g} let through, {service.connections} connections")


def test_off_by_default_there_is_one_port_and_it_is_the_health_port(apart, beside):
    running = beside()
    wait_for(running.leads, "it leads")
    assert listening(running.process.pid) == {running.port}


def test_on_there_is_one_more_port(guarded, webhook):
    expected = {guarded.quorate.port, webhook.port}
    assert listening(guarded.quorate.process.pid) == expected


def listening(pid: int) -> set[int]:
    """Return the TCP ports on which a process listens, from /proc."""
    sockets = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(link.readlink()))
        except FileNotFoundError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found
