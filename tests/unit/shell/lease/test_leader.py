"""Leader election: never two at once; a dead leader is replaced, a cut-off one stops in time.

Method: an API server in this process, on a loop whose time passes at once: figures are exact.
"""

import asyncio
import random
import re

import pytest

from quorate.shell.lease.elector import LeaseTimes
from tests.property.seeds import SEED
from tests.unit.shell.lease_server import QUICK, LeaseServer, candidates

pytestmark = pytest.mark.virtual


async def test_it_leads_renews_and_gives_back():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        a.start()
        await a.started.wait()
        b.start()
        assert server.spec["holderIdentity"] == "a"
        assert server.spec["leaseTransitions"] == 0
        await asyncio.sleep(1.5)  # longer than the lease lasts
        assert a.leads
        assert not b.leads
        assert b.elector.status.holder == "a"
        assert server.writes > 5
        assert server.spec["acquireTime"] < server.spec["renewTime"]
        await a.stop()
        assert a.told == ["started", "stopped"]
        assert not a.leads
        async with asyncio.timeout(0.5):  # less than the lease would last
            await b.started.wait()
        assert server.spec["holderIdentity"] == "b"
        assert server.spec["leaseTransitions"] == 1
        await b.stop()
        assert server.spec["holderIdentity"] == ""
        assert server.spec["leaseTransitions"] == 1


async def test_a_leader_that_is_cut_off_stops_before_its_successor_starts():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        a.start()
        await a.started.wait()
        b.start()
        server.cut_off.add("a")
        while not b.leads:
            both = a.leads and b.leads
            assert not both
            await asyncio.sleep(0.002)
        assert not a.leads
        await a.task  # one term, and it returns
        assert a.told == ["started", "lost", "stopped"]
        await b.started.wait()
        assert server.spec["holderIdentity"] == "b"


async def test_a_standby_takes_the_lease_as_soon_as_it_may():
    """However slowly the leader renews: a standby that looked rarely would see its end late."""
    times = LeaseTimes(lease_duration_s=3, renew_deadline_s=2.9, retry_s=2.4)
    server = LeaseServer(holderIdentity="ghost", leaseDurationSeconds=3)
    async with candidates(server, "a", times=times) as (a,):
        a.start()
        await asyncio.sleep(0.1)
        server.store({**server.lease, "spec": {**server.spec, "renewTime": "another"}})
        renewed_s = a.clock.monotonic_s()
        await a.started.wait()
        assert 3.0 <= a.clock.monotonic_s() - renewed_s < 4.0


async def test_leadership_ends_by_itself_even_if_nothing_runs():
    async with candidates(LeaseServer(), "a") as (a,):
        a.start()
        await a.started.wait()
        now_s = a.clock.monotonic_s()
        assert a.elector.is_leader(now_s)
        assert not a.elector.is_leader(now_s + QUICK.renew_deadline_s)


