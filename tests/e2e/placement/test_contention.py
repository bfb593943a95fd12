"""More is wanted than there is: gangs wait whole, and start at once when there is room."""

import time

import pytest

from tests.e2e.harness.recording_proxy import Recording
from tools.objects import pod
from tools.testing import wait_for


def bound_by_gang(world, gangs: list[str]) -> dict[str, int]:
    bound = [p["metadata"]["labels"]["gang"] for p in world.pods() if "nodeName" in p["spec"]]
    return {gang: bound.count(gang) for gang in gangs}


def print_delay(world, count: int, started_s: float, selector: str) -> None:
    """Wait until all are bound; say how long it took, and fail only far beyond what is promised."""
    world.wait_bound(count, selector)
    print(f"\nroom appeared -> {count} members bound: {time.monotonic() - started_s:.2f} s")


@pytest.mark.core
@pytest.mark.parametrize("how", ["a node is added", "a pod is deleted", "a node is uncordoned"])
def test_n_wanted_and_room_for_n_less_2_all_wait_and_all_start_when_room_appears(world, how):
    (node,) = world.nodes(1, allocatable={"cpu": "8"})
    more = f"{world.namespace}-more-"
    if how == "a pod is deleted":
        world.create_pod(pod("holder", requests={"cpu": "2"}))
        world.wait_bound(1)
    if how == "a node is uncordoned":
        world.nodes(1, prefix=more)
        world.cordon(f"{more}0")
    wanted = 8 if how == "a pod is deleted" else 10
    world.create_pods(world.gang("g", wanted))
    fit = 6 if how == "a pod is deleted" else 8
    sentence = world.wait_condition(f"{wanted} members must start together and {fit} fit")
    assert "Insufficient cpu" in sentence
    world.stays_unbound("gang=g")

    started_s = time.monotonic()
    if how == "a node is added":
        world.nodes(1, prefix=more)
    elif how == "a pod is deleted":
        world.delete_pod("holder")
    else:
        world.uncordon(f"{more}0")
    print_delay(world, wanted, started_s, "gang=g")
    assert node in world.where("gang=g").values()


def test_while_nothing_changes_nothing_is_decided_and_nothing_asked(apart, beside):
    """But for the lease, which is renewed."""
    with Recording(apart.cluster.server, str(apart.cluster.ca)) as proxy:
        apart.quorate = beside(through=proxy.url)
        apart.nodes(1, allocatable={"cpu": "1"}, labels={"pool": "a"})
        gangs = [apart.gang(f"g{i}", 10, nodeSelector={"pool": "a"}) for i in range(10)]
        apart.create_pods(*gangs)
        wait_for(lambda: len(apart.conditions()) == 100, "all were told")
        apart.nodes(5, prefix=f"{apart.namespace}-other-", labels={"pool": "b"})
        apart.stays_unbound()

        def done() -> tuple[float, int]:
            asked = sum("/leases/" not in path for _, path in proxy.requests)
            return apart.quorate.metric("quorate_cycles_total"), asked

        def quiet() -> bool:
            before = done()
            time.sleep(2.0)
            return done() == before

        # Not at the first look: the namespaces of earlier tests may still be on their way out.
        wait_for(quiet, "for two seconds nothing is decided and nothing asked")
        assert apart.quorate.stop() == 0


def test_of_twenty_interleaved_gangs_five_start_whole_and_the_others_follow_without_deadlock(world):
    names = [f"g{i}" for i in range(20)]
    gangs = [world.gang(name, 4) for name in names]
    world.create_pods(*gangs)  # all wait: there is no node yet
    world.nodes(5, allocatable={"cpu": "4"})
    ever: set[str] = set()

    def settled() -> bool:
        counts = bound_by_gang(world, names)
        ever.update(name for name, count in counts.items() if count)
        assert sum(counts.values()) <= 20
        return sorted(counts.values()) == [0] * 15 + [4] * 5

    wait_for(settled, "exactly five run whole")
    world.stays_bound(20)
    assert settled()
    assert len(ever) == 5, "no other gang ever held anything"

    started = sorted(ever)
    rest = [name for name in names if name not in started]
    for gone in started:
        world.delete_pods(f"gang={gone}")
        wait_for(lambda: any(bound_by_gang(world, rest).values()), "another takes its place")
    wait_for(
        lambda: sorted(bound_by_gang(world, names).values()) == [0] * 15 + [4] * 5,
        "five others run whole",
    )
