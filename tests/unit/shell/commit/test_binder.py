"""Binds: one outcome each, whatever the API server answers, loses, or takes its time for."""

import asyncio
import json
from contextlib import asynccontextmanager

import msgspec
import pytest

from quorate.core.model import GangKey
from quorate.core.model.changes import BindFailed, BindFailure, PodBound
from quorate.core.model.plan import Bind, GangBinds
from quorate.shell.commit.binder import Binder
from quorate.shell.kube.client import KubeClient
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    gone,
    no_defect,
    refusal,
    serving,
)
from tools.testing import HANGS_S

BIND = Bind("uid-1", "team", "job-0", "n0")
CREATED = answer(201, {"kind": "Status", "status": "Success"})


def gang(*binds: Bind, deadline_s: float = 2000.0) -> GangBinds:
    key = GangKey("team", "x-k8s", "job")
    return GangBinds(
        key=key, attempt="a-1", size=len(binds), deadline_s=deadline_s, binds=tuple(binds)
    )


def pod(uid: str = "uid-1", node: str = ""):
    spec = {"nodeName": node} if node else {}
    return answer(200, {"metadata": {"uid": uid, "name": "job-0"}, "spec": spec})


def saying(*answers: bool):
    """Return a ``may_complete`` that answers this, and in the end the last of it."""
    left = list(answers)

    async def may_complete(gang, uid):
        return left.pop(0) if len(left) > 1 else left[0]

    return may_complete


@asynccontextmanager
async def binding(*steps, may_bind=lambda: True, may_complete=None, clock=None, note=no_defect):
    """A binder before a scripted API server; yields it, its outcomes, and the server."""
    outcomes: list = []
    async with (
        serving(ScriptedServer(*steps)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=4) as client,
    ):
        binder = Binder(
            client,
            concurrency=4,
            on_change=outcomes.append,
            may_bind=may_bind,
            may_complete=may_complete or saying(True),
            clock=clock or ManualClock(),
            note=note,
        )
        yield binder, outcomes, server


async def outcomes_of(*steps, deadline_s: float = 2000.0):
    async with binding(*steps) as (binder, outcomes, server):
        binder.submit(gang(BIND, deadline_s=deadline_s))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        return outcomes, server


async def test_a_binding_carries_the_uid_and_the_attempt():
    outcomes, server = await outcomes_of(CREATED)
    assert outcomes == [PodBound("uid-1", "n0")]
    assert server.requests[0].path == "/api/v1/namespaces/team/pods/job-0/binding"
    body = json.loads(server.bodies[0])
    assert body["target"] == {"kind": "Node", "name": "n0"}
    assert body["metadata"]["uid"] == "uid-1"
    assert body["metadata"]["annotations"] == {
        "quorate.dev/attempt": "a-1",
        "quorate.dev/attempt-size": "1",
        "quorate.dev/gang": "x-k8s/team/job",
        "quorate.dev/started": "true",
    }


def bind(index: int) -> Bind:
    return Bind(f"uid-{index}", "team", f"job-{index}", "n0")


def of_four(**more) -> GangBinds:
    return msgspec.structs.replace(gang(*(bind(i) for i in range(4))), **more)


def sent(server) -> list[tuple[str, bool]]:
    """Return the pods that were bound, in order, and whether each was marked as started."""
    found = []
    for request, body in zip(server.requests, server.bodies, strict=True):
        annotations = json.loads(body)["metadata"]["annotations"]
        found.append((request.path.split("/")[-2], "quorate.dev/started" in annotations))
    return found


async def test_what_makes_a_gang_quorate_is_sent_last_and_marked():
    async with binding(*[CREATED] * 4) as (binder, outcomes, server):
        binder.submit(of_four(first=3))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert len(outcomes) == 4
        assert sorted(sent(server)[:3]) == [("job-0", False), ("job-1", False), ("job-2", False)]
        assert sent(server)[3] == ("job-3", True)


async def test_what_would_make_a_gang_quorate_is_not_sent_after_a_failure():
    async with binding(CREATED, refusal(403, "Forbidden"), CREATED) as (binder, outcomes, server):
        binder.submit(of_four(first=3))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert len(server.requests) == 3
        last = outcomes[-1]
        assert (last.uid, last.failure) == ("uid-3", BindFailure.NOT_SENT)


async def test_a_repair_that_comes_in_time_saves_the_attempt():
    async with binding(*[CREATED] * 4) as (binder, outcomes, server):
        binder.submit(of_four(first=2, binds=(bind(0), bind(1), bind(2))))
        binder.submit(of_four(first=0, binds=(bind(3),)))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert {type(outcome) for outcome in outcomes} == {PodBound}
        assert sorted(sent(server)[:3]) == [("job-0", False), ("job-1", False), ("job-2", False)]
        assert sent(server)[3] == ("job-3", True)


