"""Proxies, as kubectl uses them. In: a server's URL and the environment. Out: a proxy.

``credentials`` asks which proxy there is, ``client`` goes through it. The rules of NO_PROXY are
those of Go's ``httpproxy``: kubectl and quorate must not go different ways from one shell.
"""

import ipaddress
from collections.abc import Mapping
from typing import Final

from yarl import URL

_VARIABLES: Final = {
    "http": ("HTTP_PROXY", "http_proxy"),
    "https": ("HTTPS_PROXY", "https_proxy"),
}


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
