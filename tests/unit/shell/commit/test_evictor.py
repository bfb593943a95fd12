"""Evictions: each goes on until its pod is gone or going, whatever the API server answers."""

import asyncio

import pytest

from quorate.core.model import GangKey
from quorate.core.model.plan import Eviction
from quorate.shell.commit.evictor import Evictor
from tests.unit.shell.in_process import InProcess
from tests.unit.shell.scripted_server import ScriptedServer, answer, gone, refusal, writer_of

pytestmark = pytest.mark.virtual

EVICTION = Eviction("uid-1", "team", "job-0", GangKey("team", "x-k8s", "job"), "not in time")
DONE = answer(201, {"kind": "Status", "status": "Success"})
CONFLICT = refusal(409, "Conflict")
EVICT, LOOK = ("POST", "/eviction"), ("GET", "/job-0")


def pod(uid="uid-1", **metadata):
    return answer(200, {"metadata": {"uid": uid, "name": "job-0", **metadata}})


async def requests_of(*steps):
    """Evict one pod, and return what was asked of the API server."""
    server = ScriptedServer(*steps)
    evictor = Evictor(writer_of(InProcess(server)))
    evictor.submit([EVICTION])
    await evictor.writes.settled()
    return [(one.method, one.path[one.path.rindex("/") :]) for one in server.requests]


async def test_a_conflict_is_tried_again_while_the_pod_stays():
    assert await requests_of(CONFLICT, pod(), DONE) == [EVICT, LOOK, EVICT]


async def test_a_conflict_ends_it_when_the_pod_is_going():
    going = pod(deletionTimestamp="2026-01-01T00:00:00Z")
    assert await requests_of(CONFLICT, going) == [EVICT, LOOK]


async def test_a_conflict_ends_it_when_another_pod_has_the_name():
    assert await requests_of(CONFLICT, pod(uid="uid-2")) == [EVICT, LOOK]


async def test_a_pod_that_is_gone_needs_no_eviction():
    assert await requests_of(gone("job-0")) == [EVICT]


async def test_a_proxy_that_knows_no_path_says_nothing_of_the_pod():
    unknown = refusal(404, "NotFound")
    steps = (unknown, CONFLICT, unknown, answer(404, b"404 page not found"), DONE)
    assert await requests_of(*steps) == [EVICT, EVICT, LOOK, EVICT, EVICT]


async def test_others_wait_until_each_eviction_was_tried_but_not_for_one_that_is_held_up():
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request):
        asked.set()
        await go_on.wait()
        return await refusal(429, "TooManyRequests")(request)

    evictor = Evictor(writer_of(InProcess(ScriptedServer(slow))))
    assert evictor.idle.is_set()
    evictor.submit([EVICTION])
    await asked.wait()
    assert not evictor.idle.is_set()
    go_on.set()
    await evictor.idle.wait()
    assert len(evictor.writes), "it is tried again"
    await evictor.close()


async def test_others_do_not_wait_for_what_only_a_leader_may_evict():
    evictor = Evictor(writer_of(InProcess(ScriptedServer()), may_write=lambda: False))
    evictor.submit([EVICTION])
    await evictor.writes.settled()
    assert evictor.idle.is_set()


async def test_others_do_not_wait_for_an_eviction_that_meets_a_defect():
    writer, noted = writer_of(InProcess(ScriptedServer())), []
    writer.note = lambda stage, about, error: noted.append((stage, about))
    evictor = Evictor(writer)
    evictor.submit([Eviction("uid-2", "team", "..", GangKey("team", "x-k8s", "job"), "")])
    async with asyncio.timeout(1.0):
        await evictor.idle.wait()
    assert noted == [("commit", "pod team/..")]
    assert len(evictor.writes), "it is tried again"
    await evictor.close()