async def test_what_makes_a_gang_quorate_anew_waits_for_binds_of_its_former_life():
    """It lost all that ran while the bind of a replacement was under way."""
    async with binding(refusal(429, "TooManyRequests"), CREATED, CREATED) as (binder, _, server):
        binder.submit(of_four(started=True, binds=(bind(0),)))
        while not server.requests:
            await asyncio.sleep(0.01)
        binder.submit(of_four(first=0, binds=(bind(1),)))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert [pod for pod, _ in sent(server)] == ["job-0", "job-0", "job-1"]


async def test_a_bind_that_would_seal_nothing_is_not_sent():
    async with binding(CREATED, may_complete=saying(False)) as (binder, outcomes, server):
        binder.submit(of_four(first=1, binds=(bind(0), bind(1))))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert [pod for pod, _ in sent(server)] == ["job-0"]
        assert (outcomes[-1].uid, outcomes[-1].failure) == ("uid-1", BindFailure.NOT_SENT)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        pytest.param(pod(), BindFailed("uid-1", "n0", BindFailure.NOT_SENT), id="it was not bound"),
        pytest.param(pod(node="n0"), PodBound("uid-1", "n0"), id="it was bound all the same"),
    ],
)
async def test_whether_it_still_seals_is_asked_again_before_each_retry(found, outcome):
    steps = refusal(503, "ServiceUnavailable"), found
    async with binding(*steps, may_complete=saying(True, False)) as (
        binder,
        outcomes,
        server,
    ):
        binder.submit(gang(BIND))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert [request.method for request in server.requests] == ["POST", "GET"]
        assert outcomes == [outcome]


async def test_every_bind_of_a_started_gang_is_sent_at_once_and_marked():
    async with binding(*[CREATED] * 4) as (binder, _outcomes, server):
        binder.submit(of_four(started=True))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert {marked for _, marked in sent(server)} == {True}


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        pytest.param([gone("p")] * 2, (BindFailure.GONE, "n0"), id="pod gone"),
        pytest.param(
            [refusal(404, "NotFound"), pod()],
            (BindFailure.REFUSED, "n0"),
            id="said to be gone, and it is there",
        ),
        pytest.param(
            [refusal(409, "Conflict"), pod(uid="uid-2")],
            (BindFailure.GONE, "n0"),
            id="another pod has the name",
        ),
        pytest.param(
            [refusal(409, "Conflict"), gone("p")],
            (BindFailure.GONE, "n0"),
            id="gone by the time it is read back",
        ),
        pytest.param(
            [refusal(404, "NotFound"), refusal(404, "NotFound"), answer(404, b"404"), pod()],
            (BindFailure.REFUSED, "n0"),
            id="a proxy that knows no path says nothing of the pod",
        ),
        pytest.param(
            [refusal(409, "Conflict"), pod(node="n7")],
            (BindFailure.ELSEWHERE, "n7"),
            id="somebody else bound it",
        ),
        pytest.param(
            [refusal(409, "Conflict"), pod()],
            (BindFailure.REFUSED, "n0"),
            id="terminating or gated",
        ),
        pytest.param([refusal(403, "Forbidden")], (BindFailure.REFUSED, "n0"), id="forbidden"),
        pytest.param([refusal(422, "Invalid")], (BindFailure.REFUSED, "n0"), id="invalid"),
    ],
)
async def test_a_refusal_says_what_became_of_the_pod(steps, outcome):
    (failed,), _ = await outcomes_of(*steps)
    assert isinstance(failed, BindFailed)
    assert (failed.failure, failed.node) == outcome


async def test_bound_already_where_we_wanted_is_success():
    outcomes, _ = await outcomes_of(refusal(409, "Conflict"), pod(node="n0"))
    assert outcomes == [PodBound("uid-1", "n0")]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_passing_troubles_are_tried_again(status):
    outcomes, server = await outcomes_of(refusal(status, "Trouble"), CREATED)
    assert outcomes == [PodBound("uid-1", "n0")]
    assert len(server.requests) == 2


