"""The lease in its thread: a busy core keeps it, a stuck core loses it and is fenced.

The API server has a thread of its own as well, because these tests block the loop that they run in,
as a long decision does. Leases last for longer than any test, unless the test moves the clocks.
"""

import asyncio
import math
import threading
import time

import pytest

from quorate.core.model.journal import Journal
from quorate.core.model.policy import Policy
from quorate.shell.configuration.config import Config, LeaderElection
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Unreachable
from quorate.shell.lease import record
from quorate.shell.lease import thread as module
from quorate.shell.lease.handover import Handover
from quorate.shell.lease.leadership import Leadership, LeaseLostError
from quorate.shell.lease.thread import THREAD_NAME
from quorate.shell.process.clock import SystemClock
from quorate.shell.process.heartbeat import Heartbeat
from quorate.shell.process.loop_thread import LoopThread
from quorate.shell.report.metrics import Metrics
from tests.unit.shell.lease_server import LeaseServer
from tests.unit.shell.scripted_server import credentials_for, serving
from tools.testing import HANGS_S

ELECTION = LeaderElection(
    namespace="sys", name="q", lease_duration_s=120, renew_deadline_s=100.0, retry_period_s=0.2
)


class AheadClock(SystemClock):
    """The machine's clock, and what the test adds to it."""

    __slots__ = ("ahead_s",)

    def __init__(self):
        self.ahead_s = 0.0

    def monotonic_s(self):
        return super().monotonic_s() + self.ahead_s


@pytest.fixture
async def server():
    """Serve a Lease from another thread."""
    made, up = LeaseServer(), threading.Event()

    async def serve():
        async with serving(made):
            up.set()
            await asyncio.Event().wait()

    thread = LoopThread("lease server", serve)
    thread.start()
    await asyncio.to_thread(up.wait)
    yield made
    await thread.stop()


class Replica:
    """What leads, what the core would write, and in which thread it was asked for its journal."""

    def __init__(self, server, name, stuck_after_s=math.inf):
        self.clock = AheadClock()
        self.credentials = credentials_for(f"{server.url}/{name}")
        self.heartbeat = Heartbeat(self.clock, stuck_after_s)
        self.asked_in = set()
        self.attempts = self.beats = 0
        self.handover = Handover(self.journal, name)
        self.leadership = Leadership(
            Config(leader_election=ELECTION, policy=Policy(scheduler_names=("one", "another"))),
            lambda: KubeClient(self.credentials),
            identity=name,
            clock=self.clock,
            handover=self.handover,
            heartbeat=self.heartbeat,
            metrics=Metrics(),
            in_thread=True,
        )
        self.started = asyncio.Event()
        self.task = None

    def journal(self):
        self.asked_in.add(threading.current_thread())
        return Journal("a", self.attempts)

    def start(self):
        self.task = asyncio.create_task(self.leadership.run(self.work))
        return self

    async def work(self):
        self.started.set()
        while True:
            self.heartbeat.beat()
            self.beats += 1
            await asyncio.sleep(0.02)

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def lease_threads():
    return [one for one in threading.enumerate() if one.name == THREAD_NAME]


def block_until(true, *clocks):
    """Hold up this loop until something is so elsewhere; for these clocks it takes long."""
    until_s = time.monotonic() + HANGS_S
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.01)
        for clock in clocks:
            clock.ahead_s += 1.0


async def test_a_core_that_is_busy_keeps_the_lease(server):
    a, b = Replica(server, "a"), Replica(server, "b")
    async with asyncio.timeout(HANGS_S):
        await a.start().started.wait()
    b.start()
    writes = server.writes
    block_until(lambda: server.writes > writes + 5)
    assert server.spec["holderIdentity"] == "a"
    assert server.spec["leaseTransitions"] == 0
    assert record.scheduler_names_of(server.lease) == ("one", "another"), "as configured"
    assert a.leadership.may_write()
    assert not b.leadership.may_write()
    beats = a.beats
    while a.beats < beats + 3:
        await asyncio.sleep(0.01)
    assert a.leadership.may_write()
    assert not a.task.done()
    assert not b.started.is_set()
    await b.stop()
    await a.stop()


