"""The core's heart beats while it waits, while a long list is read, and only while it gets on."""

import asyncio

from quorate.core.model.changes import PodGone
from simulate.cluster.world import World
from simulate.fleet import Replica
from simulate.virtual_loop import VirtualLoop


def in_simulation(play):
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(play(loop))
    finally:
        loop.close()


async def one_that_leads(loop):
    world = World(3, loop)
    world.faults.stop()
    replica = Replica(world, "replica_1", lambda link, plan: None, lambda: None)
    stop = asyncio.Event()
    task = loop.create_task(replica.schedule(stop))
    while not replica.leads or not replica.decides:
        await asyncio.sleep(0.1)
    return replica, stop, task


def test_a_core_that_has_nothing_to_do_is_not_stuck():
    async def play(loop):
        replica, stop, task = await one_that_leads(loop)
        for _ in range(100):
            await asyncio.sleep(3.0)
            assert replica._heartbeat.stuck_s() == 0.0
            assert replica.leads
        stop.set()
        await task

    in_simulation(play)


def test_a_core_that_is_blocked_is_stuck_unless_it_reads_a_long_list():
    async def play(loop):
        replica, stop, task = await one_that_leads(loop)
        loop.now_s += 31.0  # nothing runs meanwhile
        assert replica._heartbeat.stuck_s() > 30.0
        replica._loop.put(PodGone("uid"))
        assert replica._heartbeat.stuck_s() == 0.0
        stop.set()
        await asyncio.gather(task, return_exceptions=True)

    in_simulation(play)
