"""Gangs with claims: whole or not at all, and devices are neither given twice nor kept."""

import numpy as np
from msgspec.structs import replace

from quorate.core.check.verify import verify_gang
from quorate.core.model import Allocation, DeviceId, Requirement, SelectorTerm
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    GangChanged,
    ObjectChanged,
    ObjectGone,
    PodChanged,
)
from quorate.core.model.devices import ClaimSpec, GivenDevice, PodClaim
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.reasons import Reason
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots
from quorate.core.scheduler import Scheduler
from quorate.shell.recording.checkpoint import capture, restore
from tests.unit.core.device_world import (
    choice,
    claim,
    device,
    first_of,
    gang,
    given,
    gpu_class,
    gpu_world,
    on,
    request,
    spec,
    written,
)
from tests.unit.core.world import World, binds_of, key


def test_each_member_gets_devices_of_its_own():
    w = gpu_world(2, 2)
    gang(w, "g", 4)
    plan = w.decide()
    devices = "gpu.example.com"
    assert given(plan) == [f"{devices}/n{n}/d{d}" for n in (0, 1) for d in (0, 1)]
    assert len(plan.gangs[0].binds) == 4


def test_with_too_few_devices_nothing_is_given_and_a_new_slice_wakes_the_gang():
    w = gpu_world(2, 1)
    key = gang(w, "g", 4)
    assert w.cycle() == {}
    assert "2 cannot allocate all claims" in w.why(key).message
    w.node("n2")
    assert w.cycle() == {}
    w.observe(ObjectChanged(on("n2", device("d0"))))
    assert len(w.cycle()) == 4


def test_what_one_gang_was_given_is_not_given_to_the_next_one_of_the_cycle_or_later():
    w = gpu_world(3)
    gang(w, "a", 2)
    gang(w, "b", 2)
    plan = w.decide()
    assert [bind.name for bind in binds_of(plan)] == ["a-0", "a-1"]
    written(w, plan)
    w.settle(plan)
    assert w.cycle() == {}
    w.observe(ObjectGone("ResourceClaim", "team", "a-0-gpu"))
    assert sorted(w.cycle()) == ["b-0", "b-1"]


def test_gangs_of_one_cycle_on_one_node_get_different_devices():
    w = gpu_world(4)
    gang(w, "a", 2)
    gang(w, "b", 2)
    plan = w.decide()
    assert len(plan.gangs) == 2
    assert len(set(given(plan))) == 4


def test_a_pod_of_no_gang_gets_its_device_under_a_profile_of_kube_schedulers():
    w = gpu_world(0, 1)
    w.scheduler = Scheduler(Policy(profiles=(("quorate", KUBE_SCHEDULER),)))
    w.node("n0")
    w.node("n1")
    w.observe(ObjectChanged(gpu_class()), ObjectChanged(on("n1", device("d0"))))
    w.observe(ObjectChanged(claim("c", owner="uid-p")))
    w.pod("p", device_claims=(PodClaim("gpu", "c", own=True),))
    assert given(w.decide()) == ["gpu.example.com/n1/d0"]


def test_members_with_one_kind_of_claim_are_one_class_whatever_their_claims_are_called():
    w = gpu_world(8)
    gang(w, "g", 4, spec(request(count=2)))
    plan = w.decide()
    assert len(given(plan)) == 8
    assert len(w.cluster.classes._by_selectors) == 1


def test_a_claim_that_several_pods_share_takes_them_all_to_its_node():
    w = gpu_world(1, 1)
    w.node("n1", cpu=3)
    w.observe(ObjectChanged(claim("shared")))
    key = w.object("g", 5)
    for index in range(5):
        w.pod(f"g-{index}", key, device_claims=(PodClaim("gpu", "shared", own=False),))
    plan = w.decide()
    assert {bind.node for bind in binds_of(plan)} == {"n0"}
    assert len(set(given(plan))) == 1
    assert all(bind.gives for bind in binds_of(plan))


def test_a_failed_bind_frees_devices_that_were_not_written():
    w = gpu_world(2)
    gang(w, "g", 2)
    plan = w.decide()
    refused = BindFailure.REFUSED
    w.observe(*(BindFailed(b.uid, b.node, refused, "no") for b in binds_of(plan)))
    again = w.decide(after_s=2.0)
    assert given(again) == given(plan)


