"""Proxies, as kubectl uses them. In: a server's URL and the environment. Out: a proxy, a tunnel.

``credentials`` asks which proxy there is, ``pool`` goes through it. The rules of NO_PROXY are those
of Go's ``httpproxy``: kubectl and quorate must not go different ways from one shell.
"""

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Mapping
from typing import Final

from yarl import URL

from quorate.shell.kube.paths import address

_HEAD_BYTES_MAX: Final = 16 * 1024
_VARIABLES: Final = {
    "http": ("HTTP_PROXY", "http_proxy"),
    "https": ("HTTPS_PROXY", "https_proxy"),
}


class ProxyError(OSError):
    """The proxy did not make a connection to the server; the one line says why."""


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy that the environment names for a server; None: go directly."""
    names = _VARIABLES.get(url.partition("://")[0], ())
    found = next((environ[name] for name in names if environ.get(name)), None)
    if found is None or _is_direct(URL(url), environ):
        return None
    return found if "://" in found else f"http://{found}"


def is_usable(proxy: str) -> bool:
    """Tell whether this is the URL of a proxy of a kind that we know."""
    try:
        url = URL(proxy)
        return url.scheme in _VARIABLES and bool(url.host) and url.port is not None
    except ValueError:
        return False


def _is_direct(server: URL, environ: Mapping[str, str]) -> bool:
    host, port = (server.host or "").lower().rstrip("."), server.port
    ip = _ip(host)
    if host == "localhost" or (ip is not None and ip.is_loopback):
        return True
    listed = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    entries = [entry.strip().lower() for entry in listed.split(",")]
    return any(_covers(entry, host, ip, port) for entry in entries if entry)


def _covers(
    entry: str,
    host: str,
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
    port: int | None,
) -> bool:
    """Tell whether an entry is ``*``, a network, or this host or a domain above it."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ip is not None and ip in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _ip(_bare(entry)) is None:
        name, colon, wanted = entry.rpartition(":")
        if colon:
            if wanted != str(port):
                return False
            entry = name
    if _ip(_bare(entry)) is not None:
        return ip == _ip(_bare(entry))
    entry = entry.removeprefix("*") if entry.startswith("*.") else entry
    return host.endswith(entry if entry.startswith(".") else f".{entry}") or host == entry


def _bare(host: str) -> str:
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


async def open_tunnel(connected: socket.socket, proxy: URL, host: str, port: int) -> None:
    """Ask the proxy at the other end of ``connected`` for a way to the server.

    Raises ProxyError, or OSError: the connection broke.
    """
    target = address(host, port)
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.user is not None:
        secret = base64.b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
        request += f"Proxy-Authorization: Basic {secret}\r\n"
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connected, f"{request}\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        part = await loop.sock_recv(connected, _HEAD_BYTES_MAX)
        if not part or len(head) > _HEAD_BYTES_MAX:
            raise ProxyError(
                f"the proxy {address(str(proxy.host), proxy.port or 80)} gave no answer to CONNECT"
            )
        head += part
    status, _, rest = head.partition(b"\r\n")
    words = status.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or words[1] != b"200":
        said = status[:100].decode("ascii", "replace")
        raise ProxyError(f"the proxy {proxy.host}:{proxy.port} made no connection: {said!r}")
    if not rest.endswith(b"\r\n\r\n") and rest != b"\r\n":
        raise ProxyError(f"the proxy {proxy.host}:{proxy.port} said more than was asked for")
