"""Watches that wait for an API server that is away come back together when it does."""

import asyncio

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.connections.availability import Availability
from quorate.shell.kube.lists.reflector import Pace, Reflector
from quorate.shell.process.clock import SystemClock
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    credentials_for,
    listing,
    serving,
)
from tools.testing import HANGS_S

NOWHERE = "http://127.0.0.1:1"
SLOW = Pace(backoff_s_min=60.0, backoff_s_max=60.0)


async def test_the_first_that_gets_an_answer_after_an_outage_tells_all_others():
    clock = SystemClock()
    availability = Availability(clock, lambda: 0.5)

    def watching(client: KubeClient) -> Reflector:
        return Reflector(
            client,
            "/api/v1/pods",
            on_event=lambda event: None,
            clock=clock,
            chance=lambda: 0.5,
            pace=SLOW,
            availability=availability,
        )

    async with (
        serving(ScriptedServer(listing([], 10))) as server,
        KubeClient(credentials_for(NOWHERE)) as nowhere,
        KubeClient(credentials_for(server.url)) as client,
        asyncio.timeout(HANGS_S),
    ):
        away, back = watching(nowhere), watching(client)
        tasks = [asyncio.create_task(away.run())]
        while away.failures < 1:
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(back.run()))
        while away.failures < 2:  # it has tried again
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_server_that_ends_all_that_it_takes_makes_nobody_hurry():
    clock = ManualClock()
    availability = Availability(clock, lambda: 0.0)
    first = asyncio.create_task(availability.wait(60.0))
    await asyncio.sleep(0)
    availability.answered()
    await first
    second = asyncio.create_task(availability.wait(60.0))
    await asyncio.sleep(0)
    availability.answered()
    await asyncio.sleep(0.05)
    assert not second.done()
    clock.time_s += 1.0
    availability.answered()
    await second
