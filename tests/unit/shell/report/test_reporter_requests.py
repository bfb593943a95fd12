"""Requests of the reporter: how many, and what becomes of Events that go on. No server: a client
that answers by itself, and time that is moved by hand.
"""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from quorate.core.model import Owner
from quorate.core.model.reasons import Explanation
from quorate.shell.kube.errors import ApiError, NotFound
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report import reporter
from quorate.shell.report.metrics import Metrics
from tests.unit.core.world import GPU, TEAM, VOLCANO, World, key
from tests.unit.shell.scripted_server import ManualClock


class Lookup:
    def __init__(self):
        self.asked = []

    def ask(self, namespace, owner, *, why):
        self.asked.append((namespace, owner))
        return False


class Server:
    """Answers at once, counts, and has the Events that were created."""

    def __init__(self):
        self.conditions = {}
        self.events = {}
        self.requests = 0

    async def patch(self, path, body, kind):
        self.requests += 1
        if "/events/" in path:
            name = path.rpartition("/")[2]
            if name not in self.events:
                raise NotFound(404, "NotFound", "no such Event")
            self.events[name] = {**self.events[name], **body}
        elif path.endswith("/status"):
            pod = path.split("/")[-2]
            self.conditions[pod] = body["status"]["conditions"][0]["message"]

    async def post(self, path, body):
        self.requests += 1
        self.events[body["metadata"]["name"]] = body


class Running:
    def __init__(self):
        self.world = World()
        self.server = Server()
        self.clock = ManualClock()
        idle = asyncio.Event()
        idle.set()
        self.lookup = Lookup()
        self.metrics = Metrics()
        self.reporter = reporter.Reporter(
            self.server,
            self.world.scheduler,
            {},
            lookup=self.lookup,
            idle=[idle],
            metrics=self.metrics,
            instance="x",
            clock=SteadyClock(self.clock),
        )

    def touch(self):
        self.world.decide()
        self.reporter.touch(list(self.world.cluster.gangs))

    async def passes(self, seconds):
        """Let time pass in steps of 0.5 s, and everything that is due be sent."""
        for _ in range(round(seconds * 2)):
            self.clock.time_s += 0.5
            turn_s = self.clock.monotonic_s()
            due = self.reporter._telling.quiet_gangs.due(self.world.cluster.gangs, turn_s, 500)
            while due:
                self.reporter._report(due)
                due = self.reporter._telling.quiet_gangs.due(self.world.cluster.gangs, turn_s, 500)
            self.reporter._send(turn_s)
            for _ in range(1000):
                if not len(self.reporter.writes):
                    break
                await asyncio.sleep(0)


@pytest.fixture
async def running():
    one = Running()
    sends = asyncio.create_task(one.reporter.writes.run())
    yield one
    sends.cancel()


async def test_300_pods_that_wait_while_nodes_join_cost_requests_by_time(running):
    """Was: two requests for each pod and node, 24,000 here."""
    w = running.world
    w.node("small", cpu=1)
    for number in range(300):
        w.pod(f"p{number}", cpu=9)
    running.touch()
    await running.passes(2)
    first = running.server.requests
    assert first == 600  # a condition and an Event for each
    for number in range(40):
        w.node(f"small-{number}", cpu=1)
        running.touch()
        await running.passes(1)
    await running.passes(31)
    assert running.server.requests - first <= 2 * 600
    assert len(running.server.events) == 300
    assert len(running.server.conditions) == 300
    assert {words.split()[0] for words in running.server.conditions.values()} == {"0/41"}
    assert {event["series"]["count"] for event in running.server.events.values()} <= {2, 3}


