"""Goal: what an owner makes, what keeps it from more, and how often the API server is asked.

Method: one scripted API server over real HTTP, and a clock that is moved by hand.
"""

import pytest

from quorate.core.model import GangKey, Owner
from quorate.core.model.changes import Brake, OwnerChanged
from quorate.shell.kube.client import KubeClient
from quorate.shell.report import owners
from quorate.shell.report.owners import PAUSE_S_MAX, Refusals, Visits, found_out
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    refusal,
    serving,
)

JOB, SET = Owner("batch/v1", "Job", "alpha"), Owner("apps/v1", "StatefulSet", "ring")
WEB = Owner("apps/v1", "Deployment", "web")
MPI_JOB = Owner("kubeflow.org/v2beta1", "MPIJob", "alpha")
QUOTA = "exceeded quota: team-cpu, requested: requests.cpu=1, used: requests.cpu=4"
FORBIDDEN = f'Error creating: pods "alpha-x8zk2" is forbidden: {QUOTA}'
ALLOWS_ONE = [{"type": "ReplicaFailure", "status": "True", "message": FORBIDDEN}]
COMPLETE = [{"type": "ReplicaFailure", "status": "False", "message": FORBIDDEN}]


def workload(spec, **status):
    return answer(200, {"metadata": {"name": "alpha", "uid": "u"}, "spec": spec, "status": status})


def event(note, **times):
    times = times or {"eventTime": "2026-01-01T00:00:00.000000Z"}
    return {"metadata": {}, "note": note, **times}


def events(*items):
    return answer(200, {"items": list(items)})


async def asked(owner, *steps, why=True):
    """Return what is found out of an owner, and what was asked for."""
    async with (
        serving(ScriptedServer(*steps)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        found = await found_out(client, "n", owner, why=why)
        return found, server.requests


@pytest.mark.parametrize(
    ("owner", "spec", "status", "says"),
    [
        (JOB, {"parallelism": 4, "completions": 9}, {"active": 4}, (4, Brake.NONE, 9)),
        (JOB, {"parallelism": 4, "completions": 2}, {"active": 2}, (2, Brake.NONE, 2)),
        (
            JOB,
            {"parallelism": 4, "completions": 4},
            {"active": 1, "succeeded": 3},
            (4, Brake.NONE, 4),
        ),
        (JOB, {"parallelism": 4, "suspend": True}, {}, (4, Brake.SUSPENDED, None)),
        (SET, {"replicas": 3}, {"replicas": 1}, (3, Brake.IN_ORDER, None)),
        (
            SET,
            {"replicas": 3, "podManagementPolicy": "OrderedReady"},
            {"replicas": 1},
            (3, Brake.IN_ORDER, None),
        ),
        (
            SET,
            {"replicas": 3, "podManagementPolicy": "Parallel"},
            {"replicas": 3},
            (3, Brake.NONE, None),
        ),
        (WEB, {}, {"replicas": 1}, (1, Brake.NONE, None)),
        (WEB, {"replicas": 2}, {"replicas": 1}, (2, Brake.NONE, None)),
    ],
)
async def test_what_an_owner_says_of_itself_costs_one_request(owner, spec, status, says):
    """Where no pod is missing that would be made now, no Event is asked for."""
    found, requests = await asked(owner, workload(spec, **status))
    replicas, brake, completions = says
    assert found == OwnerChanged("n", owner, replicas, brake=brake, completions=completions)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        ({"launcherCreationPolicy": "WaitForWorkersReady"}, 8),
        ({"launcherCreationPolicy": "AtStartup"}, 0),
        ({}, 0),
        ({"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": {}}, 0),
    ],
)
async def test_an_mpi_job_says_whether_its_launcher_waits_for_its_workers(spec, first):
    replicas = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 8, "template": {}}}
    found, [request] = await asked(MPI_JOB, workload({"mpiReplicaSpecs": replicas, **spec}))
    assert found == OwnerChanged("n", MPI_JOB, None, first=first)
    assert request.path == "/apis/kubeflow.org/v2beta1/namespaces/n/mpijobs/alpha"


@pytest.mark.parametrize(
    ("owner", "status", "cron_job", "first"),
    [
        (MPI_JOB, 403, "", None),
        (MPI_JOB, 404, "", 0),
        (MPI_JOB, 503, None, 0),
        (JOB, 403, "", 0),
    ],
)
async def test_an_mpi_job_that_may_not_be_read_is_told_from_one_that_is_not_there(
    owner, status, cron_job, first
):
    found, _ = await asked(owner, refusal(status, "so"))
    assert found == OwnerChanged("n", owner, None, cron_job, first=first)


@pytest.mark.parametrize(
    ("owner", "spec", "status"),
    [
        (JOB, {"parallelism": 4, "completions": 4}, {"active": 2}),
        (JOB, {"parallelism": 4}, {}),
        (SET, {"replicas": 3, "podManagementPolicy": "Parallel"}, {"replicas": 2}),
    ],
)
async def test_the_newest_refusal_of_this_very_owner_counts(owner, spec, status):
    """It said "Job alpha has to make 4" of a Job that was told to: a quota refuses the others."""
    found, requests = await asked(
        owner,
        workload(spec, **status),
        events(
            event("an older one", deprecatedLastTimestamp="2026-01-01T00:00:01Z"),
            event(FORBIDDEN, series={"lastObservedTime": "2026-01-01T00:00:03.000000Z"}),
            event("older, too", eventTime="2026-01-01T00:00:02.000000Z"),
        ),
    )
    assert found.refused == QUOTA
    assert requests[1].path == "/apis/events.k8s.io/v1/namespaces/n/events"
    query = dict(requests[1].query)
    assert query == {"fieldSelector": "reason=FailedCreate,regarding.uid=u", "limit": "100"}