@pytest.mark.parametrize("renewed", ["1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
async def test_the_holders_clock_is_not_believed(renewed):
    server = LeaseServer(holderIdentity="ghost", leaseDurationSeconds=1, renewTime=renewed)
    async with candidates(server, "a") as (a,):
        started_s = a.clock.monotonic_s()
        a.start()
        await a.started.wait()
        assert 1.0 <= a.clock.monotonic_s() - started_s < 2.0
        assert server.spec["leaseTransitions"] == 1


async def test_a_lease_that_was_given_back_is_taken_at_once_and_unknown_fields_stay():
    server = LeaseServer(holderIdentity="", leaseDurationSeconds=1, strategy="X")
    server.lease["metadata"]["labels"] = {"a": "b"}
    async with candidates(server, "a") as (a,):
        a.start()
        async with asyncio.timeout(0.5):
            await a.started.wait()
        assert server.spec["strategy"] == "X"
        assert server.lease["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("odd", [None, True, -1, 2**70, 1.5, "x", "\x1b", [], [{}], {"a": 1}])
async def test_a_lease_of_odd_fields_is_taken_when_it_has_not_changed_for_its_duration(odd):
    """Its holder may be anything: somebody who may write it, or a proxy, decides what it says."""
    names = ["leaseTransitions", "renewTime", "acquireTime", "leaseDurationSeconds", "strategy"]
    server = LeaseServer(holderIdentity=odd or "ghost", **dict.fromkeys(names, odd))
    server.spec["leaseDurationSeconds"] = 1 if odd in (2**70, 1.5) else odd
    server.lease["metadata"]["annotations"] = odd
    async with candidates(server, "a") as (a,):
        began_s = a.clock.monotonic_s()
        a.start()
        await a.started.wait()
        assert a.clock.monotonic_s() - began_s >= 1.0, "somebody may hold it"
        assert server.spec["holderIdentity"] == "a"
        assert 1 <= server.spec["leaseTransitions"] < 2**31
        assert server.spec["strategy"] == odd, "what we do not know stays"
        assert a.elector.last_error is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"{}", b'{"metadata":7}'])
async def test_an_answer_that_is_no_lease_is_a_failure_like_any_other(body):
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        server.garbage = body
        a.start()
        while a.elector.last_error is None:
            await asyncio.sleep(0.01)
        assert re.search("no Lease|no object of the API", str(a.elector.last_error))
        assert not a.leads
        server.garbage = None
        await a.started.wait()
        server.garbage = body  # the renewals arrive, and nothing tells
        while a.elector.last_error is None:
            await asyncio.sleep(0.01)
        server.garbage = None
        while a.elector.last_error is not None:
            await asyncio.sleep(0.01)
        assert a.leads
        assert a.told == ["started"]


async def test_who_is_told_that_another_holds_what_it_wrote_does_not_lead():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        server.alter = {"holderIdentity": "the webhook's choice"}
        a.start()
        while server.writes == 0:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert not a.leads
        assert a.told == []


async def test_each_renewal_carries_the_journal_and_the_next_leader_finds_the_last_one():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        a.start()
        await a.started.wait()
        assert "quorate.dev/journal" not in server.lease["metadata"]["annotations"]
        a.says = lambda found: f"a{len(a.found)}"
        await asyncio.sleep(0.3)
        now = server.lease["metadata"]["annotations"]["quorate.dev/journal"]
        assert now == f"a{len(a.found)}"
        await a.stop()
        last = server.lease["metadata"]["annotations"]["quorate.dev/journal"]
        assert last == f"a{len(a.found)}", "the one that is written when the lease is given back"
        b.start()
        await b.started.wait()
        assert b.found == [last]
        assert server.lease["metadata"]["annotations"]["quorate.dev/journal"] == last


async def test_the_lease_says_which_scheduler_names_its_holder_owns_from_its_creation_to_its_end():
    """Who asks what the scheduler owns asks the Lease: a local configuration may be another one."""

    def names():
        return server.lease["metadata"]["annotations"]["quorate.dev/scheduler-names"]

    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        a.start()
        await a.started.wait()
        assert server.writes == 1
        assert names() == "quorate,volcano", "as it was created"
        a.scheduler_names = ("renewed",)
        await asyncio.sleep(0.3)
        assert names() == "renewed"
        a.scheduler_names = ("given-back",)
        await a.stop()
        assert names() == "given-back"
        b.scheduler_names = ("taken",)
        b.start()
        await b.started.wait()
        assert names() == "taken"


async def test_a_leader_survives_conflicts_with_other_writers():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        for _ in range(10):
            server.store(server.lease)  # someone labels it, say
            await asyncio.sleep(0.1)
        assert a.leads
        assert a.told == ["started"]


async def test_a_leader_survives_failures_shorter_than_its_deadline():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        server.failing = lambda: True
        await asyncio.sleep(0.3)
        assert a.elector.last_error is not None
        server.failing = lambda: False
        await asyncio.sleep(0.5)
        assert a.leads
        assert a.elector.last_error is None


async def test_a_leader_survives_a_request_that_is_never_answered():
    """As on a connection that a load balancer forgot: another one works."""
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        server.swallowed = 1
        await asyncio.sleep(2 * QUICK.renew_deadline_s)
        assert server.swallowed == 0
        assert a.leads
        assert a.told == ["started"]


async def test_a_leader_whose_lease_was_taken_stops_at_once():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        server.store({**server.lease, "spec": {**server.spec, "holderIdentity": "thief"}})
        async with asyncio.timeout(0.5):
            await a.task
        assert a.told == ["started", "lost", "stopped"]
        assert server.spec["holderIdentity"] == "thief", "it is not given back by a"


async def test_a_lease_whose_last_renewal_was_cut_short_is_given_back_all_the_same():
    """The renewal had arrived: the Lease has a version that its leader never saw."""
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        server.store({**server.lease, "spec": {**server.spec, "renewTime": "cut short"}})
        await a.stop()
        assert server.spec["holderIdentity"] == ""


@pytest.mark.parametrize("holder", [None, "ghost"])
async def test_a_candidate_that_is_stopped_while_it_takes_the_lease_gives_it_back(holder):
    """Its write has arrived; the answer is still on its way."""
    server = LeaseServer(
        **({"holderIdentity": holder, "leaseDurationSeconds": 1} if holder else {})
    )
    async with candidates(server, "a") as (a,):
        a.start()
        while server.writes == 0:
            await asyncio.sleep(0.0005)
        assert server.spec["holderIdentity"] == "a"
        assert not a.leads
        await a.stop()
        assert server.spec["holderIdentity"] == ""
        assert a.told == []


async def test_a_stuck_core_neither_takes_the_lease_nor_keeps_it():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        a.stuck = 31.0
        a.start()
        while a.elector.status.failure is None:
            await asyncio.sleep(0.01)
        assert "the core has not turned for 31 s" in str(a.elector.status.failure)
        assert server.lease is None
        a.stuck = 0.0
        await a.started.wait()
        b.start()
        a.stuck = 40.0
        await a.task
        assert "the core has not turned for 40 s" in a.elector.status.why_lost
        assert a.told == ["started", "lost", "stopped"]
        await b.started.wait()


async def test_a_defect_of_the_elector_ends_it_and_the_lease_runs_out():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):

        def broken(found):
            raise RuntimeError("a defect")

        a.start()
        await a.started.wait()
        a.says = broken
        with pytest.raises(RuntimeError, match="a defect"):
            await a.task
        assert not a.leads
        assert server.spec["holderIdentity"] == "a", "its work was still under way"
        assert a.told == ["started", "stopped"]


