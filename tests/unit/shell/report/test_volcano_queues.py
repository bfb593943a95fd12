"""Volcano's queues are made as soon as they can be, and what stands in the way is said once.

What is taken of them is written as it is, whatever the watch has shown of it so far.
"""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from quorate.core.model import Queue
from quorate.core.model.changes import ObjectChanged
from quorate.shell.kube.client import KubeClient
from quorate.shell.report import volcano_queues
from quorate.shell.report.volcano_queues import VolcanoQueues
from quorate.shell.report.write_queue import WriteQueue
from tests.unit.core.world import GPU, VOLCANO, World, amounts, key
from tests.unit.shell.scripted_server import (
    ScriptedServer,
    answer,
    credentials_for,
    may,
    no_defect,
    refusal,
    serving,
    writer_of,
)
from tools.testing import HANGS_S

MADE = answer(201, {})
NO = refusal(403, "Forbidden", "cannot create queues")


@pytest.mark.parametrize(
    ("tries", "said"),
    [
        ([], []),
        ([NO, may(False)] * 3, ["quorate manifests, without the option --without volcano-queues"]),
        ([NO, may(True)] * 3, ["cannot create queues"]),
        ([NO, may(False), refusal(500, "Error", "away")], ["--without volcano-queues", "away"]),
    ],
)
async def test_what_is_wrong_is_said_once_and_it_goes_on(tries, said, monkeypatch):
    """Without the right a line came every ten seconds, for ever.

    Volcano's controller could close no queue whose state was written by another name than its own.
    """
    monkeypatch.setattr(volcano_queues, "_TRY_AGAIN_S", 0.001)
    async with (
        serving(ScriptedServer(*tries, MADE, MADE, MADE, MADE)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=1) as client,
        asyncio.timeout(HANGS_S),
    ):
        with capture_logs() as logged:
            await volcano_queues._ensure(writer_of(client))
    assert not server.steps
    assert server.requests[-1].query_string == "fieldManager=queue-controller"
    assert server.requests[-1].content_type == "application/apply-patch+yaml"
    assert len(logged) == len(said)
    for line, words in zip(logged, said, strict=True):
        assert line["event"] == "cannot create a Volcano queue"
        assert words in line["problem"]


class Kept:
    """A world whose Volcano queues are kept."""

    def __init__(self, server, client):
        self.server, self.writes = server, WriteQueue(note=no_defect)
        self.world = World(scheduler_names=("quorate", "volcano"))
        self.queues = VolcanoQueues(writer_of(client), self.writes, self.world.scheduler)
        self.world.node("n1", gpu=8)
        self.world.observe(ObjectChanged(Queue("default")))

    def gang(self, name, **more):
        self.world.gang(name, 1, gang_spec={"queue": "default"}, dialect=VOLCANO, **more)
        self.world.cycle()
        self.queues.touch([key(name, VOLCANO)])

    def ends(self, name):
        self.world.edit(f"{name}-0", phase="Succeeded")
        self.queues.touch([key(name, VOLCANO)])

    def shows(self, **more):
        """The watch shows what is taken of the queue."""
        self.world.observe(ObjectChanged(Queue("default", allocated=amounts(**more))))

    async def wrote(self, count):
        """Return the amounts in the last request, once there were so many after the queues'."""
        while len(self.server.bodies) < 4 + count:
            await asyncio.sleep(0.001)
        return json.loads(self.server.bodies[-1])["status"]["allocated"]

    async def looked(self):
        """Return when what was touched has been looked at."""
        while self.queues._news.is_set():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def kept(monkeypatch, *steps):
    """Yield it; ``steps`` are the answers of the server once it has made the queues."""
    monkeypatch.setattr(volcano_queues, "_AMOUNTS_EVERY_S", 0.001)
    async with (
        serving(ScriptedServer(*[MADE] * 4, *steps)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=1) as client,
        asyncio.timeout(HANGS_S),
    ):
        made = Kept(server, client)
        writing = asyncio.create_task(made.writes.run())
        made.queues.keep(1)
        yield made
        made.queues.keep(0)
        writing.cancel()


WRITTEN = answer(200, {})


async def test_what_is_taken_no_more_is_removed_before_the_watch_shows_that_it_was(monkeypatch):
    async with kept(monkeypatch, WRITTEN, WRITTEN) as k:
        k.gang("one", gpu=8)
        assert await k.wrote(1) == {"cpu": "1", "memory": "0", GPU: "8", "pods": "1"}
        k.ends("one")
        assert await k.wrote(2) == {"cpu": "0", "memory": "0", GPU: None, "pods": None}


async def test_nothing_is_written_once_the_watch_shows_it(monkeypatch):
    async with kept(monkeypatch, WRITTEN, WRITTEN) as k:
        k.gang("one")
        await k.wrote(1)
        k.shows(cpu=1, pods=1)
        k.queues.touch([key("one", VOLCANO)])
        await k.looked()
        k.gang("two")
        assert await k.wrote(2) == {"cpu": "2", "memory": "0", "pods": "2"}


async def test_who_starts_writes_what_another_has_left(monkeypatch):
    async with kept(monkeypatch, WRITTEN) as k:
        k.shows(cpu=4, gpu=2)
        k.gang("one")
        assert await k.wrote(1) == {"cpu": "1", "memory": "0", GPU: None, "pods": "1"}


async def test_what_could_not_be_written_is_written_later(monkeypatch):
    monkeypatch.setattr("quorate.shell.report.write_queue._RETRY_S", 0.001)
    async with kept(monkeypatch, *[refusal(500, "InternalError")] * 5, WRITTEN) as k:
        k.gang("one")
        assert await k.wrote(6) == {"cpu": "1", "memory": "0", "pods": "1"}
