"""Writes before binds, and taking them back: what is sent, and what becomes of refusals."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from quorate.core.model import GangKey
from quorate.core.model.changes import PrepareFailed, Undone
from quorate.core.model.plan import Bind, GangBinds, Plan, Prepare, Undo
from quorate.shell.commit.volume_claims import VolumeClaims
from quorate.shell.kube.client import KubeClient
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    refusal,
    serving,
    writer_of,
)
from tools.testing import HANGS_S

KEY = GangKey("team", "x-k8s", "job")
MADE = Prepare("team", "data", "uid-data", "n0")
KEPT = Prepare("team", "data", "uid-data", "n0", "pv-1", version="7")
DONE = answer(200, {})


def of(*prepare, deadline_s=2000.0):
    binds = (Bind("uid-1", "team", "job-0", "n0", prepare),)
    gang = GangBinds(key=KEY, attempt="a-1", size=1, deadline_s=deadline_s, binds=binds)
    return Plan(preparing=(gang,))


def undoing(*prepare):
    return Plan(undo=(Undo(KEY, prepare),))


@asynccontextmanager
async def preparing(*steps, may_write=lambda: True):
    outcomes: list = []
    async with (
        serving(ScriptedServer(*steps)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=4) as client,
    ):
        volume_claims = VolumeClaims(
            writer_of(client, may_write), on_change=outcomes.append, clock=ManualClock()
        )
        yield volume_claims, outcomes, server
        await volume_claims.close()


async def settled(volume_claims):
    async with asyncio.timeout(HANGS_S):
        while volume_claims.is_busy:
            await asyncio.sleep(0.01)


async def sent_for(plan, *steps):
    async with preparing(*steps) as (volume_claims, outcomes, server):
        volume_claims.carry_out(plan)
        await settled(volume_claims)
        bodies = [json.loads(body) for body in server.bodies]
        return [request.path for request in server.requests], bodies, outcomes


async def test_a_claim_is_told_its_node_if_it_is_still_the_same_claim():
    [path], [body], outcomes = await sent_for(of(MADE), DONE)
    assert path == "/api/v1/namespaces/team/persistentvolumeclaims/data"
    assert body == {
        "metadata": {
            "uid": "uid-data",
            "annotations": {"volume.kubernetes.io/selected-node": "n0"},
        }
    }
    assert outcomes == []


async def test_a_volume_is_kept_for_the_claim_if_it_has_not_changed():
    [path], [body], outcomes = await sent_for(of(KEPT), DONE)
    assert path == "/api/v1/persistentvolumes/pv-1"
    assert body["metadata"] == {
        "resourceVersion": "7",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert body["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "team",
        "name": "data",
        "uid": "uid-data",
    }
    assert outcomes == []


async def test_what_is_written_already_is_not_written_again():
    written = Prepare("team", "data", "uid-data", "n0", written=True)
    assert await sent_for(of(written)) == ([], [], [])


@pytest.mark.parametrize("status", [403, 404, 409, 422])
async def test_a_refusal_is_told_with_the_object_it_is_about(status):
    _, _, outcomes = await sent_for(of(KEPT), refusal(status, "No"))
    [failed] = outcomes
    assert isinstance(failed, PrepareFailed)
    assert (failed.key, failed.attempt, failed.node) == (KEY, "a-1", "n0")
    assert failed.message.startswith("volume pv-1 cannot be written: ")


async def test_a_passing_trouble_is_tried_again():
    paths, _, outcomes = await sent_for(of(MADE), refusal(503, "Busy"), DONE)
    assert len(paths) == 2
    assert outcomes == []


async def test_a_conflict_after_a_lost_answer_may_be_our_own_write():
    paths, _, outcomes = await sent_for(of(KEPT), refusal(500, "Lost"), refusal(409, "Conflict"))
    assert len(paths) == 2
    assert outcomes == []


async def test_only_what_we_wrote_is_taken_back():
    [path], [steps], outcomes = await sent_for(undoing(MADE), DONE)
    assert path == "/api/v1/namespaces/team/persistentvolumeclaims/data"
    note = "/metadata/annotations/volume.kubernetes.io~1selected-node"
    assert steps == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-data"},
        {"op": "test", "path": note, "value": "n0"},
        {"op": "remove", "path": note},
    ]
    assert outcomes == [Undone(KEY)]


async def test_a_volume_that_is_bound_by_now_keeps_its_claim():
    [path], [steps], outcomes = await sent_for(undoing(KEPT), refusal(422, "Invalid"))
    assert path == "/api/v1/persistentvolumes/pv-1"
    assert {"op": "test", "path": "/status/phase", "value": "Available"} in steps
    assert outcomes == [Undone(KEY)]


async def test_what_is_taken_back_was_written_before():
    async with preparing(DONE, DONE) as (volume_claims, outcomes, server):
        volume_claims.carry_out(of(MADE))
        volume_claims.carry_out(undoing(MADE))
        await settled(volume_claims)
        assert [type(json.loads(body)) for body in server.bodies] == [dict, list]
        assert outcomes == [Undone(KEY)]


async def test_who_does_not_lead_writes_nothing():
    async with preparing(may_write=lambda: False) as (volume_claims, _outcomes, server):
        volume_claims.carry_out(of(MADE))
        await settled(volume_claims)
        assert server.requests == []
