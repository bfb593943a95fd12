"""The client: what it sends, and which error each refusal becomes."""

import asyncio
import json
import socket

import pytest

from quorate.shell.kube import errors
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Unreachable
from tests.unit.shell.scripted_server import (
    ScriptedServer,
    answer,
    credentials_for,
    refusal,
    serving,
    stream,
)


async def test_what_is_sent():
    server = ScriptedServer(*[answer(200, {"n": n}) for n in range(6)])
    async with serving(server), KubeClient(credentials_for(server.url + "/k8s/c-1/")) as client:
        assert json.loads(await client.get("/api/v1/pods", {"limit": 5})) == {"n": 0}
        assert json.loads(await client.post("/a", {"x": 1})) == {"n": 1}
        await client.put("/a", b'{"raw":true}', {"dryRun": "All"})
        await client.patch("/a%2Fb", [{"op": "test"}], "json")
        await client.patch("/a", {"s": {}}, "strategic")
        await client.delete("/a")
    assert [f"{r.method} {r.rel_url.raw_path_qs}" for r in server.requests] == [
        "GET /k8s/c-1/api/v1/pods?limit=5",
        "POST /k8s/c-1/a",
        "PUT /k8s/c-1/a?dryRun=All",
        "PATCH /k8s/c-1/a%2Fb",
        "PATCH /k8s/c-1/a",
        "DELETE /k8s/c-1/a",
    ]
    assert server.bodies == [b"", b'{"x":1}', b'{"raw":true}', b'[{"op":"test"}]', b'{"s":{}}', b""]
    assert [r.headers.get("Content-Type") for r in server.requests] == [
        None,
        "application/json",
        "application/json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/json",
    ]
    for request in server.requests:
        assert request.headers["Authorization"] == "Bearer t0ken"
        assert request.headers["User-Agent"].startswith("quorate/")
        assert request.headers["Host"] == server.url.removeprefix("http://")
        assert request.headers["Accept"] == "application/json"
        assert request.headers.get("Accept-Encoding", "identity") == "identity"
        assert "Cookie" not in request.headers


@pytest.mark.parametrize("method", ["get", "delete"])  # one by aiohttp, one by the pool
@pytest.mark.parametrize(
    ("step", "kind", "reason", "retry_after_s"),
    [
        (refusal(404, "NotFound"), errors.NotFound, "NotFound", None),
        (refusal(409, "AlreadyExists"), errors.Conflict, "AlreadyExists", None),
        (refusal(410, "Expired"), errors.Gone, "Expired", None),
        (refusal(403, "Forbidden"), errors.Forbidden, "Forbidden", None),
        (
            refusal(429, "TooManyRequests", Retry_After="3"),
            errors.TooManyRequests,
            "TooManyRequests",
            3.0,
        ),
        (
            answer(504, {"reason": "Timeout", "details": {"retryAfterSeconds": 2}}),
            errors.ServerError,
            "Timeout",
            2.0,
        ),
        (answer(502, b"<html>Bad Gateway</html>"), errors.ServerError, "Unknown", None),
        (answer(500, b"\xff\xfe"), errors.ServerError, "Unknown", None),
        (refusal(422, "Invalid"), errors.ApiError, "Invalid", None),
        (answer(302, b"", Location="/elsewhere"), errors.ApiError, "Unknown", None),
    ],
)
async def test_refusals_are_typed(method, step, kind, reason, retry_after_s):
    server = ScriptedServer(step)
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        with pytest.raises(errors.ApiError) as caught:
            await getattr(client, method)("/x")
    assert type(caught.value) is kind
    assert caught.value.reason == reason
    assert caught.value.retry_after_s == retry_after_s
    assert len(server.requests) == 1, "nothing is retried, no redirect is followed"


@pytest.mark.parametrize("method", ["get", "delete"])
async def test_nobody_there_is_unreachable_and_surely_not_processed(method):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with KubeClient(credentials_for(url)) as client:
            with pytest.raises(errors.Unreachable) as caught:
                await getattr(client, method)("/x")
    assert not caught.value.maybe_processed
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("method", ["get", "delete"])
async def test_silence_times_out(method):
    server = ScriptedServer()
    async with serving(server), KubeClient(credentials_for(server.url), timeout_s=0.2) as client:
        with pytest.raises(errors.Unreachable) as caught:
            await getattr(client, method)("/x")
    assert caught.value.maybe_processed


async def test_paths_that_would_break_the_request_are_refused():
    async with KubeClient(credentials_for("http://127.0.0.1:1")) as client:
        for path in ("/a b", "/a\r\nX: y", "/ä", "/a\x00"):
            with pytest.raises(ValueError, match="not quoted"):
                await client.post(path, {})


async def test_a_thousand_writes_at_once():
    server = ScriptedServer(*[answer(201, {})] * 1000)
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        await asyncio.gather(*[client.post(f"/p/{i}", {"i": i}) for i in range(1000)])
    assert {json.loads(body)["i"] for body in server.bodies} == set(range(1000))
    assert len({id(request.transport) for request in server.requests}) <= 64


async def test_a_stream_that_is_cut_is_unreachable():
    server = ScriptedServer(stream(b"one\n", then="cut"), stream(b"", then="silent"))
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        async with client.stream("/x", None, silence_s_max=5) as body:
            assert await body.read() == b"one\n"
            with pytest.raises(errors.Unreachable):
                await body.read()
        async with client.stream("/x", None, silence_s_max=0.2) as body:
            with pytest.raises(errors.Unreachable):
                await body.read()


async def test_a_write_that_waits_behind_a_plain_proxy_is_not_sent_once_its_author_is_deposed():
    leads, arrived, go_on = True, asyncio.Event(), asyncio.Event()

    async def first(request):
        arrived.set()
        await go_on.wait()
        return await answer(201, {})(request)

    async with serving(ScriptedServer(first, answer(200, {}))) as server:
        credentials = credentials_for("http://api.invalid:6443")
        credentials.proxy_url = server.url
        async with KubeClient(credentials, write_connections_max=1) as client:
            bind = asyncio.create_task(client.post("/one", {}, may_send=lambda: leads))
            await arrived.wait()
            queued = asyncio.create_task(client.post("/two", {}, may_send=lambda: leads))
            await asyncio.sleep(0)
            leads = False
            go_on.set()
            await bind
            with pytest.raises(Unreachable, match="may write no more") as caught:
                await queued
            assert not caught.value.maybe_processed
            await client.get("/three")
        assert [one.path[-4:] for one in server.requests] == ["/one", "hree"]
