"""The writer: who goes first, who may send, how often, and what each answer means."""

import asyncio

import pytest

from quorate.shell.commit import device_claims, evictor, preemptor, volume_claims
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, Conflict, Forbidden, ServerError
from quorate.shell.kube.writer import Backoff, End, Priority, Rule, Writer
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    gone,
    no_defect,
    refusal,
    serving,
    stream,
    writer_of,
)
from tools.testing import HANGS_S

DONE = answer(201, {})
QUICK = Rule(Priority.CLAIM, tries_max=2, retry_s_min=0.001)
GOING = answer(
    403,
    {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": "unable to create new content in namespace team because it is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]},
    },
)


async def reset(request):
    request.transport.abort()
    return await DONE(request)


async def slow(request):
    await asyncio.sleep(0.1)
    return await DONE(request)


def rules():
    found = {
        "evict": evictor._EVICTION,
        "preempt": preemptor._PREEMPTION,
        "prepare": volume_claims._CLAIM,
        "give": device_claims._GIVE,
        "take back": device_claims._TAKE_BACK,
    }
    return [pytest.param(rule, id=name) for name, rule in found.items()]


def end_after(rule, error, *, is_young=False):
    return rule.end_of(error, is_young=is_young)


# Answers

ANSWERS = {
    "done": (DONE, End.DONE, 1),
    "nonsense": (answer(200, b"\xff{not json"), End.GIVEN_UP, 2),
    "huge": (answer(201, b"x" * 3_000_000), End.GIVEN_UP, 2),
    "slow": (slow, End.DONE, 1),
    "403": (refusal(403, "Forbidden"), End.REFUSED, 1),
    "going": (GOING, End.GONE, 1),
    "404": (gone(), End.GONE, 1),
    "404 of nothing in particular": (refusal(404, "NotFound"), End.REFUSED, 1),
    "409": (refusal(409, "Conflict"), End.CHANGED, 1),
    "410": (refusal(410, "Gone"), End.REFUSED, 1),
    "422": (refusal(422, "Invalid"), End.REFUSED, 1),
    "302": (answer(302, b"", Location="http://127.0.0.1:1/"), End.REFUSED, 1),
    "429": (refusal(429, "TooManyRequests"), End.GIVEN_UP, 2),
    "500": (refusal(500, "InternalError"), End.GIVEN_UP, 2),
    "503": (answer(503, b"<html>busy"), End.GIVEN_UP, 2),
    "reset": (reset, End.GIVEN_UP, 2),
    "cut": (stream(b"half of an answer", then="cut"), End.GIVEN_UP, 2),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_each_answer_has_one_meaning_and_only_passing_ones_another_try(name):
    step, end, tries = ANSWERS[name]
    async with (
        serving(ScriptedServer(step, step)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = writer_of(client)
        outcome = await writer.write(lambda: writer.post("/x", {}), QUICK)
    assert (outcome.end, outcome.tries, len(server.requests)) == (end, tries, tries)
    assert bool(outcome.problem) == (end is not End.DONE)


@pytest.mark.parametrize("rule", rules())
async def test_a_namespace_that_goes_ends_every_kind_of_write_at_its_first_try(rule):
    async with (
        serving(ScriptedServer(GOING)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = writer_of(client)
        outcome = await writer.write(lambda: writer.post("/x", {}), rule)
    assert (outcome.end, len(server.requests)) == (End.GONE, 1)


@pytest.mark.parametrize("rule", rules())
async def test_a_lost_answer_and_then_success_is_done_for_all_but_what_has_one_try(rule):
    async with (
        serving(ScriptedServer(reset, DONE)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = writer_of(client)
        outcome = await writer.write(lambda: writer.post("/x", {}), rule)
    assert outcome.end is (End.GIVEN_UP if rule.tries_max == 1 else End.DONE)


@pytest.mark.parametrize("rule", rules())
def test_who_may_not_write_is_refused_but_not_by_a_server_that_has_just_come_back(rule):
    forbidden = Forbidden(403, "Forbidden", "no")
    assert end_after(rule, forbidden, is_young=True) is None
    insists = rule is evictor._EVICTION
    assert end_after(rule, forbidden) is (None if insists else End.REFUSED)


def test_only_evictions_and_allocations_insist_after_a_conflict():
    conflict = Conflict(409, "Conflict", "it changed")
    insist = [one.id for one in rules() if end_after(one.values[0], conflict) is None]
    assert insist == ["evict", "give"]


async def test_the_server_says_how_long_to_wait(monkeypatch):
    waits_s = []
    sleep = asyncio.sleep

    async def at_once(delay_s):
        waits_s.append(delay_s)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    backoff = Backoff(0.05, 0.1, lambda: 0.5)
    busy = ServerError(503, "Busy", "no", retry_after_s=7.0)
    for error in (None, busy, None, None):
        await backoff.wait(error)
    assert waits_s == pytest.approx([0.05 * 1.125, 7 * 1.125, 0.1 * 1.125, 0.1 * 1.125])


async def test_a_write_ends_after_the_try_that_meets_its_deadline():
    async with (
        serving(ScriptedServer(*[refusal(500, "InternalError")] * 3)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        clock = ManualClock()

        async def pass_time(error):
            clock.time_s += 10.0

        writer = Writer(client, may_write=lambda: True, clock=clock, note=no_defect)
        outcome = await writer.write(
            lambda: writer.post("/x", {}),
            Rule(Priority.CLAIM, retry_s_min=0.001),
            deadline_s=clock.time_s + 15.0,
            on_failed=pass_time,
        )
    assert (outcome.end, outcome.tries, len(server.requests)) == (End.GIVEN_UP, 2, 2)


# Who may send


async def test_the_lease_is_asked_for_before_each_try():
    leads = True

    async def depose(request):
        nonlocal leads
        leads = False
        return await refusal(500, "InternalError")(request)

    async with (
        serving(ScriptedServer(refusal(500, "InternalError"), depose, DONE)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = writer_of(client, lambda: leads)
        rule = Rule(Priority.CLAIM, retry_s_min=0.001)
        outcome = await writer.write(lambda: writer.patch("/x", {}, "merge"), rule)
        again = await writer.write(lambda: writer.delete("/x"), rule)
    assert (outcome.end, outcome.tries, len(server.requests)) == (End.DEPOSED, 2, 2)
    assert (again.end, again.tries) == (End.DEPOSED, 0)


@pytest.mark.parametrize("proxied", [False, True])
async def test_what_waits_for_a_slot_or_a_connection_is_not_sent_by_a_deposed_leader(proxied):
    leads, arrived, go_on = True, asyncio.Event(), asyncio.Event()

    async def first(request):
        arrived.set()
        await go_on.wait()
        return await DONE(request)

    async with serving(ScriptedServer(first, DONE, DONE, DONE)) as server:
        credentials = credentials_for("http://api.invalid:80" if proxied else server.url)
        credentials.proxy_url = server.url if proxied else None
        async with KubeClient(credentials, write_connections_max=1) as client:
            writer = Writer(
                client, may_write=lambda: leads, clock=ManualClock(), slots=2, note=no_defect
            )
            writes = [
                asyncio.create_task(writer.write(lambda: writer.post("/x", {}), QUICK))
                for _ in range(4)  # one on the connection, one waits for it, two for a slot
            ]
            await arrived.wait()
            leads = False
            go_on.set()
            ends = [one.end for one in await asyncio.gather(*writes)]
    assert ends == [End.DONE, End.DEPOSED, End.DEPOSED, End.DEPOSED]
    assert len(server.requests) == 1


# Who goes first


async def test_evictions_go_before_preemptions_and_these_before_claims_and_reports():
    arrived, go_on, sent = asyncio.Event(), asyncio.Event(), []

    async def held(request):
        arrived.set()
        await go_on.wait()
        return await DONE(request)

    async with (
        serving(ScriptedServer(held, *[DONE] * 9)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = Writer(
            client, may_write=lambda: True, clock=ManualClock(), slots=1, note=no_defect
        )

        async def write(priority):
            async def send():
                sent.append(priority)
                return await writer.post(f"/{priority.name}", {})

            assert (await writer.write(send, Rule(priority))).end is End.DONE

        first = asyncio.create_task(write(Priority.REPORT))
        await arrived.wait()
        rest = [asyncio.create_task(write(one)) for one in [*reversed(Priority), *Priority]]
        dropped = asyncio.create_task(write(Priority.EVICTION))
        await asyncio.sleep(0)
        dropped.cancel()
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, *rest)
        assert (await writer.write(lambda: writer.post("/x", {}), QUICK)).end is End.DONE
    assert sent == [Priority.REPORT, *sorted([*Priority, *Priority])]


async def test_a_write_that_waits_for_its_next_try_holds_no_slot():
    async with (
        serving(ScriptedServer(refusal(500, "InternalError"), DONE)) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = Writer(
            client, may_write=lambda: True, clock=ManualClock(), slots=1, note=no_defect
        )
        rule = Rule(Priority.EVICTION, retry_s_min=1000.0)
        held = asyncio.create_task(writer.write(lambda: writer.post("/held", {}), rule))
        while not server.requests:
            await asyncio.sleep(0.001)
        async with asyncio.timeout(HANGS_S):
            assert (await writer.write(lambda: writer.post("/x", {}), QUICK)).end is End.DONE
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)


async def test_a_rate_holds_what_comes_beyond_it_and_no_other_writes(monkeypatch):
    clock, waits_s = ManualClock(), []
    sleep = asyncio.sleep

    async def pass_time(delay_s):
        waits_s.append(round(delay_s, 6))
        await sleep(0)

    writer = Writer(None, may_write=lambda: False, clock=clock, note=no_defect)
    rule = Rule(Priority.EVICTION, per_s=4.0)
    monkeypatch.setattr(asyncio, "sleep", pass_time)
    for _ in range(7):
        await writer.write(None, rule)
    await writer.write(None, QUICK)
    assert waits_s == [0.25, 0.5, 0.75]
    clock.time_s += 10.0
    await writer.write(None, rule)
    assert waits_s == [0.25, 0.5, 0.75]


async def test_what_a_write_finds_out_after_a_failure_may_end_it():
    async with (
        serving(ScriptedServer(refusal(409, "Conflict"))) as server,
        KubeClient(credentials_for(server.url)) as client,
    ):
        writer = writer_of(client)

        async def look(error: ApiError) -> End | None:
            return End.GONE

        outcome = await writer.write(
            lambda: writer.post("/x", {}), evictor._EVICTION, on_failed=look
        )
    assert (outcome.end, outcome.tries) == (End.GONE, 1)
