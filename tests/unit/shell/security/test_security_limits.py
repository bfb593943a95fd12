"""What a server or a user sends meets a bound, and a reason or a count: no crash, no backlog."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from quorate.core.model import Node, Owner
from quorate.core.model.changes import (
    DialectServed,
    GangChanged,
    NodeChanged,
    OwnerChanged,
    PodChanged,
)
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.dialects import DIALECTS, Malformed
from quorate.shell.apis import api_words
from quorate.shell.kube import client as client_module
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.connections import lines
from quorate.shell.kube.connections.lines import LineSplitter
from quorate.shell.kube.errors import TooLarge, Unreachable, error_from_response
from quorate.shell.kube.lists.events import (
    Failing,
    Garbled,
    ListBegins,
    Listed,
    SomeListed,
)
from quorate.shell.kube.lists.reflector import Pace, Reflector
from quorate.shell.process.clock import SystemClock
from quorate.shell.report import bodies, owners
from quorate.shell.report.owners import OwnerLookup
from quorate.shell.report.write_queue import WriteQueue
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.objects import watched_kinds
from tests.unit.shell.decoded import decode
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    event,
    listing,
    no_defect,
    serving,
    stream,
    whole_list,
)
from tools import objects
from tools.testing import HANGS_S

PODS = "/api/v1/pods"
QUICK = Pace(page_size=64, backoff_s_min=0.01, backoff_s_max=0.05, absent_poll_s=0.05)
LARGE = {
    "labels": {f"label-{i}": "x" * 63 for i in range(10_000)},
    "annotations": {"large": "x" * 2**20},
    "finalizers": [f"example.com/{i}" for i in range(10_000)],
}


# Objects


def pod(**spec):
    return decode(objects.pod("p", metadata={"namespace": "n", "uid": "u", **LARGE}, **spec))


def said_of(*changes):
    """Return the sentence of the only gang, as the scheduler says it, and as it is written."""
    scheduler = Scheduler(Policy(), api_words())
    for dialect in DIALECTS:
        scheduler.observe([DialectServed(dialect.name, served=True)])
    scheduler.observe([NodeChanged(Node(name="node", allocatable=(("cpu", 1000),))), *changes])
    scheduler.decide(0.0)
    explainer = scheduler.explainer(0.0)
    [key] = scheduler.cluster.gangs
    sentence = explainer.explain(key).message
    for entry in scheduler.cluster.pods.values():
        reason, message = explainer.pod_message(entry, explainer.explain(key))
        condition = bodies.not_scheduled(reason, message, 0.0)["status"]["conditions"][0]
        assert len(condition["message"].encode()) <= 1024
    return sentence


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            {"schedulingGates": [{"name": f"example.com/gate-{i}"} for i in range(100_000)]},
            "and 99995 more",
        ),
        ({"nodeSelector": {f"key-{i}": "x" * 63 for i in range(10_000)}}, "10000 expressions are"),
        (
            {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(10_000)]},
            "10000 tolerations are too many",
        ),
        (
            {"containers": [{"name": f"c{i}"} for i in range(10_000)]},
            "10000 containers are too many",
        ),
        ({"priority": 2**80}, "priority"),
        ({"schedulerName": "quorate", "nodeSelector": {"k" * 2**20: "v"}}, "0/1 nodes"),
    ],
    ids=["gates", "selector", "tolerations", "containers", "priority", "key"],
)
def test_an_enormous_pod_waits_with_a_reason_of_bounded_length(spec, says):
    sentence = said_of(PodChanged(pod(**spec)))
    assert says in sentence
    assert len(sentence) < 4096


@pytest.mark.parametrize("path", [path for path in watched_kinds(frozenset()) if "group" in path])
def test_an_enormous_pod_group_is_read_or_named_as_invalid(path):
    kind = watched_kinds(frozenset({"quorate"}))[path]
    metadata = {"namespace": "n", "name": "g", "uid": "u", **LARGE}
    resources = {f"example.com/r{i}": "9" * 100 for i in range(10_000)}
    spec = {"minMember": 10**30, "minResources": resources, "scheduleTimeoutSeconds": 10**30}
    change = kind.changed(json.dumps({"metadata": metadata, "spec": spec}).encode())
    assert isinstance(change, GangChanged)
    assert len(change.spec.defect) < 1000
    assert len(said_of(change)) < 4096


def nested(levels):
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("levels", [2000, 100_000])
def test_an_object_nested_without_end_is_quarantined(levels):
    raw = b'{"metadata":{"namespace":"n","name":"p","uid":"u"},"spec":%s}' % nested(levels)
    for kind in watched_kinds(frozenset({"quorate"})).values():
        try:
            change = kind.changed(raw)
        except Malformed:
            continue
        assert isinstance(change, PodChanged)
        assert change.pod.defect


# Streams and lists


def test_a_line_without_end_is_dropped_and_counted_and_the_next_one_is_read(monkeypatch):
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 1000)
    splitter = LineSplitter()
    assert splitter.split(b"a\nb") == [b"a"]
    for _ in range(10_000):
        assert splitter.split(b"x" * 100) == []
        assert sum(len(part) for part in splitter._parts) <= 1100
    assert splitter.split(b"the end\nc\nd") == [b"c"]
    assert splitter.split(b"\n") == [b"d"]
    assert splitter.skipped == 1


@asynccontextmanager
async def reflecting(*steps):
    """Run a reflector until the script is done."""
    server, seen = ScriptedServer(*steps), []
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        reflector = Reflector(
            client,
            PODS,
            on_event=seen.append,
            clock=SystemClock(),
            chance=lambda: 0.5,
            pace=QUICK,
        )
        running = asyncio.create_task(reflector.run())
        done = asyncio.create_task(server.script_done.wait())
        await asyncio.wait([running, done], return_when=asyncio.FIRST_COMPLETED, timeout=HANGS_S)
        assert server.script_done.is_set(), (seen, running)
        yield seen, reflector, server
        running.cancel()
        await asyncio.gather(running, done, return_exceptions=True)


async def test_an_enormous_event_is_counted_and_a_new_list_tells_what_it_was(monkeypatch):
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 2**20)
    large = event("ADDED", "large", 11, spec={"x": "x" * 2**22})
    async with reflecting(
        listing([], 10),
        stream(event("ADDED", "a", 11), large, then="silent"),
        listing(["a", "large"], 12),
    ) as (seen, reflector, _):
        told = [type(one).__name__ for one in seen if not isinstance(one, ListBegins)]
        assert told == ["Listed", "Added", "Garbled", "SomeListed", "Listed"]
        [garbled] = [one for one in seen if isinstance(one, Garbled)]
        assert "more than" in garbled.error
        assert (reflector.garbled, reflector.relists, reflector.failures) == (1, 1, 0)


@pytest.mark.parametrize("levels", [2000, 100_000])
async def test_an_event_nested_without_end_is_counted_and_a_new_list_tells_what_it_was(levels):
    deep = b'{"type":"ADDED","object":{"metadata":{"name":"x"},"spec":%s}}\n' % nested(levels)
    async with reflecting(
        listing([], 10),
        stream(deep + event("ADDED", "b", 12), then="silent"),
        listing(["b"], 12),
    ) as (seen, reflector, _):
        told = [type(one).__name__ for one in seen if not isinstance(one, ListBegins)]
        assert told == ["Listed", "Garbled", "Added", "SomeListed", "Listed"]
        assert reflector.garbled == 1


async def test_a_list_nested_without_end_is_a_visible_reason_and_tried_again():
    deep = b'{"metadata":{"resourceVersion":"1"},"items":[%s]}' % nested(100_000)
    async with reflecting(answer(200, deep), listing(["a"], 10)) as (seen, reflector, _):
        assert isinstance(seen[-1], Listed)
        assert reflector.failures == 1


async def test_pages_that_are_too_large_are_asked_for_in_smaller_ones(monkeypatch):
    monkeypatch.setattr(client_module, "LIST_BYTES_MAX", 2000)
    too_large = listing([f"{i:0100}" for i in range(64)], 10)
    async with reflecting(
        too_large,
        listing([f"first-{i}" for i in range(8)], 11, token="more"),
        listing(["last"], 11),
        stream(event("ADDED", "b", 12)),
    ) as (seen, reflector, server):
        assert sum(len(one.items) for one in seen if isinstance(one, SomeListed)) == 9
        assert [r.query.get("limit") for r in server.requests[:4]] == ["64", "8", "8", None]
        assert reflector.relists == 0


async def test_an_object_that_is_too_large_by_itself_is_a_visible_reason(monkeypatch):
    monkeypatch.setattr(client_module, "LIST_BYTES_MAX", 2000)
    large = listing(["x" * 5000], 10)
    async with reflecting(large, large, large, large) as (seen, reflector, server):
        assert not [one for one in seen if not isinstance(one, ListBegins | Failing)]
        assert isinstance(reflector.last_error, TooLarge)
        assert [r.query["limit"] for r in server.requests] == ["64", "8", "1", "1", "1"]


async def test_an_answer_that_announces_too_much_is_not_read(monkeypatch):
    async def enormous(request):
        response = web.StreamResponse(headers={"Content-Length": str(10**15)})
        await response.prepare(request)
        await asyncio.Event().wait()

    server = ScriptedServer(enormous, enormous, enormous)
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        with pytest.raises(TooLarge, match="more than 64 MiB"):
            await client.get_list(PODS)
        with pytest.raises(TooLarge, match="more than 10 MiB"):
            await client.get(f"{PODS}/p")
        with pytest.raises(Unreachable, match="no valid HTTP: Content-Length"):
            await client.post(PODS, {})


# What a server says


def test_what_a_webhook_says_is_cut():
    status = {"message": "x" * 10**7, "reason": "y" * 10**7, "code": 403}
    error = error_from_response(403, json.dumps(status).encode())
    assert len(str(error)) < 3000
    assert error.message.endswith("x ...")
    assert len(error_from_response(502, b"<html>" * 10**6).message) <= 2000
    assert error_from_response(500, nested(100_000)).status == 500


@pytest.mark.parametrize(
    ("header", "details", "wait_s"),
    [
        ("5", None, 5.0),
        ("9" * 400, None, 60.0),
        (b"9" * 400, None, 60.0),
        ("\u00b2", None, None),
        ("-1", None, None),
        (None, 1e300, 60.0),
        (None, -5, 0.0),
        (None, 3, 3.0),
    ],
)
def test_nobody_makes_us_wait_for_longer_than_a_minute(header, details, wait_s):
    body = json.dumps({"code": 429, "details": {"retryAfterSeconds": details}}).encode()
    assert error_from_response(429, body, header).retry_after_s == wait_s


# Queues


async def test_events_without_end_are_dropped_oldest_first_and_counted():
    sent = []
    idle = asyncio.Event()
    writes = WriteQueue(idle, note=no_defect)

    async def send(number):
        sent.append(number)

    for number in range(60_000):
        writes.put(("Event", number), lambda number=number: send(number), urgent=False)
    assert len(writes) == 50_000
    assert writes.dropped == 10_000
    idle.set()
    running = asyncio.create_task(writes.run())
    while len(writes):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert sent[0] == 10_000
    assert sent[-1] == 59_999


async def test_owners_are_asked_for_few_at_a_time_and_the_others_later(monkeypatch):
    monkeypatch.setattr(owners, "_ASKING_MAX", 3)
    server, known = ScriptedServer(*[answer(200, {"spec": {"replicas": 2}})] * 6), []
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        lookup = OwnerLookup(client, on_change=known.append, clock=ManualClock(), note=no_defect)
        wanted = [Owner("apps/v1", "Deployment", f"d{i}") for i in range(6)]
        while any([lookup.ask("n", owner) for owner in wanted]):
            assert len(lookup._tasks) <= 3
            await asyncio.sleep(0)
        await lookup.close()
    assert sorted(change.owner.name for change in known) == [f"d{i}" for i in range(6)]


# Defects


def feed():
    made = Feed(
        None,  # type: ignore[arg-type]  nothing is asked for
        watched_kinds(frozenset({"quorate"})),
        on_change=lambda change: None,
        on_object=lambda key: None,
        clock=ManualClock(),
        chance=lambda: 0.5,
        note=no_defect,
    )

    def tell(*listed):
        for event_ in whole_list(*listed):
            made.reflectors[PODS]._on_event(event_)

    return made, tell


BROKEN = b'{"metadata":{"namespace":"n","name":"%s","uid":""}}'


def test_what_was_quarantined_and_is_gone_after_a_new_list_is_counted_no_more():
    made, tell = feed()
    tell(BROKEN % b"a", BROKEN % b"b")
    assert set(made.quarantined) == {("Pod", "n/a"), ("Pod", "n/b")}
    tell(BROKEN % b"b")
    assert set(made.quarantined) == {("Pod", "n/b")}
    made.reflectors[PODS]._on_event(Garbled(b"", "more than 32 MiB"))
    tell()
    assert not made.quarantined


@pytest.mark.parametrize(
    "owner", [Owner("batch/v1", "Job", ".."), Owner("apps/..", "Deployment", "web")]
)
async def test_an_owner_by_a_name_that_no_object_can_have_is_of_an_unknown_size(owner):
    """It ended `quorate gangs` and `why` in a traceback, for all who list that namespace."""
    async with (
        serving(ScriptedServer()) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        assert await owners.found_out(client, "n", owner) == OwnerChanged("n", owner, None)
        assert server.requests == []
