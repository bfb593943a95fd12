"""The API server must prove who it is, on every way out, unless the kubeconfig says otherwise."""

import json
import logging
import ssl

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Unreachable
from quorate.shell.kube.identity.credentials import credentials_from_kubeconfig
from tests.unit.shell.authority import DAY, NOW, Authority
from tests.unit.shell.scripted_server import ManualClock
from tests.unit.shell.ways import WAYS, serving

TOKEN = "a-token-that-only-the-right-server-may-see"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "right")


async def connect(tmp_path, port, **cluster):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}", **cluster}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return KubeClient(await credentials_from_kubeconfig(path, clock=ManualClock()))


async def refused(tmp_path, context, way, **cluster):
    """Return why a server is refused; it must not see the token, nor may the error hold it."""
    async with serving(context) as (port, seen):
        async with await connect(tmp_path, port, **cluster) as client:
            with pytest.raises(Unreachable) as caught:
                await way(client)
        assert not seen
    assert TOKEN not in f"{caught.value!r} {caught.value.__cause__!r}"
    return str(caught.value).lower()


@WAYS
async def test_the_right_server_is_accepted(tmp_path, authority, way):
    async with serving(authority.server()) as (port, seen):
        ca = {"certificate-authority": str(authority.file)}
        async with await connect(tmp_path, port, **ca) as client:
            await way(client)
        assert seen == [f"Bearer {TOKEN}"]


@WAYS
async def test_a_server_of_another_authority_is_refused(tmp_path, authority, way):
    other = Authority(tmp_path, "other")
    ca = {"certificate-authority": str(authority.file)}
    assert "certificate" in await refused(tmp_path, other.server(), way, **ca)


@WAYS
async def test_without_an_authority_the_systems_own_count_and_not_everybody(
    tmp_path, authority, way
):
    assert "certificate" in await refused(tmp_path, authority.server(), way)


@WAYS
async def test_an_expired_certificate_is_refused(tmp_path, authority, way):
    ca = {"certificate-authority": str(authority.file)}
    context = authority.server(until=NOW - DAY)
    assert "expired" in await refused(tmp_path, context, way, **ca)


@WAYS
async def test_a_certificate_for_another_host_is_refused(tmp_path, authority, way):
    ca = {"certificate-authority": str(authority.file)}
    context = authority.server(names=("elsewhere.example", "127.0.0.2"))
    assert "mismatch" in await refused(tmp_path, context, way, **ca)


@WAYS
async def test_the_servers_name_in_the_kubeconfig_counts_instead_of_its_address(
    tmp_path, authority, way
):
    context = authority.server(names=("kubernetes.example",))
    ca = {"certificate-authority": str(authority.file)}
    name = {"tls-server-name": "kubernetes.example"}
    async with serving(context) as (port, seen):
        async with await connect(tmp_path, port, **ca, **name) as client:
            await way(client)
        assert seen
    name = {"tls-server-name": "other.example"}
    assert "mismatch" in await refused(tmp_path, context, way, **ca, **name)


@WAYS
async def test_plain_http_behind_an_https_address_is_refused(tmp_path, way):
    assert await refused(tmp_path, None, way)


@WAYS
async def test_tls_is_not_verified_only_where_the_kubeconfig_says_so_and_then_it_warns(
    tmp_path, authority, way, caplog
):
    context = authority.server(names=("elsewhere.example",), until=NOW - DAY)
    async with serving(context) as (port, seen):
        skip = {"insecure-skip-tls-verify": True}
        with caplog.at_level(logging.WARNING):
            client = await connect(tmp_path, port, **skip)
        async with client:
            await way(client)
        assert seen
    [record] = caplog.records
    assert record.getMessage().startswith("insecure-skip-tls-verify: whoever answers at https://")
    assert TOKEN not in record.getMessage()


async def test_nothing_is_warned_of_where_tls_is_verified(tmp_path, authority, caplog):
    client = await connect(tmp_path, 1, **{"certificate-authority": str(authority.file)})
    await client.close()
    assert not caplog.records
    assert client._credentials.tls.minimum_version >= ssl.TLSVersion.TLSv1_2