def test_a_gang_that_waits_gives_back_what_a_plan_of_it_has_written():
    w = gpu_world(2)
    key = gang(w, "g", 2)
    plan = w.decide()
    written(w, plan)
    w.observe(*(BindFailed(b.uid, b.node, BindFailure.REFUSED, "no") for b in binds_of(plan)))
    assert w.decide().take_backs == (), "it starts again on what it has"
    w.observe(*(BindFailed(b.uid, b.node, BindFailure.REFUSED, "no") for b in binds_of(plan)))
    w.delete("g-1")
    later = w.decide(after_s=5.0)
    assert [one.claim for one in later.take_backs] == ["g-0-gpu"]
    assert later.take_backs[0].version == "2"
    assert w.why(key).members.bound == 0


def test_a_claim_that_is_being_taken_back_is_written_again_before_its_pod_is_bound():
    """The watch may be behind: the claim may hold nothing any more."""
    w = gpu_world(2)
    key = gang(w, "g", 2)
    plan = w.decide()
    written(w, plan)
    w.observe(*(BindFailed(b.uid, b.node, BindFailure.REFUSED, "no") for b in binds_of(plan)))
    pod = w.pods["g-1"]
    w.delete("g-1")
    assert [one.claim for one in w.decide(after_s=5.0).take_backs] == ["g-0-gpu"]
    w.tell(pod)
    again = w.decide(after_s=100.0)
    allocation = w.cluster.devices.claims["team", "g-0-gpu"].allocation
    gives = {bind.name: bind.gives for bind in binds_of(again)}
    assert [(one.claim, one.allocation) for one in gives["g-0"]] == [("g-0-gpu", allocation)]
    assert w.why(key).members.assumed == 2


def test_a_claim_that_others_use_is_never_taken_back():
    w = gpu_world(1)
    key = gang(w, "g", 2)
    plan = w.decide()
    assert not plan.gangs
    first = w.cluster.devices.claims["team", "g-0-gpu"]
    w2 = gpu_world(1)
    gang(w2, "one", 1)
    allocation = binds_of(w2.decide())[0].gives[0].allocation
    shared = replace(first, version="2", allocation=allocation, reserved_for=("uid-g-0", "other"))
    w.observe(ObjectChanged(shared))
    assert w.decide().take_backs == ()
    assert w.why(key).members.waiting == 2


def test_problems_of_claims_are_said_in_kube_schedulers_words():
    w = gpu_world(1)
    w.pod("a", device_claims=(PodClaim("gpu", None, own=True),))
    w.pod("b", device_claims=(PodClaim("gpu", "nowhere", own=False),))
    w.observe(ObjectChanged(claim("odd", spec(request(cls="absent")))))
    w.pod("c", device_claims=(PodClaim("gpu", "odd", own=False),))
    assert w.cycle() == {}
    said = {}
    for which in w.cluster.gangs:
        said[str(which)] = w.why(which).message
    assert 'pod "team/a": ResourceClaim not created yet' in said["team/a"]
    assert 'could not find ResourceClaim "team/nowhere"' in said["team/b"]
    assert "request r: device class absent does not exist" in said["team/c"]
    w.observe(ObjectChanged(gpu_class(name="absent")))
    assert list(w.cycle()) == ["c"]


def test_a_thousand_members_that_wait_for_their_claims_are_one_class():
    w = gpu_world(1)
    key = w.object("g", 1000)
    for index in range(1000):
        w.pod(f"g-{index}", key, device_claims=(PodClaim("gpu", None, own=True),))
    assert w.cycle() == {}
    assert len(w.cluster.classes._by_selectors) == 1


def test_verification_finds_a_device_that_two_claims_have_and_a_claim_out_of_reach():
    w = gpu_world(2)
    gang(w, "g", 2)
    plan = w.scheduler.decide(w.now_s)
    first = binds_of(plan)[0].gives[0].allocation
    assert verify_gang(plan.gangs[0], w.cluster) == []
    w.observe(ObjectChanged(claim("thief", allocation=first)))
    [twice] = verify_gang(plan.gangs[0], w.cluster)
    assert twice == f"device {first.devices[0].device} would have several claims"
    w.observe(ObjectGone("ResourceClaim", "team", "thief"))
    nowhere = SelectorTerm((Requirement("zone", "In", ("nowhere",)),))
    elsewhere = replace(first, nodes=(nowhere,))
    moved = replace(w.cluster.devices.claims["team", "g-0-gpu"], version="3", allocation=elsewhere)
    w.observe(ObjectChanged(moved))
    assert verify_gang(plan.gangs[0], w.cluster) == ["claim g-0-gpu is not available on node n0"]
    w.observe(ObjectGone("ResourceClaim", "team", "g-0-gpu"))
    assert verify_gang(plan.gangs[0], w.cluster) == ["claim g-0-gpu of pod g-0 has no devices"]


