"""Certificates and authorities that are renewed in place count for all connections from then on."""

import asyncio
import json
import logging
import os
import ssl
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Unreachable
from quorate.shell.kube.identity.credentials import (
    LOOK_INTERVAL_S,
    credentials_from_kubeconfig,
    credentials_in_cluster,
)
from tests.servers import serving
from tests.unit.shell.authority import Authority
from tests.unit.shell.scripted_server import ManualClock
from tests.unit.shell.ways import WAYS, write


class Server:
    """An API server that asks for certificates, and notes their serial numbers."""

    def __init__(self, folder, authority):
        self.folder = folder
        self.context = authority.server()
        self.context.load_verify_locations(authority.file)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.serials = []
        self.ends = False  # each connection after one answer
        self.goes_on = asyncio.Event()  # a watch, after its first part
        self.goes_on.set()

    def take(self, authority):
        """Show a certificate of this authority to those who come from now on."""
        authority.server()
        self.context.load_cert_chain(self.folder / f"{authority.name}-server.pem")

    async def answer(self, request):
        peer = request.transport.get_extra_info("peercert")
        self.serials.append(int(peer["serialNumber"], 16))
        answer = web.StreamResponse()
        if "watch" not in request.query:
            answer = web.json_response({})
        if self.ends:
            answer.force_close()
        await answer.prepare(request)
        if "watch" in request.query:
            await answer.write(b"{}")
            await self.goes_on.wait()
            await answer.write(b"{}")
        return answer


def put(path, text):
    """Write a file anew in its place, as another file of that name: what renewers do."""
    new = path.with_suffix(".new")
    new.write_bytes(text)
    new.replace(path)


def put_over(path, text):
    """Write over a file, with a later time: a clock's tick may be too long for a test."""
    before = path.stat().st_mtime_ns
    path.write_bytes(text)
    os.utime(path, ns=(before + 1, before + 1))


class World:
    """A server, a client, and the files by which the client proves who it is."""

    def __init__(self, folder):
        self.authority = Authority(folder, "first")
        self.server = Server(folder, self.authority)
        self.clock = ManualClock()
        self.ca, self.cert, self.key = (folder / n for n in ("ca.crt", "u.crt", "u.key"))
        self.ca.write_bytes(self.authority.file.read_bytes())
        for path, text in zip((self.cert, self.key), self.authority.client(1), strict=True):
            path.write_bytes(text)

    async def connect(self, folder, port):
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.ca)}
        user = {"client-certificate": str(self.cert), "client-key": str(self.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return KubeClient(await credentials_from_kubeconfig(path, clock=self.clock))


@asynccontextmanager
async def world(folder):
    made = World(folder)
    async with (
        serving(made.server.answer, made.server.context) as made.port,
        await made.connect(folder, made.port) as made.client,
    ):
        yield made


@WAYS
@pytest.mark.parametrize("renew", [put, put_over])
async def test_a_client_certificate_that_was_renewed_is_shown_within_seconds(tmp_path, way, renew):
    async with world(tmp_path) as w:
        await way(w.client)
        certificate, key = w.authority.client(2)
        renew(w.cert, certificate)
        renew(w.key, key)
        await way(w.client)
        w.clock.time_s += LOOK_INTERVAL_S
        await way(w.client)
        await way(w.client)
        assert w.server.serials == [1, 1, 2, 2]


@WAYS
async def test_an_authority_that_was_renewed_is_read_at_once_after_a_refusal(tmp_path, way):
    async with world(tmp_path) as w:
        w.server.ends = True
        await way(w.client)
        second = Authority(tmp_path, "second")
        put(w.ca, w.authority.file.read_bytes() + second.file.read_bytes())
        w.server.take(second)
        with pytest.raises(Unreachable, match="certificate"):
            await way(w.client)
        await way(w.client)  # the clock has not moved


@WAYS
async def test_an_authority_that_was_taken_out_is_trusted_no_more(tmp_path, way):
    async with world(tmp_path) as w:
        await way(w.client)
        put(w.ca, Authority(tmp_path, "second").file.read_bytes())
        w.clock.time_s += LOOK_INTERVAL_S
        with pytest.raises(Unreachable, match="certificate"):
            await way(w.client)
        assert w.server.serials == [1]


async def test_what_is_under_way_goes_on_with_the_certificate_that_it_began_with(tmp_path):
    async with world(tmp_path) as w:
        w.server.goes_on.clear()
        async with w.client.stream("/x", {"watch": "true"}, silence_s_max=5) as stream:
            certificate, key = w.authority.client(2)
            put(w.cert, certificate)
            put(w.key, key)
            w.clock.time_s += LOOK_INTERVAL_S
            await write(w.client)
            w.server.goes_on.set()
            said = b""
            while part := await stream.read():
                said += part
        assert said == b"{}{}"
        assert w.server.serials == [1, 2]


async def test_half_of_a_new_pair_leaves_the_old_one_in_use_and_is_told_once(tmp_path, caplog):
    async with world(tmp_path) as w:
        certificate, key = w.authority.client(2)
        put(w.cert, certificate)
        with caplog.at_level(logging.WARNING):
            for _ in range(4):
                w.clock.time_s += LOOK_INTERVAL_S
                await write(w.client)
        [record] = caplog.records
        assert "not a usable client certificate and key" in record.getMessage()
        put(w.key, key)
        w.clock.time_s += LOOK_INTERVAL_S
        await write(w.client)
        assert w.server.serials == [1, 1, 1, 1, 2]


async def test_a_pods_authority_is_renewed_as_the_kubelet_does_by_a_link(tmp_path):
    """The files are links through ``..data``, which goes to another folder all at once."""
    clock, mount = ManualClock(), tmp_path / "mount"
    for name in ("first", "second"):
        (mount / name).mkdir(parents=True)
        (mount / name / "token").write_text(f"token-{name}")
        (mount / name / "ca.crt").write_bytes(Authority(tmp_path, name).file.read_bytes())
    (mount / "..data").symlink_to("first")
    for name in ("token", "ca.crt"):
        (mount / name).symlink_to(f"..data/{name}")
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    credentials = await credentials_in_cluster(clock=clock, directory=mount, environ=environ)

    async def known():
        headers = await credentials.headers()
        [authority] = credentials.tls.get_ca_certs()
        return headers["Authorization"], dict(authority["subject"][0])["commonName"]

    assert await known() == ("Bearer token-first", "first")
    before = credentials.tls
    clock.time_s += 10 * LOOK_INTERVAL_S
    assert await known() == ("Bearer token-first", "first")
    assert credentials.tls is before, "connections go on where nothing changed"
    (mount / "..new").symlink_to("second")
    (mount / "..new").replace(mount / "..data")
    clock.time_s += LOOK_INTERVAL_S
    assert await known() == ("Bearer token-second", "second")
