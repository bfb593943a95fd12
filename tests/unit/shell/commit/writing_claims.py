"""Writes of devices into claims, against a scripted server."""

import asyncio
from contextlib import asynccontextmanager

from quorate.core.model import Allocation, DeviceId, GangKey
from quorate.core.model.devices import GivenDevice
from quorate.core.model.plan import Bind, GangBinds, Give
from quorate.shell.commit.device_claims import DeviceClaims
from quorate.shell.kube.client import KubeClient
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    serving,
    writer_of,
)
from tools.testing import HANGS_S

GIVEN = Allocation((GivenDevice("r", DeviceId("d", "p", "gpu-0")),))
GIVE = Give("team", "c0", "claim-uid", GIVEN)
BIND = Bind("uid-0", "team", "g-0", "n0", gives=(GIVE,))
OURS = {"allocation": {"devices": {"results": [{"driver": "d", "pool": "p", "device": "gpu-0"}]}}}
OTHER = {"allocation": {"devices": {"results": [{"driver": "d", "pool": "p", "device": "gpu-9"}]}}}


def gang(*binds: Bind) -> GangBinds:
    key = GangKey("team", "x-k8s", "g")
    return GangBinds(key=key, attempt="a", size=len(binds), deadline_s=2000.0, binds=binds)


def claim(status: dict | None = None, **meta):
    return answer(
        200,
        {"metadata": {"uid": "claim-uid", "resourceVersion": "5", **meta}, "status": status or {}},
    )


@asynccontextmanager
async def writing(*steps, may_write=lambda: True, told=None, clock=None):
    bound: list = []
    outcomes: list = []
    async with (
        serving(ScriptedServer(*steps)) as server,
        KubeClient(credentials_for(server.url), write_connections_max=4) as client,
    ):
        claims = DeviceClaims(
            writer_of(client, may_write),
            bound.append,
            outcomes.append,
            on_written=told.append if told is not None else bytes,
            clock=clock or ManualClock(),
        )
        yield claims, bound, outcomes, server


async def after(claims: DeviceClaims) -> None:
    """Wait until nothing is under way."""
    async with asyncio.timeout(HANGS_S):
        while claims._writes:
            await asyncio.sleep(0.01)