async def test_a_core_that_is_stuck_loses_the_lease_and_what_it_sends_then_is_not_sent(server):
    a = Replica(server, "a", stuck_after_s=30.0)
    async with asyncio.timeout(HANGS_S):
        await a.start().started.wait()
    assert a.leadership.may_write()

    b = Replica(server, "b")

    async def rival():
        await b.start().task

    other = LoopThread("another replica", rival)
    other.start()
    a.clock.ahead_s += 31.0
    block_until(lambda: a.leadership._status.failure is not None)
    block_until(lambda: server.spec["holderIdentity"] == "b", a.clock, b.clock)
    assert not a.leadership.may_write()
    async with KubeClient(a.credentials) as client:
        with pytest.raises(Unreachable, match="may write no more"):
            await client.post("/binding", b"{}", may_send=a.leadership.may_write)
    with pytest.raises(LeaseLostError, match="the core has not turned for"):
        async with asyncio.timeout(HANGS_S):
            await a.task
    assert not a.leadership.leads
    await other.stop()
    assert server.spec["holderIdentity"] == "", "b gave it back"


async def test_a_graceful_end_gives_the_lease_back_and_leaves_no_thread(server):
    a = Replica(server, "a")
    async with asyncio.timeout(HANGS_S):
        await a.start().started.wait()
    assert len(lease_threads()) == 1
    await a.stop()
    assert server.spec["holderIdentity"] == ""
    assert not a.leadership.may_write()
    assert lease_threads() == []


async def test_a_standby_is_stopped_at_once_and_leaves_the_lease_alone(server):
    server.store({"metadata": {"name": "q"}, "spec": {"holderIdentity": "b"}})
    a = Replica(server, "a").start()
    while not a.leadership.note():
        await asyncio.sleep(0.01)
    assert a.leadership.note() == "standing by: b leads"
    assert a.leadership.unready_reason() is None
    await a.stop()
    assert server.writes == 0
    assert lease_threads() == []


async def test_a_defect_in_the_thread_ends_the_work_with_its_cause(server):
    a = Replica(server, "a")
    async with asyncio.timeout(HANGS_S):
        await a.start().started.wait()

    def broken(found):
        raise RuntimeError("a defect")

    a.handover.journal = broken
    with pytest.raises(RuntimeError, match="a defect"):
        async with asyncio.timeout(HANGS_S):
            await a.task
    assert not a.leadership.may_write()
    assert lease_threads() == []


async def test_what_the_work_raises_ends_it_and_the_lease_is_given_back(server):
    a = Replica(server, "a")

    async def fail():
        raise ValueError("of the core")

    with pytest.raises(ValueError, match="of the core"):
        async with asyncio.timeout(HANGS_S):
            await a.leadership.run(fail)
    assert server.spec["holderIdentity"] == ""
    assert lease_threads() == []


async def test_the_journal_is_read_in_the_cores_loop_and_is_the_newest_unless_it_is_busy(
    server, monkeypatch
):
    a = Replica(server, "a")
    async with asyncio.timeout(HANGS_S):
        await a.start().started.wait()
    a.attempts = 7
    a.handover.has_decided = True
    while written(server) != '{"by":"a","made":7}':
        await asyncio.sleep(0.01)
    a.attempts = 8
    writes = server.writes
    block_until(lambda: server.writes > writes + 2)
    assert written(server) == '{"by":"a","made":7}', "the core is busy, and is not waited for"
    while written(server) != '{"by":"a","made":8}':
        await asyncio.sleep(0.01)
    monkeypatch.setattr(module, "_ANSWER_S_MAX", HANGS_S)
    a.attempts = 9
    await a.stop()
    assert written(server) == '{"by":"a","made":9}', "as it is when the lease is given back"
    assert a.asked_in == {threading.main_thread()}


def written(server):
    return (server.lease["metadata"].get("annotations") or {}).get("quorate.dev/journal")
