"""Writes of claims that may yet arrive are made too old before anybody relies on it."""

import json

import pytest
from msgspec.structs import replace

from quorate.core.model.changes import BindFailure
from quorate.core.model.plan import GangBinds, TakeBack
from quorate.core.model.policy import LATE_S
from tests.unit.shell.commit.writing_claims import (
    BIND,
    OTHER,
    OURS,
    after,
    claim,
    gang,
    writing,
)
from tests.unit.shell.scripted_server import ManualClock, gone, may, refusal

LOST = refusal(500, "InternalError", "etcdserver: request timed out")
"""Nobody knows whether it was carried out, or will be."""
FINALIZER = "resource.kubernetes.io/delete-protection"


def after_its_time() -> GangBinds:
    """A gang whose claims are tried once."""
    return replace(gang(BIND), deadline_s=0.0)


async def test_a_write_that_may_yet_arrive_is_made_too_old_before_its_failure_is_told():
    """It carries the version of the claim that had the finalizer: without it, the version is new.

    Until then the core keeps the devices from others.
    """
    there = claim(finalizers=[FINALIZER])
    newer = claim(finalizers=[FINALIZER], resourceVersion="6")
    steps = claim(), LOST, there, refusal(409, "Conflict"), newer, claim()
    async with writing(*steps) as (claims, bound, outcomes, server):
        claims.submit(after_its_time())
        await after(claims)
        assert [one.method for one in server.requests] == [
            *("PATCH", "PATCH"),
            *("GET", "PATCH", "GET", "PATCH"),
        ]
        assert json.loads(server.bodies[-1])["metadata"] == {
            "uid": "claim-uid",
            "resourceVersion": "6",
            "$deleteFromPrimitiveList/finalizers": [FINALIZER],
        }
        assert not bound
        assert [one.failure for one in outcomes] == [BindFailure.REFUSED]


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (claim(OURS), True),
        (claim(OTHER), True),
        (claim(), False),
        (claim(uid="another", finalizers=[FINALIZER]), False),
        (gone("c0"), False),
    ],
)
async def test_a_write_whose_answer_was_lost_is_looked_up_and_what_it_wrote_is_told(found, is_told):
    told: list[bytes] = []
    async with writing(claim(), LOST, found, told=told) as (claims, _, outcomes, server):
        claims.submit(after_its_time())
        await after(claims)
        assert server.requests[-1].method == "GET"
        assert len(server.requests) == 3
        assert len(told) == is_told
        assert [one.failure for one in outcomes] == [BindFailure.REFUSED]


@pytest.mark.parametrize(
    "plainly", [(refusal(429, "TooManyRequests"),), (refusal(403, "Forbidden"), may(True))]
)
async def test_a_write_that_was_plainly_refused_is_not_looked_up(plainly):
    async with writing(claim(), *plainly) as (claims, _, outcomes, server):
        claims.submit(after_its_time())
        await after(claims)
        assert "GET" not in [one.method for one in server.requests]
        assert len(outcomes) == 1


async def test_a_write_that_cannot_be_looked_up_is_given_up_when_no_request_lasts_longer():
    clock = ManualClock()

    async def late(request):
        clock.time_s += LATE_S
        return await LOST(request)

    steps = claim(), LOST, LOST, late
    async with writing(*steps, clock=clock) as (claims, _, outcomes, server):
        claims.submit(after_its_time())
        await after(claims)
        assert len(server.requests) == 4
        assert [one.failure for one in outcomes] == [BindFailure.REFUSED]


async def test_a_claim_whose_taking_back_may_yet_arrive_gets_another_version_before_it_is_used():
    """To reserve it for the pod that has it changes nothing, so that it would still arrive."""
    back = TakeBack("team", "c0", "claim-uid", "5", "uid-0")
    newer = claim(OURS, resourceVersion="7")
    async with writing(LOST, claim(OURS), claim(OURS), newer, newer) as (claims, bound, _, server):
        claims.take_back([back])
        await after(claims)
        claims.submit(gang(BIND))
        await after(claims)
        _, _, bumped, again, written = (json.loads(one)["metadata"] for one in server.bodies)
        assert bumped == {
            "uid": "claim-uid",
            "resourceVersion": "5",
            "$deleteFromPrimitiveList/finalizers": [FINALIZER],
        }
        assert again["finalizers"] == [FINALIZER]
        assert written["resourceVersion"] == "7"
        assert len(bound) == 1
