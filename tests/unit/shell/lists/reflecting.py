"""A reflector that follows a scripted server, and what it says."""

import asyncio
import json
from contextlib import asynccontextmanager

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.lists.events import (
    Absent,
    Added,
    Deleted,
    Failing,
    Garbled,
    ListBegins,
    Listed,
    Modified,
    Recovered,
    SomeListed,
)
from quorate.shell.kube.lists.reflector import Pace, Reflector
from quorate.shell.process.clock import SystemClock
from tests.unit.shell.scripted_server import ScriptedServer, credentials_for, serving
from tools.testing import HANGS_S

QUICK = Pace(page_size=2, backoff_s_min=0.01, backoff_s_max=0.05, absent_poll_s=0.05)


def words(happening):
    """An event of the reflector as a short word."""
    match happening:
        case Absent():
            return "absent"
        case Garbled():
            return "garbled"
    assert isinstance(happening, Added | Modified | Deleted)
    kind = type(happening).__name__.lower()
    return f"{kind} {json.loads(happening.raw)['metadata']['name']}"


class Trace:
    def __init__(self, server):
        self.server = server
        self.seen = []

    @property
    def words(self):
        """What happened, a word for each; a list that did not end is none."""
        said, listed = [], []
        for happening in self.seen:
            match happening:
                case ListBegins():
                    listed = []
                case SomeListed(items=items):
                    listed += [json.loads(item)["metadata"]["name"] for item in items]
                case Listed():
                    said.append("listed " + ",".join(listed))
                case Failing() | Recovered():
                    pass
                case _:
                    said.append(words(happening))
        return said

    @property
    def watched_from(self):
        """The resource version of each watch, in order."""
        return [
            request.query["resourceVersion"]
            for request in self.server.requests
            if "watch" in request.query
        ]


@asynccontextmanager
async def reflecting(*steps, pace=QUICK, kind=""):
    """Run a reflector until the script is done."""
    server = ScriptedServer(*steps)
    trace = Trace(server)
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        reflector = Reflector(
            client,
            "/api/v1/pods",
            on_event=trace.seen.append,
            clock=SystemClock(),
            chance=lambda: 0.5,
            pace=pace,
            kind=kind,
        )
        running = asyncio.create_task(reflector.run())
        done = asyncio.create_task(server.script_done.wait())
        await asyncio.wait([running, done], return_when=asyncio.FIRST_COMPLETED, timeout=HANGS_S)
        assert server.script_done.is_set(), (trace.words, running)
        yield trace, reflector
        running.cancel()
        await asyncio.gather(running, done, return_exceptions=True)