async def test_an_event_of_a_gang_regards_its_object_and_goes_on_as_a_series(running):
    w = running.world
    w.node("small", cpu=1)
    w.gang("g", 3, cpu=9, gang_spec={"uid": "uid-of-g"})
    running.touch()
    await running.passes(2)
    regarded = [
        (e["regarding"]["kind"], e["regarding"]["name"]) for e in running.server.events.values()
    ]
    assert sorted(regarded) == [("Pod", f"g-{n}") for n in range(3)] + [("PodGroup", "g")]
    before = set(running.server.events)
    w.node("small-2", cpu=1)
    running.touch()
    await running.passes(31)
    assert set(running.server.events) == before
    series = [e["series"] for e in running.server.events.values() if "series" in e]
    assert [one["count"] for one in series] == [2]
    assert series[0]["lastObservedTime"].endswith("Z")
    (of_gang,) = [e for e in running.server.events.values() if e["regarding"]["kind"] == "PodGroup"]
    said = of_gang["metadata"]["annotations"]["quorate.dev/explanation"]
    assert msgspec.json.decode(said, type=Explanation) == w.why(key("g"))
    assert of_gang["note"].startswith("0/1 nodes"), "the API lets nobody change a note"


async def test_the_event_that_explains_is_made_again_when_all_tries_have_failed(
    running, monkeypatch
):
    """``why`` has nothing else to print."""
    w = running.world
    w.node("small", cpu=1)
    w.gang("g", 3, cpu=9, gang_spec={"uid": "uid-of-g"})
    create = running.server.post

    async def refuse(path, body):
        raise ApiError(422, "Invalid", "not tried again")  # else a real timer would count

    monkeypatch.setattr(running.server, "post", refuse)
    running.touch()
    await running.passes(2)
    monkeypatch.setattr(running.server, "post", create)
    running.reporter._event_lost(key("g"))
    await running.passes(12)
    assert [e["regarding"]["kind"] for e in running.server.events.values()] == ["PodGroup"]


@pytest.mark.parametrize("gang", [None, key("g")], ids=["single", "member"])
async def test_a_pod_of_ours_that_another_scheduler_binds_has_a_warning(running, gang):
    """Two schedulers that act for one schedulerName overfill nodes, and nobody said so."""
    w = running.world
    w.node("small", cpu=1)
    w.pod("p", gang, cpu=9)
    running.touch()
    await running.passes(2)
    w.edit("p", node="small")
    running.touch()
    await running.passes(2)
    told = [one for one in running.server.events.values() if one["reason"] == "BoundByAnother"]
    words = "another scheduler bound pod p to node small: only one may act for schedulerName"
    assert [(one["type"], one["note"]) for one in told] == [("Warning", f"{words} quorate")]


async def test_pods_that_were_made_with_a_node_or_bound_by_us_have_no_warning(running):
    w = running.world
    w.node("n", cpu=9)
    w.pod("static", node="n")
    w.pod("p", cpu=1)
    running.touch()
    w.edit("p", node="n", attempt="x-1")
    running.touch()
    await running.passes(2)
    assert {one["reason"] for one in running.server.events.values()} <= {"Scheduled"}


async def test_an_event_that_is_gone_is_made_again(running):
    w = running.world
    w.node("small", cpu=1)
    w.pod("p", cpu=9)
    running.touch()
    await running.passes(2)
    (name,) = running.server.events
    running.server.events.clear()
    w.node("small-2", cpu=1)
    running.touch()
    await running.passes(31)
    assert list(running.server.events) == [name]
    assert "series" not in running.server.events[name]


async def test_words_that_cannot_be_made_cost_one_gang_its_words(running, monkeypatch):
    w = running.world
    w.node("small", cpu=1)
    w.pod("bad", cpu=9)
    w.pod("good", cpu=9)
    running.touch()
    real = reporter.pod_path

    def planted(namespace, name, *more):
        if name == "bad":
            raise ValueError("planted")
        return real(namespace, name, *more)

    monkeypatch.setattr(reporter, "pod_path", planted)
    await running.passes(2)
    assert list(running.server.conditions) == ["good"]
    assert len(w.scheduler.incidents()) == 1


async def test_a_gang_that_is_known_by_its_name_only_has_its_event_at_a_pod(running):
    w = running.world
    w.node("small", cpu=1)
    w.pod("g-0", key("g"), cpu=9)
    w.pod("g-1", key("g"), cpu=9)
    running.touch()
    await running.passes(2)
    assert sorted(e["regarding"]["name"] for e in running.server.events.values()) == ["g-0", "g-1"]


