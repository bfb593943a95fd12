"""Devices are not given twice while writes and the watch are on their way."""

import pytest
from msgspec.structs import replace

from quorate.core.model import Allocation, DeviceId
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    ClaimWritten,
    ObjectChanged,
    ObjectGone,
    PodBound,
)
from quorate.core.model.devices import GivenDevice, PodClaim
from tests.unit.core.device_world import TEAM, claim, gang, given, gpu_world
from tests.unit.core.world import binds_of, fail

SHARED = TEAM, "shared"


def sharing(w, *names: str) -> None:
    """Pods of no gang that use one claim."""
    w.observe(ObjectChanged(claim("shared")))
    for name in names:
        w.pod(name, device_claims=(PodClaim("gpu", "shared", own=False),))


def told(w, version: str, allocation=None, *users: str) -> None:
    """The watch tells of a newer version of the shared claim."""
    reserved = tuple(f"uid-{user}" for user in users)
    before = w.cluster.devices.claims[SHARED]
    new = {"version": version, "allocation": allocation, "reserved_for": reserved}
    w.observe(ObjectChanged(replace(before, **new)))


def test_what_was_written_stays_given_though_the_bind_fails_before_the_watch_tells():
    w = gpu_world(1)
    gang(w, "first", 1)
    plan = w.decide()
    [give] = binds_of(plan)[0].gives
    before = w.cluster.devices.claims["team", "first-0-gpu"]
    now = replace(before, version="20", allocation=give.allocation, reserved_for=("uid-first-0",))
    w.observe(ClaimWritten(now))
    w.settle(plan, fail(BindFailure.TIMEOUT))
    w.observe(ObjectChanged(replace(before, version="3")))  # the watch is late
    w.delete("first-0")
    gang(w, "second", 1)
    assert given(w.decide(100)) == []


@pytest.mark.parametrize(
    ("leave", "failure"),
    [
        (lambda w: w.delete("first-0"), BindFailure.GONE),
        (lambda w: w.edit("first-0", phase="Failed"), BindFailure.REFUSED),
    ],
)
def test_devices_of_a_pod_that_goes_or_ends_are_not_given_while_its_bind_is_under_way(
    leave, failure
):
    w = gpu_world(1)
    gang(w, "first", 1)
    plan = w.decide()
    leave(w)
    gang(w, "second", 1)
    assert given(w.decide(1)) == []
    w.settle(plan, fail(failure))
    assert given(w.decide(1)) == ["gpu.example.com/n0/d0"]


def test_devices_stay_given_while_any_pod_of_their_claim_is_under_way():
    """The claim is allocated for the first pod, which goes; the write of the second one is late."""
    w = gpu_world(1)
    sharing(w, "a", "b")
    plan = w.decide()
    allocation = binds_of(plan)[0].gives[0].allocation
    told(w, "5", allocation, "a")
    w.observe(PodBound("uid-a", "n0"))
    w.delete("a")
    told(w, "6")
    gang(w, "other", 1)
    assert given(w.decide(1)) == []
    w.observe(BindFailed("uid-b", "n0", BindFailure.REFUSED, "no"))
    w.delete("b")
    assert given(w.decide(1)) == ["gpu.example.com/n0/d0"]


def test_devices_on_which_a_pod_relies_stay_given_while_its_bind_is_under_way():
    """Its claim has them already. It may lose them, and the write for the pod gives them again."""
    w = gpu_world(1)
    sharing(w, "a")
    allocation = Allocation((GivenDevice("r", DeviceId("gpu.example.com", "n0", "d0")),))
    told(w, "5", allocation, "gone")
    plan = w.decide()
    assert [give.allocation for give in binds_of(plan)[0].gives] == [allocation]
    told(w, "6")
    gang(w, "other", 1)
    assert given(w.decide(1)) == []


def test_a_claim_keeps_what_somebody_else_wrote_and_what_is_under_way():
    w = gpu_world(2)
    sharing(w, "a")
    plan = w.decide()
    [mine] = given(plan)
    other = Allocation((GivenDevice("r", DeviceId("gpu.example.com", "n0", "d1")),))
    assert mine == "gpu.example.com/n0/d0"
    told(w, "5", other, "somebody")
    gang(w, "other", 1)
    assert given(w.decide(1)) == []
    w.observe(BindFailed("uid-a", "n0", BindFailure.REFUSED, "it got other devices"))
    assert w.cluster.devices.allocation(SHARED) == other
    assert w.cluster.devices.holders(other.devices[0].device) == 1
    assert w.cluster.devices.holders(DeviceId("gpu.example.com", "n0", "d0")) == 0


@pytest.mark.parametrize("again", [False, True])
def test_a_claim_that_is_gone_keeps_nothing_whatever_is_under_way(again):
    """No write reaches it, or one of its name."""
    w = gpu_world(1)
    sharing(w, "a")
    assert given(w.decide()) == ["gpu.example.com/n0/d0"]
    if again:
        w.observe(ObjectChanged(replace(claim("shared"), uid="another")))
    else:
        w.observe(ObjectGone("ResourceClaim", *SHARED))
    gang(w, "other", 1)
    assert given(w.decide(1)) == ["gpu.example.com/n0/d0"]
