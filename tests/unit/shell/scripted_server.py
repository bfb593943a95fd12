"""A scripted API server over real HTTP, for the tests of ``shell.kube`` and of ``shell.lease``."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.access import Access, Pem, Trust
from quorate.shell.kube.identity.credentials import Credentials
from quorate.shell.kube.lists.events import (
    ListBegins,
    Listed,
    SomeListed,
    WatchEvent,
)
from quorate.shell.kube.writer import Writer
from quorate.shell.process.clock import SystemClock
from tests import servers

Step = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class ManualClock:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.time_s = 1000.0

    def now_s(self) -> float:
        return self.time_s

    def monotonic_s(self) -> float:
        return self.time_s


def credentials_for(url: str, ca_path: str | None = None) -> Credentials:
    """Credentials with a token that never changes."""
    trust = Trust(authority=Pem("the test's authority", file=ca_path) if ca_path else None)
    access = Access(server=url, headers=(("Authorization", "Bearer t0ken"),), trust=trust)

    async def load() -> Access:
        return access

    return Credentials(access, load, clock=SystemClock())


def writer_of(client: KubeClient, may_write: Callable[[], bool] = lambda: True) -> Writer:
    """A writer whose time stands still, and that draws no chance."""
    return Writer(client, may_write=may_write, clock=ManualClock(), note=no_defect)


def no_defect(stage: str, about: str, error: Exception) -> None:
    """Fail: a test that expects no defect meets one."""
    raise AssertionError(f"{stage}: {about}") from error


class ScriptedServer:
    """Answers each request by the next step of its script; after the last one it stays silent."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.requests: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []
        self.script_done = asyncio.Event()
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        if not self.steps:
            self.script_done.set()
            await asyncio.Event().wait()
        return await self.steps.pop(0)(request)


@asynccontextmanager
async def serving(server: ScriptedServer) -> AsyncIterator[ScriptedServer]:
    async with servers.serving(server.answer) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


def answer(status: int, body: object = None, **headers: str) -> Step:
    """Answer with JSON (or with bytes, as they are)."""

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=raw, headers=shown)

    return step


def refusal(status: int, reason: str, message: str = "", **headers: str) -> Step:
    """Answer with a Status object."""
    body = {"kind": "Status", "code": status, "reason": reason}
    return answer(status, {**body, "message": message or f"it is {reason}"}, **headers)


def gone(name: str = "job-0") -> Step:
    """Answer that there is no such object, which a proxy's 404 does not say."""
    details = {"name": name, "kind": "pods"}
    body = {"kind": "Status", "code": 404, "reason": "NotFound", "details": details}
    return answer(404, {**body, "message": f'pods "{name}" not found'})


def may(allowed: bool) -> Step:
    """Answer who asks, after a 403, whether it has the right: admission may have said that."""
    return answer(201, {"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}})


def listing(names: list[str], version: int, token: str = "") -> Step:
    items = [{"metadata": {"name": name}} for name in names]
    metadata = {"resourceVersion": str(version), "continue": token}
    return answer(200, {"kind": "PodList", "metadata": metadata, "items": items})


def whole_list(*items: bytes) -> list[WatchEvent]:
    """What a reflector says of a list."""
    return [ListBegins(), SomeListed(list(items)), Listed("1")]


def event(kind: str, name: str, version: int, **more: object) -> bytes:
    metadata = {"name": name, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": metadata, **more}}).encode() + b"\n"


def error_event(status: int, reason: str) -> bytes:
    status_object = {"kind": "Status", "code": status, "reason": reason, "message": "so sorry"}
    return json.dumps({"type": "ERROR", "object": status_object}).encode() + b"\n"


def stream(*parts: bytes, then: str = "end", pause_s: float = 0.0) -> Step:
    """Send parts of a watch's body, then "end" it well, "cut" the connection, or go "silent"."""

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part)
            await asyncio.sleep(pause_s)
        if then == "cut":
            await asyncio.sleep(0.05)  # let what was written arrive
            assert request.transport is not None
            request.transport.abort()
        elif then == "silent":
            await asyncio.Event().wait()
        return response

    return step
