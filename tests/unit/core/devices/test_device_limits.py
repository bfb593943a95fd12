"""What one pod, claim or node may make the planner do: each bound below, at and above its value."""

import sys

import numpy as np
import pytest

from quorate.core.model import policy
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.devices import PodClaim
from quorate.core.model.reasons import Reason
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.device_room import DeviceRoom
from quorate.core.room.devices.search import DeviceSearch
from quorate.core.rules.devices import dynamic_resources
from quorate.core.rules.filtering import pod_slots
from tests.unit.core.device_world import (
    Nodes2,
    choice,
    claim,
    device,
    first_of,
    gpu_class,
    many,
    on,
    request,
    seen,
    spec,
)
from tests.unit.core.world import World


def below_at_above(bound: int) -> list[tuple[int, bool]]:
    return [(bound - 1, True), (bound, True), (bound + 1, False)]


def problem_of(*specs, classes=()) -> str:
    pod_class, _ = Nodes2(*classes).ask(*specs)
    return pod_class.device_needs.problem


class AtDepth:
    """Leaves the interpreter so many more frames than there are, and no more."""

    def __init__(self, frames: int):
        self.frames = frames

    def __enter__(self):
        depth, frame = 0, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        self.before = sys.getrecursionlimit()
        sys.setrecursionlimit(depth + self.frames)

    def __exit__(self, *_):
        sys.setrecursionlimit(self.before)


def test_as_many_devices_as_a_pod_can_ask_for_need_no_recursion():
    claims, devices = policy.DEVICE_CLAIMS_PER_POD_MAX, policy.DEVICES_PER_CLAIM_MAX
    world = Nodes2(*many(claims * devices + 10))
    pod_class, room = world.ask(*[spec(request(count=devices))] * claims)
    with AtDepth(40):
        pods = room.device_room.pods(pod_class.device_needs, np.array([0]))
    assert pods.tolist() == [1], "and to find that a second pod does not fit needs none either"


@pytest.mark.parametrize(("count", "fits"), below_at_above(policy.DEVICES_PER_CLAIM_MAX))
def test_a_claim_gets_as_many_devices_as_the_api_allows(count, fits):
    found = Nodes2(*many(50)).given(spec(request(count=count)))
    if fits:
        assert [len(one) for one in found] == [count]
    else:
        assert found == f"number of requested devices {count} exceeds the claim limit of 32"


@pytest.mark.parametrize(("count", "fits"), below_at_above(policy.DEVICE_CLAIMS_PER_POD_MAX))
def test_a_pod_has_so_many_claims(count, fits):
    said = f"spec.resourceClaims has {count} entries, and at most 32 are looked at"
    assert problem_of(*[spec()] * count) == ("" if fits else said)


