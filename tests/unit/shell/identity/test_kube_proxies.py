"""Proxies: which one the environment names, and the way through it for reads, writes, watches."""

import asyncio
import base64
import contextlib
import json

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Unreachable
from quorate.shell.kube.identity.credentials import KubeConfigError, credentials_from_kubeconfig
from quorate.shell.kube.identity.proxies import proxy_for
from tests.servers import close
from tests.unit.shell.authority import Authority
from tests.unit.shell.scripted_server import ManualClock
from tests.unit.shell.ways import WAYS, serving, write

NAME = "api.example"
PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_direct"),
    [
        ("https://api.example:6443", "", False),
        ("https://api.example:6443", "*", True),
        ("https://api.example:6443", "other.example", False),
        ("https://api.example:6443", "other.example, API.example", True),
        ("https://api.example:6443", "example", True),
        ("https://api.example:6443", ".example", True),
        ("https://api.example:6443", "*.example", True),
        ("https://api.example:6443", "*ample", False),
        ("https://api.example:6443", "i.example", False),
        ("https://api.example:6443", ".api.example", False),
        ("https://api.example:6443", "api.example:6443", True),
        ("https://api.example:6443", "api.example:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "11.0.0.0/8,no/network", False),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://10.1.2.3:6443", "10.1.2.3:1", False),
        ("https://10.1.2.3:6443", "2.3", True),  # as a suffix: so it is in Go
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://[fd00::1]:443", "fd00:0::1", True),
        ("https://[fd00::1]:443", "[fd00::1]", True),
        ("https://[fd00::1]:443", "[fd00::1]:443", True),
        ("https://[fd00::1]:443", "[fd00::1]:1", False),
        ("https://[fd00::1]:443", "10.0.0.0/8", False),
        ("https://localhost:6443", "", True),
        ("https://127.0.0.9:6443", "", True),
        ("https://[::1]:6443", "", True),
    ],
)
def test_no_proxy_is_read_as_kubectl_reads_it(url, no_proxy, is_direct):
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert proxy_for(url, environ) == (None if is_direct else PROXY)


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://a.example", {}, None),
        ("https://a.example", {"HTTPS_PROXY": ""}, None),
        ("https://a.example", {"HTTP_PROXY": PROXY}, None),
        ("https://a.example", {"https_proxy": PROXY}, PROXY),
        ("https://a.example", {"https_proxy": "http://x:1", "HTTPS_PROXY": PROXY}, PROXY),
        ("https://a.example", {"https_proxy": PROXY, "no_proxy": "a.example"}, None),
        ("https://a.example", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("http://a.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://a.example", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_which_variable_counts(url, environ, proxy):
    assert proxy_for(url, environ) == proxy


class Proxy:
    """Makes tunnels to ``target``, whatever host is asked for, and notes what was asked."""

    def __init__(self, target, answer=b"HTTP/1.1 200 Connection established\r\n\r\n"):
        self.target, self.answer = target, answer
        self.heads, self.tasks = [], set()

    async def serve(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(self.answer)
            if b" 200 " in self.answer:
                there = await asyncio.open_connection("127.0.0.1", self.target)
                try:
                    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
                finally:
                    there[1].close()
        writer.close()


async def pump(reader, writer):
    while part := await reader.read(1 << 16):
        writer.write(part)
    writer.close()


@contextlib.asynccontextmanager
async def proxying(target, **options):
    proxy = Proxy(target, **options)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        await close(server)
        for task in proxy.tasks:
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)


async def connect(folder, authority, **cluster):
    known = {"server": f"https://{NAME}:6443", "certificate-authority": str(authority.file)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {**known, **cluster}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return KubeClient(await credentials_from_kubeconfig(path, clock=ManualClock()))


@WAYS
@pytest.mark.parametrize("named_in", ["environment", "kubeconfig"])
async def test_all_ways_go_through_the_proxy_and_tls_ends_at_the_server(
    tmp_path, monkeypatch, way, named_in
):
    authority, cluster = Authority(tmp_path, "right"), {}
    async with (
        serving(authority.server(names=(NAME,))) as (port, seen),
        proxying(port) as proxy,
    ):
        url = f"http://me:pass%20word@127.0.0.1:{proxy.port}"
        monkeypatch.setenv(
            "HTTPS_PROXY", url if named_in == "environment" else "http://127.0.0.1:1"
        )
        if named_in == "kubeconfig":
            cluster["proxy-url"] = url
        async with await connect(tmp_path, authority, **cluster) as client:
            await way(client)
            await way(client)
        assert seen == ["Bearer t0ken"] * 2
    for head in proxy.heads:
        assert head.startswith(f"CONNECT {NAME}:6443 HTTP/1.1\r\n")
        assert base64.b64encode(b"me:pass word").decode() in head
        assert "t0ken" not in head


async def test_a_server_in_no_proxy_is_asked_directly(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", NAME)
    authority = Authority(tmp_path, "right")
    async with await connect(tmp_path, authority) as client:
        assert client._credentials.proxy_url is None


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407.*Proxy Authentication"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "502.*Bad Gateway"),
    ],
)
async def test_what_a_proxy_refuses_is_unreachable_and_never_sent(tmp_path, answer, says):
    authority = Authority(tmp_path, "right")
    async with proxying(1, answer=answer) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        async with await connect(tmp_path, authority, **{"proxy-url": url}) as client:
            with pytest.raises(Unreachable, match=says) as caught:
                await write(client)
    assert not caught.value.maybe_processed
    assert f"{NAME}:6443 by the proxy 127.0.0.1:{proxy.port}" in str(caught.value)


async def test_a_deposed_leader_sends_nothing_through_a_proxy(tmp_path):
    authority = Authority(tmp_path, "right")
    async with (
        serving(authority.server(names=(NAME,))) as (port, seen),
        proxying(port) as proxy,
    ):
        url = f"http://127.0.0.1:{proxy.port}"
        async with await connect(tmp_path, authority, **{"proxy-url": url}) as client:
            with pytest.raises(Unreachable, match="may write no more"):
                await client.post("/x", {}, may_send=lambda: False)
        assert not seen


@pytest.mark.parametrize("url", ["socks5://me:secret@127.0.0.1:1", "http://me:secret@p:x", "p"])
async def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(tmp_path, url):
    authority = Authority(tmp_path, "right")
    with pytest.raises(KubeConfigError, match="begins with http:// or https://") as caught:
        await connect(tmp_path, authority, **{"proxy-url": url})
    assert "secret" not in str(caught.value)
