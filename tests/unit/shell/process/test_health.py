"""Health and metrics: three pages and nothing else."""

from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from quorate.shell.serve.health import HealthError, HealthServer


@asynccontextmanager
async def health(reason=None, **options):
    registry = CollectorRegistry()
    Counter("binds", "Binds", registry=registry).inc(3)
    server = HealthServer(
        "127.0.0.1", 0, registry=registry, unready_reason=lambda: reason, **options
    )
    await server.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        yield server, session
    await server.close()


async def fetch(session, method, path):
    async with session.request(method, path) as response:
        return response.status, await response.text(), response.headers


async def test_pages_when_ready():
    async with health() as (_, session):
        assert (await fetch(session, "GET", "/healthz"))[:2] == (200, "ok\n")
        assert (await fetch(session, "GET", "/readyz"))[:2] == (200, "ok\n")
        assert (await fetch(session, "HEAD", "/readyz"))[0] == 200
        status, text, headers = await fetch(session, "GET", "/metrics")
        assert status == 200
        assert "binds_total 3.0" in text
        assert headers["Content-Type"].startswith("text/plain; version=")


async def test_not_ready_says_why_and_is_healthy_all_the_same():
    async with health("pods: not listed yet") as (_, session):
        assert (await fetch(session, "GET", "/readyz"))[:2] == (503, "pods: not listed yet\n")
        assert (await fetch(session, "GET", "/healthz"))[0] == 200


async def test_a_standby_is_ready_and_says_who_leads():
    async with health(note=lambda: "standing by: b leads") as (_, session):
        assert (await fetch(session, "GET", "/readyz"))[:2] == (200, "ok\nstanding by: b leads\n")
        assert (await fetch(session, "GET", "/healthz"))[:2] == (200, "ok\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/healthz/", 404),
        ("GET", "/debug/pprof", 404),
        ("POST", "/nothing", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/healthz", 405),
    ],
)
async def test_everything_else_is_refused(method, path, status):
    async with health() as (_, session):
        assert (await fetch(session, method, path))[0] == status


async def test_a_port_in_use_is_named_with_the_remedy():
    async with health() as (first, _):
        second = HealthServer(
            "127.0.0.1", first.port, registry=CollectorRegistry(), unready_reason=lambda: None
        )
        with pytest.raises(HealthError) as caught:
            await second.start()
    message = str(caught.value)
    assert f"127.0.0.1:{first.port}: the port is in use" in message
    assert "configure another port" in message
    assert "\n" not in message
