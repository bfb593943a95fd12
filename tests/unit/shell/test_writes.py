"""Reports that can wait: a passing trouble loses none, and what is lost can be said again."""

import asyncio

import pytest

from quorate.shell.kube.errors import Conflict, Forbidden, ServerError
from quorate.shell.report import writes as module
from quorate.shell.report.writes import Writes


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

    writes = Writes(idle)
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


async def test_an_event_that_exists_already_was_written():
    exists = Conflict(409, "AlreadyExists", "already exists")
    assert await tries_until_settled(exists) == (1, 0, 0)


async def test_what_the_server_could_not_take_is_told_to_its_author():
    errors = [ServerError(500, "InternalError", "no") for _ in range(5)]
    assert await tries_until_settled(*errors) == (5, 1, 1)


async def test_what_is_forbidden_for_good_is_not_said_again():
    errors = [Forbidden(403, "Forbidden", "no") for _ in range(5)]
    assert await tries_until_settled(*errors) == (5, 0, 1)


async def test_what_is_forbidden_while_the_server_starts_is_tried_again():
    forbidden = Forbidden(403, "Forbidden", "no")
    assert await tries_until_settled(forbidden, forbidden) == (3, 0, 0)


async def test_reports_wait_for_all_who_go_first():
    first, second, sent = asyncio.Event(), asyncio.Event(), asyncio.Event()
    writes = Writes(first, second)

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
