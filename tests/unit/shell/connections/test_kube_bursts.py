"""After a pause a watch brings thousands of events at once: others have their turn among them."""

import asyncio
import itertools

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.lists import reflector as watching
from quorate.shell.kube.lists.reflector import Reflector
from quorate.shell.process.clock import SystemClock
from tests.unit.shell.scripted_server import (
    ScriptedServer,
    credentials_for,
    event,
    listing,
    serving,
    stream,
)


async def test_others_have_their_turn_while_thousands_of_events_come_at_once():
    heard, seen = [], []
    burst = b"".join(event("ADDED", f"p{i}", i + 2) for i in range(5000))

    async def count():
        while True:
            seen.append(len(heard))
            await asyncio.sleep(0)

    server = ScriptedServer(listing([], 1), stream(burst), stream())
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        reflector = Reflector(
            client,
            "/api/v1/pods",
            on_event=heard.append,
            clock=SystemClock(),
            chance=lambda: 0.5,
        )
        tasks = asyncio.create_task(count()), asyncio.create_task(reflector.run())
        await server.script_done.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert reflector.events == 5000
    at_once = [later - earlier for earlier, later in itertools.pairwise(seen)]
    assert max(at_once) <= watching.SLICE_EVENTS + 3  # a list is three words
