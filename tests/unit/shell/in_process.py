"""A client of a scripted server without a network, for tests on virtual time.

In: the server's ``answer``. Out: the client that the shell uses, with the same errors. Where the
network itself is in question, use ``scripted_server.serving`` and real time.
"""

import asyncio

import msgspec

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import error_from_response, is_object

_WAY_S = 0.001


class LoopClock:
    """The clock of the running loop, also for people."""

    def now_s(self):
        return 1e9 + self.monotonic_s()

    def monotonic_s(self):
        return asyncio.get_running_loop().time()


class _Request:
    """What servers of tests ask of a request."""

    def __init__(self, method, path, body):
        self.method, self.path, self._body = method, path, body

    async def read(self):
        return self._body


class InProcess(KubeClient):
    """A client whose requests are a thousandth of a second under way, and so are answers."""

    def __init__(self, server, prefix=""):
        self._server = server
        self._prefix = prefix

    async def get(self, path, params=None):
        return await self._ask("GET", path)

    async def post(self, path, body, params=None, *, may_send=None):
        return await self._write("POST", path, body)

    async def put(self, path, body, params=None):
        return await self._write("PUT", path, body)

    def warm(self, count):
        pass

    async def close(self):
        pass

    async def _write(self, method, path, body):
        answer = await self._ask(method, path, body)
        if not is_object(answer):
            raise error_from_response(200, answer)
        return answer

    async def _ask(self, method, path, body=b""):
        sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
        await asyncio.sleep(_WAY_S)
        response = await self._server.answer(_Request(method, self._prefix + path, sent))
        await asyncio.sleep(_WAY_S)
        if 200 <= response.status < 300:
            return response.body
        raise error_from_response(response.status, response.body)
