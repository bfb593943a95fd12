"""Claims before binds: all of a gang's are written before one of its pods is bound."""

import json

import pytest
from msgspec.structs import replace

from quorate.core.model.changes import BindFailed, BindFailure
from quorate.core.model.plan import Bind, TakeBack
from tests.unit.shell.commit.writing_claims import (
    BIND,
    GIVE,
    OTHER,
    OURS,
    after,
    claim,
    gang,
    writing,
)
from tests.unit.shell.scripted_server import may, refusal

PATH = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/c0"


async def test_a_gang_without_claims_passes_through():
    async with writing() as (claims, bound, _, server):
        plain = gang(replace(BIND, gives=()))
        claims.submit(plain)
        assert bound == [plain]
        assert not server.requests


async def test_a_later_plan_of_an_attempt_waits_for_the_claims_of_earlier_ones_and_completes_it():
    """Sent before them, it would mark its gang as started while none of them is bound."""
    async with writing(claim(), claim()) as (claims, bound, _, _server):
        first, later = gang(BIND), gang(Bind("uid-1", "team", "g-1", "n0"))
        claims.submit(first)
        claims.submit(later)
        assert not bound
        await after(claims)
        assert bound == [replace(first, first=1), later]
        claims.submit(later)
        assert bound[2:] == [later]


async def test_a_later_plan_is_handed_on_when_the_claims_of_an_earlier_one_failed():
    """The binder asks then whether the gang is complete with it."""
    async with writing(refusal(404, "NotFound")) as (claims, bound, outcomes, _):
        later = gang(Bind("uid-1", "team", "g-1", "n0"))
        claims.submit(gang(BIND))
        claims.submit(later)
        await after(claims)
        assert [one.uid for one in outcomes] == ["uid-0"]
        assert bound == [later]


async def test_a_gang_that_starts_anew_waits_for_a_replacement_whose_claims_are_being_written():
    """It counts on that one, and would be marked as started with less than its min."""
    async with writing(claim(), claim()) as (claims, bound, _, _server):
        replacement = replace(gang(BIND), started=True)
        anew = gang(Bind("uid-1", "team", "g-1", "n0"))
        claims.submit(replacement)
        claims.submit(anew)
        assert not bound
        await after(claims)
        assert bound == [replace(replacement, first=1, started=False), anew]


async def test_replacements_in_a_started_gang_and_other_attempts_wait_for_no_claims_but_their_own():
    async with writing(claim(), claim()) as (claims, bound, _, _server):
        claims.submit(gang(BIND))
        plain = gang(Bind("uid-1", "team", "g-1", "n0"))
        for other in (replace(plain, started=True), replace(plain, attempt="b")):
            claims.submit(other)
            assert bound.pop() == other
        await after(claims)
        assert bound == [gang(BIND)]


