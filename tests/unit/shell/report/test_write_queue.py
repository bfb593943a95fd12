"""Reports that can wait: a passing trouble loses none, and what is lost can be said again."""

import asyncio

import pytest

from quorate.shell.kube.errors import Conflict, Forbidden, ServerError, error_from_response
from quorate.shell.report import write_queue as module
from quorate.shell.report.write_queue import WriteQueue
from tests.unit.shell.scripted_server import no_defect

pytestmark = pytest.mark.virtual


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(module, "_RETRY_S", 0.0)


async def tries_until_settled(*errors):
    """Queue a write that fails with these, one after the other; return its tries and losses."""
    idle, left, tries, losses = asyncio.Event(), list(errors), [], []
    idle.set()
    done = asyncio.Event()

    async def send():
        tries.append(1)
        if left:
            raise left.pop(0)
        done.set()

    def lost():
        losses.append(1)
        done.set()

    writes = WriteQueue(idle, note=no_defect)
    writes.put("key", send, urgent=True, lost=lost)
    running = asyncio.create_task(writes.run())
    try:
        async with asyncio.timeout(0.5):
            await done.wait()
    except TimeoutError:
        pass
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return len(tries), len(losses), writes.failed


async def test_a_conflict_is_tried_again():
    conflict = Conflict(409, "Conflict", "the object has been modified")
    assert await tries_until_settled(conflict, conflict) == (3, 0, 0)


async def test_what_is_gone_needs_no_report_but_what_a_proxy_does_not_know_may_be_there():
    gone = error_from_response(404, b'{"reason": "NotFound", "details": {"name": "p"}}')
    assert await tries_until_settled(gone) == (1, 0, 0)
    assert await tries_until_settled(error_from_response(404, b"404 page not found")) == (2, 0, 0)


async def test_an_event_that_exists_already_was_written():
    exists = Conflict(409, "AlreadyExists", "already exists")
    assert await tries_until_settled(exists) == (1, 0, 0)


async def test_what_the_server_could_not_take_is_told_to_its_author():
    errors = [ServerError(500, "InternalError", "no") for _ in range(5)]
    assert await tries_until_settled(*errors) == (5, 1, 1)


async def test_what_is_forbidden_is_tried_until_it_is_allowed():
    errors = [Forbidden(403, "Forbidden", "no") for _ in range(20)]
    assert await tries_until_settled(*errors) == (21, 0, 0)


async def test_tries_of_what_is_forbidden_come_ever_less_often(monkeypatch):
    monkeypatch.setattr(module, "_RETRY_S", 0.2)
    idle, delays_s, tried = asyncio.Event(), [], asyncio.Event()
    idle.set()
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def at_once(delay_s, call, *args):
        if getattr(call, "__name__", "") != "_put_again":
            return call_later(delay_s, call, *args)
        delays_s.append(delay_s)
        if len(delays_s) == 12:
            tried.set()
            return call_later(delay_s, call, *args)
        return call_later(0, call, *args)

    async def send():
        raise Forbidden(403, "Forbidden", "no")

    monkeypatch.setattr(loop, "call_later", at_once)
    writes = WriteQueue(idle, note=no_defect)
    writes.put("key", send, urgent=True, lost=lambda: None)
    running = asyncio.create_task(writes.run())
    async with asyncio.timeout(10):
        await tried.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert delays_s[:8] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6]
    assert delays_s[8:] == [30.0] * 4
    assert len(writes) == 0


async def test_what_waits_for_its_next_try_holds_up_no_other_write(monkeypatch):
    """There are more of them than workers, and their tries are far apart."""
    monkeypatch.setattr(module, "_RETRY_S", 1000.0)
    idle, sent = asyncio.Event(), asyncio.Event()
    idle.set()
    writes = WriteQueue(idle, note=no_defect)

    async def fail():
        raise ServerError(500, "InternalError", "no")

    async def send():
        sent.set()

    for number in range(50):
        writes.put(number, fail, urgent=True)
    writes.put("later", send, urgent=False)
    running = asyncio.create_task(writes.run())
    async with asyncio.timeout(10):
        await sent.wait()
    assert len(writes) == 50
    writes.forget(7)
    assert len(writes) == 49
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_newer_write_takes_the_place_of_one_that_waits_for_its_next_try():
    idle, tried, said = asyncio.Event(), asyncio.Event(), []
    idle.set()
    writes = WriteQueue(idle, note=no_defect)

    async def old():
        said.append("old")
        tried.set()
        raise ServerError(500, "InternalError", "no", retry_after_s=0.05)

    async def new():
        said.append("new")

    writes.put("key", old, urgent=True)
    running = asyncio.create_task(writes.run())
    await tried.wait()
    await asyncio.sleep(0)
    writes.put("key", new, urgent=True)
    await asyncio.sleep(0.2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert said == ["old", "new"]


async def test_what_is_forbidden_while_the_server_starts_is_tried_again():
    forbidden = Forbidden(403, "Forbidden", "no")
    assert await tries_until_settled(forbidden, forbidden) == (3, 0, 0)


async def test_reports_wait_for_all_who_go_first():
    first, second, sent = asyncio.Event(), asyncio.Event(), asyncio.Event()
    writes = WriteQueue(first, second, note=no_defect)

    async def send():
        assert first.is_set()
        assert second.is_set()
        sent.set()

    writes.put("key", send, urgent=True)
    running = asyncio.create_task(writes.run())
    first.set()
    await asyncio.sleep(0.01)
    assert not sent.is_set()
    second.set()
    async with asyncio.timeout(10):
        await sent.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_reports_do_not_starve_while_binds_come_without_end(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.001)
    never, told = asyncio.Event(), []
    writes = WriteQueue(never, note=no_defect)

    async def send(key):
        told.append(key)

    writes.put("event", lambda: send("event"), urgent=False)
    writes.put("condition", lambda: send("condition"), urgent=True)
    running = asyncio.create_task(writes.run())
    async with asyncio.timeout(10):
        while len(told) < 2:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert told == ["condition", "event"]


async def test_a_report_into_a_namespace_that_goes_is_no_second_try_and_no_loss():
    going = Forbidden(403, "Forbidden", "it is being terminated")
    going.is_namespace_going = True
    assert await tries_until_settled(going) == (1, 0, 0)


async def test_a_report_that_meets_a_defect_of_ours_is_lost_alone():
    """Any error but the API server's ended the worker, the term and the process."""
    idle, sent, noted = asyncio.Event(), asyncio.Event(), []
    idle.set()

    async def broken():
        raise KeyError("planted")

    async def send():
        sent.set()

    writes = WriteQueue(idle, note=lambda *defect: noted.append(defect))
    for number in range(20):
        writes.put(number, broken, urgent=True)
    writes.put("whole", send, urgent=True)
    running = asyncio.create_task(writes.run())
    async with asyncio.timeout(10):
        await sent.wait()
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert {(stage, about) for stage, about, _ in noted} == {("report", str(n)) for n in range(20)}
    assert writes.failed == 20
