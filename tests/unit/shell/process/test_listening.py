"""Where health and metrics are heard: on both families, unless one address is named."""

import asyncio
import socket

import pytest
from prometheus_client import CollectorRegistry

from quorate.shell.configuration.config import Config
from quorate.shell.serve.health import HealthError, HealthServer

EVERYWHERE = pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])


def health(host, port=0):
    registry = CollectorRegistry()
    return HealthServer(host, port, registry=registry, unready_reason=lambda: None)


async def hears(address, port, tls=None):
    """Tell whether a request to this address is answered."""
    try:
        reader, writer = await asyncio.open_connection(address, port, ssl=tls)
    except ConnectionRefusedError:
        return False
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.startswith(b"HTTP/1.1 ")


def addresses():
    """Return the loopback addresses of this machine."""
    found = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as tried:
                tried.bind((address, 0))
        except OSError:
            continue
        found.append(address)
    return found


@EVERYWHERE
async def test_health_is_heard_on_every_address(host):
    server = health(host)
    await server.start()
    assert [a for a in addresses() if not await hears(a, server.port)] == []
    await server.close()
    assert [a for a in addresses() if await hears(a, server.port)] == []


def test_by_default_health_is_heard_everywhere_in_a_pod_and_on_this_machine_only_elsewhere(
    monkeypatch,
):
    """Whoever shared a network with a laptop could read the metrics of its ``quorate run``."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert Config.default().health_host == "0.0.0.0"
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    assert Config.default().health_host == "127.0.0.1"


async def test_one_address_is_that_one_alone():
    server = health("127.0.0.1")
    await server.start()
    assert [a for a in addresses() if await hears(a, server.port)] == ["127.0.0.1"]
    await server.close()


@EVERYWHERE
async def test_a_kernel_without_ipv6_is_heard_on_ipv4(monkeypatch, host):
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    server = health(host)
    await server.start()
    assert await hears("127.0.0.1", server.port)
    await server.close()


@EVERYWHERE
@pytest.mark.parametrize("taken", ["0.0.0.0", "::"])
async def test_a_port_in_use_on_either_family_is_named(host, taken):
    family = socket.AF_INET6 if taken == "::" else socket.AF_INET
    if family == socket.AF_INET6 and "::1" not in addresses():
        pytest.skip("this machine has no IPv6")
    with socket.create_server((taken, 0), family=family) as other:
        port = other.getsockname()[1]
        with pytest.raises(HealthError, match=f":{port}: the port is in use; stop the other"):
            await health(host, port).start()