async def test_an_owner_for_whose_word_pods_wait_is_asked_for_at_once_and_no_other(running):
    """Before any report is due; ordinary pods of other namespaces cost no request."""
    job = Owner("batch/v1", "Job", "d")
    running.world.node("n0")
    running.world.object("d", 4)
    running.world.pod("d-0", owner=job)
    running.world.pod("far-0", owner=job, namespace="far")
    running.touch()
    assert running.lookup.asked == [(TEAM, job)]


async def test_a_gang_that_lacks_members_is_looked_at_again_without_news(running, monkeypatch):
    """The condition said "makes 2" for ever when the owner was told to make 4 and was refused."""
    asked_s = []
    monkeypatch.setattr(Lookup, "ask", lambda *_, why: why and asked_s.append(running.clock.time_s))
    monkeypatch.setattr(reporter, "_VISIT_S", 0)
    w = running.world
    w.gang("g", 4, pods=2, owner=Owner("batch/v1", "Job", "alpha"))
    running.touch()
    visits = asyncio.create_task(running.reporter._visit())
    for _ in range(300):
        await running.passes(0.5)
        await asyncio.sleep(0)
    visits.cancel()
    pauses_s = [later - at for at, later in pairwise(dict.fromkeys(asked_s))]
    assert pauses_s == [2.5, 4.5, 8.5, 16.5, 32.5, 60.5]  # half a second until it is at rest


async def test_a_gang_without_pods_that_waits_for_room_has_its_event_at_its_object(running):
    """It was forgotten after each report, with its Event before that was sent."""
    w, server = running.world, running.server
    w.node("n0", cpu=8)
    spec = {"uid": "uid-of-g", "min_resources": ((GPU, 1),)}
    gang = w.gang("g", 2, 0, gang_spec=spec, dialect=VOLCANO)
    running.touch()
    await running.passes(2)
    (event,) = server.events.values()
    assert (event["type"], event["reason"]) == ("Warning", "FailedScheduling")
    assert event["note"] == "minResources ask for 1 nvidia.com/gpu (0 free)"
    assert event["reportingController"] == "volcano"
    assert event["regarding"] == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "namespace": TEAM,
        "name": "g",
        "uid": "uid-of-g",
    }
    waiting = running.metrics.waiting.labels("MinResourcesShort")._value
    assert waiting.get() == 1
    for _ in range(5):
        running.touch()
        await running.passes(2)
    assert server.requests == 1
    w.drop_object(gang)
    running.reporter.touch([gang])
    await running.passes(2)
    assert (waiting.get(), server.requests) == (0, 1)
    assert gang not in running.reporter._telling


async def test_an_event_about_an_object_without_pods_that_is_gone_is_not_sent(running):
    w = running.world
    spec = {"uid": "uid-of-g", "min_resources": ((GPU, 1),)}
    gang = w.gang("g", 2, 0, gang_spec=spec, dialect=VOLCANO)
    running.touch()
    due_s = running.clock.monotonic_s() + 2.0
    running.clock.time_s += 2.0
    running.reporter._report(running.reporter._telling.quiet_gangs.due(w.cluster.gangs, due_s, 500))
    assert len(running.reporter._telling)
    w.drop_object(gang)
    running.reporter._send(due_s)
    await running.passes(2)
    assert running.server.events == {}


@pytest.mark.parametrize("turns", range(5))
async def test_the_reporter_ends_when_it_is_cancelled_as_news_come(turns):
    """It went on: who lost the lease then never came to its end, and never led again."""
    one = Running()
    one.reporter._telling.quiet_gangs.note_said(key("g"), 0.0)  # to be said again: it waits so long
    work = asyncio.create_task(one.reporter.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    one.reporter.touch([key("g")])
    for _ in range(turns):
        await asyncio.sleep(0)
    work.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert work.cancelled()
