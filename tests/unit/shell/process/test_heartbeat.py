"""Liveness: the pages answer while the core's loop is blocked, and say if that is too long."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from quorate.shell.process.clock import SystemClock
from quorate.shell.process.heartbeat import Heartbeat
from quorate.shell.process.loop_lag import LoopLag
from quorate.shell.report.metrics import Metrics
from quorate.shell.serve.health import HealthError, HealthServer
from quorate.shell.serve.health_thread import THREAD_NAME, HealthThread
from tests.unit.shell.scripted_server import ManualClock
from tools.testing import HANGS_S


def server_of(heartbeat, port=0, registry=None):
    return HealthServer(
        "127.0.0.1",
        port,
        registry=registry or CollectorRegistry(),
        unready_reason=lambda: None,
        stuck_s=heartbeat.stuck_s,
    )


@asynccontextmanager
async def pages_of(heartbeat, registry=None):
    server = server_of(heartbeat, registry=registry)
    thread = HealthThread(server)
    await thread.start()
    yield server
    await thread.close()
    assert THREAD_NAME not in [one.name for one in threading.enumerate()]


def page(server, path):
    """Fetch it while this loop is blocked."""
    try:
        with urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=HANGS_S) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_core_is_stuck_when_it_has_not_turned_for_too_long():
    clock = ManualClock()
    heartbeat = Heartbeat(clock)
    clock.time_s += 30.0
    assert heartbeat.stuck_s() == 0.0, "it begins with a beat"
    clock.time_s += 0.5
    assert heartbeat.stuck_s() == 30.5
    heartbeat.beat()
    assert heartbeat.stuck_s() == 0.0
    assert heartbeat.every_s < 30.0 / 3


async def test_the_pages_answer_while_the_core_is_busy_and_say_when_it_is_stuck():
    clock = ManualClock()
    heartbeat = Heartbeat(clock)
    async with pages_of(heartbeat) as server:
        clock.time_s += 20.0
        assert page(server, "/healthz") == (200, "ok\n")
        clock.time_s += 21.0
        said = (503, "the core has not turned for 41 s\n")
        assert page(server, "/healthz") == said
        assert page(server, "/readyz") == said
        assert page(server, "/metrics")[0] == 200
        heartbeat.beat()
        assert page(server, "/healthz") == (200, "ok\n")


async def test_a_port_in_use_is_told_where_it_was_started():
    heartbeat = Heartbeat(ManualClock())
    async with pages_of(heartbeat) as server:
        second = HealthThread(server_of(heartbeat, server.port))
        with pytest.raises(HealthError, match="the port is in use"):
            await second.start()
        await second.close()


async def test_lag_is_how_long_the_loop_was_blocked_while_it_is_and_after():
    metrics = Metrics()
    lag = LoopLag(SystemClock(), metrics)
    assert lag.max_s() == 0.0
    async with pages_of(Heartbeat(SystemClock()), metrics.registry) as server:
        task = asyncio.create_task(lag.run())
        await asyncio.sleep(0)
        time.sleep(0.8)
        assert gauge(page(server, "/metrics")[1]) > 0.6, "it is blocked now"
        while metrics.registry.get_sample_value("quorate_loop_lag_seconds_count") < 1:
            await asyncio.sleep(0.01)
        assert lag.max_s() > 0.6
        value = metrics.registry.get_sample_value
        short = value("quorate_loop_lag_seconds_bucket", {"le": "0.5"})
        assert value("quorate_loop_lag_seconds_count") > short
        while lag.max_s() > 0.6:
            await asyncio.sleep(0.05)
        task.cancel()


def gauge(text):
    (line,) = [one for one in text.splitlines() if one.startswith("quorate_loop_lag_max_seconds ")]
    return float(line.split()[1])