async def test_finalizer_then_allocation_and_reservation_then_the_binds():
    async with writing(claim(), claim()) as (claims, bound, _, server):
        claims.submit(gang(BIND))
        assert not bound
        await after(claims)
        assert [one.path for one in server.requests] == [PATH, f"{PATH}/status"]
        first, second = (json.loads(body) for body in server.bodies)
        assert first["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert second["metadata"] == {"uid": "claim-uid", "resourceVersion": "5"}
        [result] = second["status"]["allocation"]["devices"]["results"]
        assert result == {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}
        assert second["status"]["allocation"]["allocationTimestamp"].endswith("Z")
        assert second["status"]["reservedFor"] == [
            {"resource": "pods", "name": "g-0", "uid": "uid-0"}
        ]
        assert len(bound) == 1


async def test_what_was_written_is_told_at_once_the_watch_may_be_late():
    told: list[bytes] = []
    async with writing(claim(), claim(resourceVersion="7"), told=told) as (claims, *_):
        claims.submit(gang(BIND))
        await after(claims)
    assert [json.loads(raw)["metadata"]["resourceVersion"] for raw in told] == ["7"]


async def test_a_claim_that_has_devices_is_only_reserved_once_for_all_its_pods():
    binds = [Bind(f"uid-{i}", "team", f"g-{i}", "n0", gives=(GIVE,)) for i in range(3)]
    async with writing(claim(OURS), claim()) as (claims, bound, _, server):
        claims.submit(gang(*binds))
        await after(claims)
        _, body = (json.loads(one) for one in server.bodies)
        assert [one["uid"] for one in body["status"]["reservedFor"]] == ["uid-0", "uid-1", "uid-2"]
        assert body["metadata"] == {"uid": "claim-uid", "resourceVersion": "5"}
        assert "allocation" not in body["status"]
        assert len(bound) == 1


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([claim(OTHER)], "it got other devices meanwhile"),
        ([claim(deletionTimestamp="2026-01-01T00:00:00Z")], "it is being deleted"),
        ([refusal(404, "NotFound")], "it does not exist any more"),
        ([claim(), refusal(403, "Forbidden", "a webhook says no"), may(True)], "says no"),
        ([refusal(403, "Forbidden", "no"), refusal(403, "Forbidden", "do not ask")], "no"),
    ],
)
async def test_what_cannot_be_written_binds_nobody(steps, said):
    other = Bind("uid-1", "team", "g-1", "n0")
    async with writing(*steps) as (claims, bound, outcomes, _):
        claims.submit(gang(BIND, other))
        await after(claims)
        assert not bound
        first, second = outcomes
        assert isinstance(first, BindFailed)
        assert first.failure is BindFailure.REFUSED
        assert first.message.startswith("claim team/c0: ")
        assert said in first.message
        assert second.failure is BindFailure.NOT_SENT


async def test_a_conflict_starts_from_the_claim_as_it_is_by_then():
    steps = (claim(), refusal(409, "Conflict"), claim(), claim())
    async with writing(*steps) as (claims, bound, outcomes, server):
        claims.submit(gang(BIND))
        await after(claims)
        assert len(bound) == 1
        assert not outcomes
        assert len(server.requests) == 4


async def test_who_may_not_write_any_more_leaves_the_gang_to_the_successor():
    async with writing(may_write=lambda: False) as (claims, bound, outcomes, server):
        claims.submit(gang(BIND))
        await after(claims)
        assert (bound, outcomes, server.requests) == ([], [], [])


async def test_devices_are_taken_back_once_from_the_version_that_was_seen():
    back = TakeBack("team", "c0", "claim-uid", "5", "uid-0")
    async with writing(claim()) as (claims, _, _, server):
        claims.take_back([back])
        claims.take_back([back])
        await after(claims)
        [body] = (json.loads(one) for one in server.bodies)
        assert body["metadata"] == {"uid": "claim-uid", "resourceVersion": "5"}
        assert body["status"] == {"allocation": None, "reservedFor": None, "devices": None}


async def test_without_the_right_the_gang_is_told_which_and_how_to_grant_it():
    """It was told what RBAC says, a claim each, and no way out of it."""
    gives = [replace(GIVE, claim=f"c{i}") for i in range(2)]
    binds = [Bind(f"uid-{i}", "team", f"g-{i}", "n0", gives=(gives[i],)) for i in range(2)]
    no = refusal(403, "Forbidden", "cannot")
    async with writing(no, no, may(False)) as (claims, bound, outcomes, server):
        claims.submit(gang(*binds))
        await after(claims)
    assert not bound
    assert [one.failure for one in outcomes] == [BindFailure.REFUSED] * 2
    for one in outcomes:
        assert one.message.startswith("quorate may not patch ResourceClaims")
        assert "quorate manifests, without the option --without devices" in one.message
    asked = json.loads(server.bodies[-1])["spec"]["resourceAttributes"]
    right = {"verb": "patch", "group": "resource.k8s.io", "resource": "resourceclaims"}
    assert asked == right | {"namespace": "team"}
    assert len(server.requests) == 3, "one question for the gang"
