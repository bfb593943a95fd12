"""Devices are not given twice while writes and the watch are on their way."""

from msgspec.structs import replace

from quorate.core.model.changes import BindFailure, ClaimWritten, ObjectChanged
from tests.unit.core.devices.test_device_gangs import gang, given, gpu_world
from tests.unit.core.world import binds_of, fail


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


def test_devices_of_a_pod_that_goes_are_not_given_again_while_its_bind_is_under_way():
    w = gpu_world(1)
    gang(w, "first", 1)
    plan = w.decide()
    w.delete("first-0")
    gang(w, "second", 1)
    assert given(w.decide(1)) == []
    w.settle(plan, fail(BindFailure.GONE))
    assert given(w.decide(1)) == ["gpu.example.com/n0/d0"]