def test_a_checkpoint_holds_what_devices_are_and_who_has_them():
    w = gpu_world(2, 2)
    gang(w, "a", 2)
    plan = w.decide()
    written(w, plan)
    gang(w, "b", 1)
    w.decide()
    gang(w, "c", 3)
    state = capture(w.scheduler)
    again = Scheduler(w.scheduler.policy)
    restore(again, state)
    gang(w, "d", 1)
    news = [ObjectChanged(w.cluster.devices.claims["team", "d-0-gpu"])]
    news += [GangChanged(w.specs[key("d")]), PodChanged(w.pods["d-0"])]
    again.observe(news)
    expected, found = w.decide(), again.decide(w.now_s)
    assert [b.name for b in binds_of(expected)] == ["d-0"]
    assert found.gangs == expected.gangs


def class_with(w: World, *claims: str, own: str = ""):
    """The class of a pod that uses these claims, of which ``own`` is its alone."""
    name = "-".join(claims)
    w.pod(name, device_claims=tuple(PodClaim(c, c, own=c == own) for c in claims))
    pod = w.cluster.pods[f"uid-{name}"].pod
    base = w.cluster.classes.of(pod.spec)
    return w.cluster.classes.variant(base, frozenset(), device_needs=w.cluster.device_needs.of(pod))


def test_a_claim_that_gangs_share_is_settled_by_the_first_of_a_cycle_before_it_is_assumed():
    """Nothing is told to the cluster here: what the first one got shows in the room alone."""
    w = gpu_world(2, 2)
    lists = spec(first_of(choice(name="nine", count=9), choice(name="one")))
    w.observe(ObjectChanged(claim("shared", lists)))
    w.observe(ObjectChanged(claim("mine", owner="uid-shared-mine")))
    first, second = class_with(w, "shared"), class_with(w, "shared", "mine", own="mine")
    room = Room(w.cluster.snapshot(), RuleCache())
    key = "team", "shared"
    assert room.device_room.allocation(key) is None
    trial = room.copy()
    trial.take(first, np.array([1, 0]))
    assert (room.device_room.allocation(key), room.device_room.is_settled(first.device_needs)) == (
        None,
        False,
    )
    room.take(first, np.array([0, 1]))
    device_room = room.device_room
    given = device_room.allocation(key)
    [(_, handed)] = device_room.pop_allocations(first.id, 1)
    assert handed == given
    assert str(given.devices[0].device) == "gpu.example.com/n1/d0"
    assert device_room.is_settled(first.device_needs)
    assert not device_room.is_settled(second.device_needs)
    assert [(one.nodes, one.score) for one in device_room.allocated(second.device_needs)] == [
        (given.nodes, 7)
    ]
    assert pod_slots(second, room).tolist() == [0, 1], "it goes where the claim is, and one is left"
    assert not device_room.is_tied(second.device_needs)
    room.take(second, np.array([0, 1]))
    [(place, own)] = room.device_room.pop_allocations(second.id, 1)
    assert (place, str(own.devices[0].device)) == (1, "gpu.example.com/n1/d1")
    assert room.device_room.allocation(key) == given, "it is given once"
    assert room.copy().device_room.allocation(key) == given
    assert w.cluster.devices.allocation(key) is None


def test_what_a_claim_has_in_the_cluster_is_its_allocation_in_the_room_too():
    w = gpu_world(1)
    allocation = Allocation((GivenDevice("r", DeviceId("gpu.example.com", "n0", "d0")),))
    w.observe(ObjectChanged(claim("theirs", allocation=allocation)))
    room = Room(w.cluster.snapshot(), RuleCache())
    assert room.device_room.allocation(("team", "theirs")) == allocation
    assert room.device_room.allocation(("team", "nobody's")) is None