async def cut(request):
    request.transport.abort()
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("trouble", "then"),
    [
        pytest.param(cut, refusal(422, "Invalid"), id="cut"),
        pytest.param(refusal(500, "Trouble"), refusal(403, "Forbidden"), id="failed"),
    ],
)
async def test_a_refusal_after_a_lost_answer_does_not_hide_a_bind_that_succeeded(trouble, then):
    outcomes, server = await outcomes_of(trouble, then, pod(node="n0"))
    assert outcomes == [PodBound("uid-1", "n0")]
    assert [request.method for request in server.requests] == ["POST", "POST", "GET"]


async def test_forbidden_after_the_server_was_away_is_tried_again():
    """An API server that has just started knows no roles yet."""
    clock = ManualClock()
    forbidden = refusal(403, "Forbidden")
    steps = [cut, forbidden, forbidden, CREATED]
    async with binding(*steps, clock=clock) as (binder, outcomes, server):
        binder.submit(gang(BIND))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert outcomes == [PodBound("uid-1", "n0")]
        assert len(server.requests) == 4
        clock.time_s += 60.0
        server.steps = [forbidden]
        binder.submit(gang(BIND))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert outcomes[1].failure is BindFailure.REFUSED


async def test_a_lost_answer_to_a_bind_that_succeeded_is_found_out():
    outcomes, _ = await outcomes_of(cut, refusal(409, "Conflict"), pod(node="n0"))
    assert outcomes == [PodBound("uid-1", "n0")]


async def test_after_the_attempts_time_the_pod_is_read_back_and_not_bound_again():
    (failed,), server = await outcomes_of(
        refusal(503, "Trouble"), refusal(500, "Trouble"), pod(), deadline_s=999.0
    )
    assert failed.failure is BindFailure.TIMEOUT
    assert [request.method for request in server.requests] == ["POST", "GET", "GET"]


async def test_who_does_not_lead_sends_nothing():
    async with binding(may_bind=lambda: False) as (binder, outcomes, server):
        binder.submit(gang(BIND))
        await binder.idle.wait()
        assert outcomes == []
        assert server.requests == []


async def test_who_stops_leading_gives_up_between_two_tries():
    leads = [True, True, True, False, False]  # at work, before the try, when it is sent
    async with binding(refusal(503, "Trouble"), may_bind=lambda: leads.pop(0)) as (
        binder,
        outcomes,
        server,
    ):
        binder.submit(gang(BIND))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert outcomes == []
        assert len(server.requests) == 1


async def test_all_binds_of_a_gang_have_one_outcome_each():
    binds = [Bind(f"uid-{i}", "team", f"job-{i}", f"n{i}") for i in range(40)]
    async with binding(*[CREATED] * 40) as (binder, outcomes, _):
        binder.submit(gang(*binds))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
        assert sorted(o.uid for o in outcomes) == sorted(b.uid for b in binds)


GOING = answer(
    403,
    {
        "kind": "Status",
        "reason": "Forbidden",
        "message": 'pods "job-0" is forbidden: unable to create new content in namespace team '
        "because it is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]},
    },
)


async def test_a_pod_whose_namespace_is_being_deleted_counts_as_gone_without_another_try():
    outcomes, server = await outcomes_of(GOING, CREATED)
    assert outcomes == [BindFailed("uid-1", "n0", BindFailure.GONE)]
    assert len(server.requests) == 1


async def test_another_refusal_with_odd_details_is_a_refusal():
    for causes in ([], None, [{"reason": None}], [{"reason": "Other"}, {}]):
        odd = answer(403, {"reason": "Forbidden", "message": "no", "details": {"causes": causes}})
        outcomes, _ = await outcomes_of(odd)
        assert outcomes == [BindFailed("uid-1", "n0", BindFailure.REFUSED, "no")]


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (pod(), BindFailure.REFUSED),
        (pod(node="n0"), None),
        (answer(200, {"metadata": [], "spec": 7}), BindFailure.TIMEOUT),
    ],
    ids=["not bound", "bound", "not to be read"],
)
async def test_a_bind_that_meets_a_defect_of_ours_has_an_outcome_too(monkeypatch, found, outcome):
    """Its worker died, and the core waited for ever."""

    async def broken(*_):
        raise KeyError("planted")

    noted = []

    def note(*defect):
        noted.append(defect)

    if outcome is BindFailure.TIMEOUT:
        monkeypatch.setattr(Binder, "_read_back", broken)
    async with binding(found, may_complete=broken, note=note) as (binder, outcomes, _):
        binder.submit(gang(BIND))
        async with asyncio.timeout(HANGS_S):
            await binder.idle.wait()
    assert [(stage, about) for stage, about, _ in noted][:1] == [("commit", "pod team/job-0")]
    [one] = outcomes
    assert one == PodBound("uid-1", "n0") if outcome is None else one.failure is outcome
