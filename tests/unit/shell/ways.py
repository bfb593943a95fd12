"""The ways to an API server, reads, writes and watches, and one that answers them all."""

from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests import servers


@asynccontextmanager
async def serving(context):
    """An API server that answers everything, and remembers what it was sent."""
    seen = []

    async def answer(request):
        seen.append(request.headers.get("Authorization", ""))
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async with servers.serving(answer, context) as port:
        yield port, seen


async def read(client):
    await client.get("/api/v1/pods")


async def write(client):
    await client.post("/api/v1/namespaces/n/pods/p/binding", {})


async def watch(client):
    async with client.stream("/api/v1/pods", {"watch": "true"}, silence_s_max=5) as stream:
        while await stream.read():
            pass


WAYS = pytest.mark.parametrize("way", [read, write, watch])