async def test_of_a_gang_that_has_started_nobody_asks_why_members_are_missing():
    found, requests = await asked(JOB, workload({"parallelism": 4}, active=2), why=False)
    assert (found, len(requests)) == (OwnerChanged("n", JOB, 4), 1)


@pytest.mark.parametrize(("conditions", "why"), [(ALLOWS_ONE, QUOTA), (COMPLETE, "")])
async def test_a_deployment_has_its_refusal_in_a_condition(conditions, why):
    found, requests = await asked(WEB, workload({"replicas": 4}, replicas=2, conditions=conditions))
    assert (found.refused, len(requests)) == (why, 1)


MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("3", f"annotation {MIN_MEMBER} of Deployment web asks for 3 pods to start together, and "),
        *((one, "") for one in ("1", "0", "-3", "three", "", "9" * 5000)),
    ],
)
async def test_a_deployment_says_whether_volcanos_controllers_gather_its_pods(written, words):
    """They take what they cannot read for 1."""
    about = {"name": "web", "uid": "u", "annotations": {MIN_MEMBER: written}}
    found, _ = await asked(WEB, answer(200, {"metadata": about, "spec": {"replicas": 0}}))
    assert found.gathered.startswith(words)
    assert bool(found.gathered) is bool(words)
    assert bool(found.remedy) is bool(words)


@pytest.mark.parametrize(
    ("note", "words"),
    [
        ("Error creating: a webhook denied it", "Error creating: a webhook denied it"),
        ("is forbidden: no\nmore\x1b[2J", "no\\nmore\\x1b[2J"),
        ("is forbidden: " + "x" * 400, "x" * 296 + " ..."),
    ],
)
async def test_the_words_of_a_refusal_are_plain_and_bounded(note, words):
    found, _ = await asked(JOB, workload({"parallelism": 2}), events(event(note)))
    assert found.refused == words


@pytest.mark.parametrize("step", [refusal(403, "Forbidden"), answer(200, b"{"), events()])
async def test_without_an_answer_nothing_is_said_to_refuse(step):
    found, _ = await asked(JOB, workload({"parallelism": 2}), step)
    assert found == OwnerChanged("n", JOB, 2)


async def test_events_of_an_owner_are_listed_ever_more_seldom(monkeypatch):
    """A list walks through all Events of the namespace; what is known goes on meanwhile."""
    clock, listed_s = ManualClock(), []
    began_s = clock.time_s

    async def listed(self, namespace, uid):
        listed_s.append(clock.time_s - began_s)
        return str(len(listed_s))

    monkeypatch.setattr(Refusals, "_asked", listed)
    refusals = Refusals(None, clock)
    for _ in range(300):
        assert await refusals.newest("n", JOB, "u") == str(len(listed_s))
        clock.time_s += 1
    assert listed_s == [0, 2, 6, 14, 30, 62, 122, 182, 242]
    refusals.forget("n", JOB)
    await refusals.newest("n", JOB, "u")
    assert listed_s[-1] == 300


async def test_events_are_listed_for_one_owner_at_a_time(monkeypatch):
    clock, listed = ManualClock(), []

    async def again(self, namespace, uid):
        listed.append(uid)
        if uid == "u":
            assert await refusals.newest("n", SET, "of the set") == ""
        return "words"

    monkeypatch.setattr(Refusals, "_asked", again)
    refusals = Refusals(None, clock)
    assert await refusals.newest("n", JOB, "u") == "words"
    assert listed == ["u"]
    assert await refusals.newest("n", SET, "of the set") == "words"


async def test_so_many_owners_refusals_are_kept(monkeypatch):
    monkeypatch.setattr(owners, "_KEPT_MAX", 2)
    monkeypatch.setattr(Refusals, "_asked", lambda *_: answered())

    async def answered():
        return "words"

    refusals = Refusals(None, ManualClock())
    for owner in (JOB, SET, WEB):
        await refusals.newest("n", owner, "u")
    assert [owner for _, owner in refusals._known] == [WEB]


def gang(name):
    return GangKey("n", "x-k8s", name)


def test_a_gang_that_lacks_members_is_visited_after_ever_longer_pauses():
    visits, at_s = Visits(), []
    visits.plan(gang("g"), 0)
    for second in range(300):
        visits.plan(gang("g"), second)  # news in between plan nothing new
        if visits.due(second) == gang("g"):
            at_s.append(second)
            visits.plan(gang("g"), second)
    assert at_s == [2, 6, 14, 30, 62, 122, 182, 242]
    assert at_s[-1] - at_s[-2] == PAUSE_S_MAX


def test_a_gang_that_has_its_members_is_visited_no_more():
    visits = Visits()
    visits.plan(gang("a"), 0)
    visits.plan(gang("b"), 0)
    visits.forget(gang("a"))
    assert [visits.due(2), visits.due(2)] == [gang("b"), None]
    visits.plan(gang("a"), 2)
    assert visits.due(4) == gang("a"), "it begins anew"