@pytest.mark.parametrize(("count", "fits"), below_at_above(policy.DEVICE_CHOICES_PER_POD_MAX))
def test_a_pods_claims_have_so_many_choices(count, fits):
    choices = [choice(name=f"c{i}") for i in range(8)]
    lists = [first_of(*choices, name=f"r{i}") for i in range(count // 8 - 1)]
    rest = [request(name=f"x{i}") for i in range(8 + count % 8)]
    requests = [*lists, *rest]
    specs = [spec(*requests[i : i + 32]) for i in range(0, len(requests), 32)]
    said = "spec.devices.requests of all claims have 257 choices, and at most 256 are looked at"
    assert problem_of(*specs) == ("" if fits else said)


@pytest.mark.parametrize(("count", "fits"), below_at_above(policy.DEVICE_SELECTORS_PER_POD_MAX))
def test_a_pods_claims_have_so_many_selectors(count, fits):
    picky = gpu_class(*["true"] * 31, name="picky")
    specs = [spec(request("true", cls="picky"))] * (count // 32)
    specs.append(spec(request(*["true"] * (count % 32))))
    said = (
        "spec.devices.requests of all claims have 257 selectors, with those of their device"
        " classes, and at most 256 are looked at"
    )
    assert problem_of(*specs, classes=[picky]) == ("" if fits else said)


def test_a_pod_above_a_limit_is_not_placed_and_the_reason_names_the_field():
    w = World()
    w.node("n0")
    w.observe(ObjectChanged(gpu_class()))
    w.observe(ObjectChanged(on("n0", *(device(f"d{i}") for i in range(40)))))
    w.observe(*(ObjectChanged(claim(f"c{i}")) for i in range(33)))
    entries = tuple(PodClaim(f"c{i}", f"c{i}", own=False) for i in range(33))
    w.pod("p", device_claims=entries)
    assert w.cycle() == {}
    [which] = w.cluster.gangs
    said = "spec.resourceClaims has 33 entries, and at most 32 are looked at"
    assert said in w.why(which).message
    assert w.why(which).reason is Reason.CLAIM_NOT_USABLE
    w.pod("q", device_claims=entries[:32])
    assert w.cycle() == {"q": "n0"}


def looks_of(monkeypatch, limit: int):
    """Search where a later request cannot be met; return the answer, and devices examined."""
    monkeypatch.setattr(policy, "DEVICE_LOOKS_MAX", limit)
    world = Nodes2(on("n0", *(device(f"d{i}", attributes={"model": f"m{i}"}) for i in range(9))))
    pod_class, room = world.ask(spec(request(count=2), request(name="none", count=8)))
    search = DeviceSearch(*seen(room.device_room, pod_class.device_needs))
    return search.run(), search.examined


def test_a_search_looks_at_so_many_devices(monkeypatch):
    answer, looks = looks_of(monkeypatch, 10_000)
    assert answer is None
    assert looks_of(monkeypatch, looks + 1)[0] is None
    assert looks_of(monkeypatch, looks)[0] is None
    cut, _ = looks_of(monkeypatch, looks - 1)
    assert cut == Broken("the search for devices was cut short: it took too many steps")


@pytest.mark.parametrize("limit", range(1, 30))
def test_pods_that_are_counted_get_their_devices_however_soon_a_search_is_cut_short(
    monkeypatch, limit
):
    monkeypatch.setattr(policy, "DEVICE_LOOKS_MAX", limit)
    world = Nodes2(*many(6))
    pod_class, room = world.ask(spec())
    for left in range(int(pod_slots(pod_class, room)[0]), 0, -1):
        room.device_room.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
        found = room.device_room.pods(pod_class.device_needs, np.array([0])).tolist()
        assert found >= [left - 1]


@pytest.mark.parametrize(("devices", "counted"), [(4, 4), (5, 5), (6, 5), (20, 5)])
def test_so_many_pods_are_tried_on_one_kind_of_node(monkeypatch, devices, counted):
    monkeypatch.setattr(policy, "DEVICE_PODS_PER_NODE_MAX", 5)
    world = Nodes2(*many(devices))
    pod_class, room = world.ask(spec())
    assert pod_slots(pod_class, room)[0] == counted
    for left in range(devices - 1, -1, -1):
        room.device_room.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
        assert room.device_room.pods(pod_class.device_needs, np.array([0])).tolist() == [
            min(left, 5)
        ]


@pytest.mark.parametrize(("bound", "told_apart"), [(3, 1), (4, 2), (5, 2)])
def test_so_many_reasons_why_nodes_get_no_devices_are_told_apart(bound, told_apart, monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_REFUSALS_MAX", bound)
    w = Nodes2(on("n0", device("d0")), on("n1", device("d1")))
    pod_class, room = w.ask(spec(request()))
    broken = [Broken("no such key: a"), Broken("no such key: b")]
    monkeypatch.setattr(DeviceRoom, "for_one_pod", lambda *_: (np.array([0, 1]), broken))
    verdict = dynamic_resources.judge(pod_class, room)
    texts = [verdict.refusals[code - 1].message for code in verdict.codes.tolist()]
    assert texts == [broken[0], broken[told_apart - 1]]
