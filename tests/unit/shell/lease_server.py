"""A server of one Lease, and candidates for it, for the tests of leader election."""

import asyncio
import random
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from quorate.shell.lease.elector import Elector, LeaseTimes
from tests.unit.shell.in_process import InProcess, LoopClock
from tests.unit.shell.scripted_server import ScriptedServer

PATH = "/apis/coordination.k8s.io/v1/namespaces/sys/leases"
QUICK = LeaseTimes(lease_duration_s=1, renew_deadline_s=0.6, retry_s=0.1)


class LeaseServer(ScriptedServer):
    """One Lease, with the API server's rules for versions. Each candidate has a path of its own."""

    def __init__(self, **spec):
        super().__init__()
        self.version = 0
        self.lease = None
        self.cut_off = set()  # candidates that get no answer
        self.swallowed = 0  # so many of the next requests get no answer
        self.failing = lambda: False
        self.refuse = {}  # steps of a ScriptedServer, by method
        self.garbage = None  # every answer, in place of the Lease
        self.alter = {}  # what an admission webhook writes into each spec
        self.writes = 0
        if spec:
            self.store({"metadata": {"name": "q", "namespace": "sys"}, "spec": spec})

    @property
    def spec(self):
        return self.lease["spec"]

    def store(self, lease):
        self.version += 1
        self.lease = {**lease}
        self.lease["metadata"] = {**lease["metadata"], "resourceVersion": str(self.version)}

    async def answer(self, request):
        _, candidate, path = request.path.split("/", 2)
        if candidate in self.cut_off:
            await asyncio.sleep(60)
        if self.swallowed:
            self.swallowed -= 1
            await asyncio.sleep(60)
        if self.failing():
            return self.reply(503, {"reason": "ServiceUnavailable"})
        if request.method in self.refuse:
            return await self.refuse[request.method](request)
        if request.method == "GET":
            assert f"/{path}" == f"{PATH}/q"
            return self.reply(404, {"reason": "NotFound"}) if self.lease is None else self.shown()
        sent = msgspec.json.decode(await request.read())
        if request.method == "POST":
            assert f"/{path}" == PATH
            if self.lease is not None:
                return self.reply(409, {"reason": "AlreadyExists"})
        elif sent["metadata"]["resourceVersion"] != str(self.version):
            return self.reply(409, {"reason": "Conflict"})
        self.writes += 1
        self.store({**sent, "spec": {**sent["spec"], **self.alter}})
        return self.shown()

    def shown(self):
        if self.garbage is not None:
            return web.Response(body=self.garbage)
        return self.reply(200, self.lease)

    @staticmethod
    def reply(status, body):
        return web.Response(status=status, body=msgspec.json.encode(body))


class Candidate:
    """An elector and what it told the application."""

    scheduler_names = ("quorate", "volcano")

    def __init__(self, server, name, times):
        self.found = []
        self.says = lambda found: found
        self.stuck = 0.0
        self.clock = LoopClock()
        self.name = name
        self.elector = Elector(
            lambda: InProcess(server, f"/{name}"),
            namespace="sys",
            name="q",
            identity=name,
            clock=self.clock,
            chance=random.Random(name).random,
            core=self,
            times=times,
        )
        self.told = []
        self.started = asyncio.Event()
        self.work_s = 3600.0
        self.task = None

    async def journal(self, found):
        self.found.append(found)
        return self.says(found)

    def stuck_s(self):
        return self.stuck

    @property
    def leads(self):
        return self.elector.is_leader(self.clock.monotonic_s())

    def start(self):
        self.task = asyncio.create_task(self.elector.run(self.work, self.lost))
        return self

    async def work(self):
        assert self.leads
        self.told.append("started")
        self.started.set()
        try:
            await asyncio.sleep(self.work_s)
        finally:
            self.told.append("stopped")

    def lost(self):
        assert not self.leads
        self.told.append("lost")

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def candidates(server, *names, times=QUICK):
    made = [Candidate(server, one, times) for one in names]
    try:
        async with asyncio.timeout(3600):  # of virtual time
            yield made
    finally:
        for candidate in made:
            if candidate.task is not None:
                await candidate.stop()