def test_two_gangs_that_share_a_claim_are_placed_in_one_cycle_on_its_node():
    w = gpu_world(1, 1)
    w.node("n1", cpu=8)
    w.observe(ObjectChanged(claim("shared")))
    for name in ("a", "b"):
        which = w.object(name, 2)
        for index in range(2):
            pod = f"{name}-{index}"
            w.pod(pod, which, device_claims=(PodClaim("gpu", "shared", own=False),))
    plan = w.decide()
    assert len(plan.gangs) == 2
    assert len({bind.node for bind in binds_of(plan)}) == 1
    assert len(set(given(plan))) == 1


def test_a_claim_that_a_pod_names_twice_is_one_claim():
    """Each entry got devices of its own, and the claim could not be forgotten any more."""
    w = gpu_world(3)
    w.observe(ObjectChanged(claim("shared")))
    entries = tuple(PodClaim(name, "shared", own=False) for name in ("a", "b"))
    w.pod("p", device_claims=entries)
    plan = w.decide()
    assert given(plan) == ["gpu.example.com/n0/d0"]
    w.observe(ObjectGone("ResourceClaim", "team", "shared"))
    assert w.scheduler.incidents() == []


def kinds_world() -> World:
    """Three nodes; each has a device d0 of its own, and the first node's is of another class."""
    w = World()
    for kind in ("big", "small"):
        selector = f'device.attributes["gpu.example.com"].kind == "{kind}"'
        w.observe(ObjectChanged(gpu_class(selector, name=kind)))
    for node, kind in (("n0", "big"), ("n1", "small"), ("n2", "small")):
        w.node(node)
        w.observe(ObjectChanged(on(node, device("d0", attributes={"kind": kind}))))
    return w


def test_what_the_first_node_has_decides_nothing_on_the_others():
    w = kinds_world()
    gang(w, "g", 2, spec(request(cls="small")))
    assert given(w.decide()) == [f"gpu.example.com/{node}/d0" for node in ("n1", "n2")]


def test_a_pool_of_two_nodes_is_left_out():
    """One device was counted once for each of them, and planning met a defect."""
    w = kinds_world()
    for node in ("n1", "n2"):
        small = device("d0", attributes={"kind": "small"})
        w.observe(ObjectChanged(on(node, small, pool="both")))
    which = gang(w, "g", 2, spec(request(cls="small")))
    assert w.cycle() == {}
    assert "cannot allocate all claims" in w.why(which).message
    assert w.scheduler.incidents() == []


def hint_of(why) -> str:
    [blocker] = why.blockers
    return blocker.hint


def test_what_is_not_supported_waits_with_the_object_and_the_field():
    w = gpu_world(1)
    w.observe(ObjectChanged(claim("odd", ClaimSpec(defect="spec.x is not supported"))))
    w.pod("a", device_claims=(PodClaim("gpu", "odd", own=False),))
    w.observe(ObjectChanged(claim("theirs", allocation=Allocation(()), unusable="status.y is not")))
    w.pod("b", device_claims=(PodClaim("gpu", "theirs", own=False),))
    assert w.cycle() == {}
    said = {str(which): w.why(which) for which in w.cluster.gangs}
    assert {one.reason for one in said.values()} == {Reason.CLAIM_NOT_USABLE}
    assert "ResourceClaim team/odd: spec.x is not supported" in hint_of(said["team/a"])
    assert "ResourceClaim team/theirs: status.y is not" in hint_of(said["team/b"])


def test_devices_that_are_given_to_nobody_are_named_by_their_slice_and_field():
    w = gpu_world(0)
    w.observe(ObjectChanged(on("n0", device("d0"), device("d1", closed="consumesCounters"))))
    which = gang(w, "g", 2)
    assert w.cycle() == {}
    words = "devices of ResourceSlice n0-slice are left out: spec.devices[1].consumesCounters"
    assert words in hint_of(w.why(which))
    w.observe(ObjectChanged(on("n0", device("d0"), device("d1"))))
    assert len(w.cycle()) == 2


def test_a_resource_that_a_class_backs_waits_until_a_node_lists_it():
    w = gpu_world(1, of=gpu_class(extended="example.com/gpu"))
    which = w.gang("g", 1, requests={"example.com/gpu": 1})
    assert w.cycle() == {}
    why = w.why(which)
    assert why.reason is Reason.CLAIM_NOT_USABLE
    assert "backed by spec.extendedResourceName of DeviceClass gpu" in hint_of(why)
    w.node("n1", **{"example.com/gpu": 1})
    assert len(w.cycle()) == 1
