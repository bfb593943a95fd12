"""Preemptions: the nomination, then each victim is marked and deleted; what fails is said."""

import asyncio
import json
from dataclasses import replace

from quorate.core.model import GangKey
from quorate.core.model.changes import PreemptionFailed
from quorate.core.model.plan import Preemption, Victim
from quorate.shell.commit import preemptor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.kube.client import KubeClient
from quorate.shell.process.clock import SteadyClock
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    gone,
    may,
    refusal,
    serving,
    writer_of,
)
from tools.testing import HANGS_S

VICTIM = Victim("uid-low", "team", "low")
PREEMPTION = Preemption(
    key=GangKey("team", "pod", "high@uid-high"),
    uid="uid-high",
    namespace="team",
    name="high",
    scheduler="default-scheduler",
    node="n0",
    victims=(VICTIM,),
)
DRY_RUN = ("DELETE", "low?dryRun=All")
REVIEW = ("POST", "")
DONE = answer(200, {"kind": "Status", "status": "Success"})


async def carried_out(*steps, preemption=PREEMPTION, may_write=lambda: True):
    """Return what was asked of the API server, who was told of as preempted, and the failures."""
    told, failures = [], []
    async with (
        serving(ScriptedServer(*steps)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=2) as client,
    ):
        made = Preemptor(
            writer_of(client, may_write),
            on_change=failures.append,
            on_preempted=lambda by, victim: told.append((by.name, victim.name)),
            clock=SteadyClock(ManualClock()),
        )
        made.submit([preemption])
        async with asyncio.timeout(HANGS_S):
            while made._writes:
                await asyncio.sleep(0.01)
        asked = [(one.method, one.path_qs.partition("/pods/")[2]) for one in server.requests]
        return asked, told, failures, [json.loads(one) for one in server.bodies if one]


async def test_the_writes_are_those_of_kube_scheduler():
    asked, told, failures, bodies = await carried_out(DONE, DONE, DONE, DONE)
    assert asked == [DRY_RUN, ("PATCH", "high/status"), ("PATCH", "low/status"), ("DELETE", "low")]
    assert bodies[0] == {
        "status": {"nominatedNodeName": "n0"},
        "metadata": {"uid": "uid-high"},
    }
    [condition] = bodies[1]["status"]["conditions"]
    assert condition["type"] == "DisruptionTarget"
    assert condition["status"] == "True"
    assert condition["reason"] == "PreemptionByScheduler"
    assert condition["message"] == (
        "default-scheduler: preempting to accommodate a higher priority pod"
    )
    assert bodies[2] == {"preconditions": {"uid": "uid-low"}}
    assert told == [("high", "low")]
    assert failures == []


async def test_a_promise_is_taken_back_by_a_null():
    back = PREEMPTION.__class__(
        key=PREEMPTION.key,
        uid="uid-high",
        namespace="team",
        name="high",
        scheduler="default-scheduler",
        node="",
        displaced=(("team", "other"),),
    )
    asked, _, _, bodies = await carried_out(DONE, DONE, preemption=back)
    assert asked == [("PATCH", "high/status"), ("PATCH", "other/status")]
    assert [one["status"]["nominatedNodeName"] for one in bodies] == [None, None]


async def test_a_victim_that_is_gone_is_no_failure():
    away = gone("low")
    for steps in ((DONE, DONE, away), (DONE, DONE, DONE, away), (away, away, away)):
        _, told, failures, _ = await carried_out(*steps)
        assert (told, failures) == ([], [])


async def test_a_victim_that_a_proxy_does_not_know_may_be_there_still():
    unknown = refusal(404, "NotFound")
    _, told, failures, _ = await carried_out(DONE, DONE, DONE, unknown)
    assert (told, [one.victims for one in failures]) == ([], [("uid-low",)])


async def test_a_victim_that_changed_meanwhile_may_be_there_still():
    """An API server that tried a patch in vain a few times answers 409, and so does another uid."""
    changed = refusal(409, "Conflict")
    for steps in ((DONE, DONE, changed), (DONE, DONE, DONE, changed)):
        _, told, failures, _ = await carried_out(*steps)
        assert (told, [one.victims for one in failures]) == ([], [("uid-low",)])


async def test_an_answer_that_may_change_is_asked_for_again(monkeypatch):
    quick = replace(preemptor._PREEMPTION, retry_s_min=0.001)
    monkeypatch.setattr(preemptor, "_PREEMPTION", quick)
    busy = refusal(503, "ServiceUnavailable")
    asked, told, failures, _ = await carried_out(DONE, DONE, DONE, busy, DONE)
    assert asked[-2:] == [("DELETE", "low")] * 2
    assert told == [("high", "low")]
    assert failures == []


async def test_a_refusal_is_told_to_the_core():
    _, told, failures, _ = await carried_out(DONE, DONE, DONE, refusal(403, "Forbidden"))
    assert told == []
    assert [(one.uid, one.victims) for one in failures] == [("uid-high", ("uid-low",))]
    assert isinstance(failures[0], PreemptionFailed)


async def test_without_the_right_nothing_is_written_and_the_reason_says_how_to_grant_it():
    asked, told, failures, [review] = await carried_out(refusal(403, "Forbidden"), may(False))
    assert asked == [DRY_RUN, REVIEW]
    assert review["spec"]["resourceAttributes"] == {
        "namespace": "team",
        "verb": "delete",
        "resource": "pods",
    }
    assert told == []
    [failed] = failures
    assert (failed.uid, failed.victims) == ("uid-high", ("uid-low",))
    assert "quorate manifests --preemption" in failed.message


async def test_a_dry_run_that_fails_otherwise_stops_nothing():
    denied = refusal(403, "Forbidden", 'admission webhook "w" denied the request')
    for steps in (
        (denied, may(True)),
        (denied, refusal(403, "Forbidden")),  # we may not even ask
        (refusal(500, "InternalError"),),
        (refusal(404, "NotFound"),),
    ):
        asked, told, failures, _ = await carried_out(*steps, DONE, DONE, DONE)
        assert asked[0] == DRY_RUN
        assert (told, failures) == ([("high", "low")], [])


async def test_who_does_not_lead_writes_nothing():
    asked, _, _, _ = await carried_out(may_write=lambda: False)
    assert asked == []