async def test_work_that_ends_or_fails_gives_the_lease_back():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.work_s = 0.05
        await a.start().task
        assert server.spec["holderIdentity"] == ""

        async def fail():
            raise RuntimeError("a defect")

        with pytest.raises(RuntimeError, match="a defect"):
            await a.elector.run(fail, a.lost)
        assert server.spec["holderIdentity"] == ""
        assert "lost" not in a.told


async def test_there_are_never_two_leaders_whatever_fails():
    chance = random.Random(SEED)
    server = LeaseServer()
    server.failing = lambda: chance.random() < 0.2
    names = ["a", "b", "c"]

    async def term_after_term(candidate):
        while True:
            await candidate.elector.run(candidate.work, candidate.lost)

    async with candidates(server, *names) as made:
        for candidate in made:
            candidate.task = asyncio.create_task(term_after_term(candidate))
        for turn in range(15_000):
            if turn % 200 == 0:
                server.cut_off = {chance.choice(names)}
            leading = [candidate.name for candidate in made if candidate.leads]
            assert len(leading) <= 1, leading
            await asyncio.sleep(0.004)
        assert sum(candidate.told.count("started") for candidate in made) >= 1


@pytest.mark.parametrize(
    "times",
    [
        {"lease_duration_s": 10, "renew_deadline_s": 10},
        {"renew_deadline_s": 2.4, "retry_s": 2.0},
    ],
)
def test_times_that_would_allow_two_leaders_are_refused(times):
    with pytest.raises(ValueError, match="leader election needs"):
        LeaseTimes(**times)
