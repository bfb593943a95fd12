"""Credentials: every kind of user in a kubeconfig, and one clear line for each mistake."""

import asyncio
import base64
import contextlib
import json
import os
import ssl
import sys
import tempfile

import pytest
import yaml

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import (
    LOOK_INTERVAL_S,
    KubeConfigError,
    credentials_from_kubeconfig,
    credentials_in_cluster,
    load_credentials,
)
from tests.unit.shell.authority import Authority
from tests.unit.shell.scripted_server import ManualClock, ScriptedServer, answer, serving


def write_kubeconfig(path, user, **cluster):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:80/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config"


async def test_token(path, clock):
    write_kubeconfig(path, {"token": "abc"})
    credentials = await load_credentials(path, clock=clock)
    assert credentials.base_url == "http://127.0.0.1:80"
    assert credentials.tls is None
    headers = await credentials.headers()
    assert headers == {"Authorization": "Bearer abc"}
    clock.time_s += 1000
    assert await credentials.headers() is headers, "the same dict until something changes"


async def test_a_token_in_a_file_is_read_again_when_the_file_changed(path, tmp_path, clock):
    token = tmp_path / "token"
    token.write_text("old\n")
    write_kubeconfig(path, {"tokenFile": str(token)})
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    assert await credentials.headers() == {"Authorization": "Bearer old"}
    token.write_text("newer\n")
    clock.time_s += LOOK_INTERVAL_S - 0.1  # not looked at for each request
    assert await credentials.headers() == {"Authorization": "Bearer old"}
    clock.time_s += 0.1
    assert await credentials.headers() == {"Authorization": "Bearer newer"}


async def test_a_token_whose_file_shows_no_change_is_read_again_after_a_minute(
    path, tmp_path, clock
):
    token = tmp_path / "token"
    token.write_text("old\n")
    seen = token.stat()
    write_kubeconfig(path, {"tokenFile": str(token)})
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    token.write_text("new\n")
    os.utime(token, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    clock.time_s += 59
    assert await credentials.headers() == {"Authorization": "Bearer old"}
    clock.time_s += 1
    assert await credentials.headers() == {"Authorization": "Bearer new"}


async def test_a_kubeconfig_that_changed_is_read_again_but_for_its_current_context(path, clock):
    write_kubeconfig(path, {"token": "old"})
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    assert await credentials.headers() == {"Authorization": "Bearer old"}
    config = yaml.safe_load(path.read_text())
    config["users"] = [
        {"name": "u", "user": {"token": "renewed"}},
        {"name": "other", "user": {"token": "for-another-server"}},
    ]
    config["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "other"}})
    config["current-context"] = "other"
    path.write_text(yaml.safe_dump(config))
    clock.time_s += LOOK_INTERVAL_S
    assert await credentials.headers() == {"Authorization": "Bearer renewed"}


async def test_a_kubeconfig_that_names_another_server_does_not_give_it_our_requests(
    path, clock, caplog
):
    write_kubeconfig(path, {"token": "old"})
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    write_kubeconfig(path, {"token": "for-another"}, server="http://127.0.0.2:80")
    for _ in range(5):
        clock.time_s += LOOK_INTERVAL_S
        assert await credentials.headers() == {"Authorization": "Bearer old"}
    [record] = caplog.records  # said once
    assert "http://127.0.0.2:80: not the server that it was" in record.getMessage()


@pytest.mark.parametrize("server", ["", "api.example:6443", "ftp://api.example", "https://h:x"])
async def test_a_server_without_a_usable_url_is_refused(path, clock, server):
    write_kubeconfig(path, {"token": "x"}, server=server)
    with pytest.raises(KubeConfigError, match="cluster 'c': server: not a URL"):
        await credentials_from_kubeconfig(path, clock=clock)
    write_kubeconfig(path, {"token": "x"}, server="https://me:s3cret@api.example")
    with pytest.raises(KubeConfigError, match="holds a name or password") as caught:
        await credentials_from_kubeconfig(path, clock=clock)
    assert "s3cret" not in str(caught.value)


async def test_who_is_nobody_sends_nothing(path, clock):
    write_kubeconfig(path, {})
    assert await (await credentials_from_kubeconfig(path, clock=clock)).headers() == {}


async def test_each_group_is_a_header_of_its_own_in_reads_and_writes(path, clock):
    server = ScriptedServer(*[answer(200, {})] * 2)
    async with serving(server):
        user = {"token": "t", "as": "ada", "as-groups": ["one", "two, three"]}
        write_kubeconfig(path, user, server=server.url)
        async with KubeClient(await credentials_from_kubeconfig(path, clock=clock)) as client:
            await client.get("/api/v1/pods")
            await client.post("/api/v1/pods", {})
    for request in server.requests:
        assert request.headers.getall("Impersonate-Group") == ["one", "two, three"]


async def test_each_copy_renews_itself_in_a_loop_of_its_own(path, tmp_path, clock):
    """The lease has a thread and a loop of its own; what it takes along is not read twice."""
    token = tmp_path / "token"
    token.write_text("one")
    write_kubeconfig(path, {"tokenFile": str(token)})
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    token.write_text("second")
    copied = credentials.copy()

    def in_a_thread():
        return asyncio.run(copied.headers())

    assert await asyncio.to_thread(in_a_thread) == {"Authorization": "Bearer second"}
    assert await credentials.headers() == {"Authorization": "Bearer second"}
    token.write_text("the third")
    clock.time_s += LOOK_INTERVAL_S
    assert await credentials.headers() == {"Authorization": "Bearer the third"}
    assert await asyncio.to_thread(in_a_thread) == {"Authorization": "Bearer the third"}


async def test_no_secret_stays_in_a_file(path, tmp_path, clock, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    certificate, key = Authority(tmp_path, "one").client(1)
    for pair in ((certificate, key), (certificate, b"no key")):
        data = [base64.b64encode(part).decode() for part in pair]
        user = {"client-certificate-data": data[0], "client-key-data": data[1]}
        write_kubeconfig(path, user, server="https://127.0.0.1:6443")
        with contextlib.suppress(KubeConfigError):
            await credentials_from_kubeconfig(path, clock=clock)
        assert list(folder.iterdir()) == []


PLUGIN = """
import json, pathlib, sys
counter = pathlib.Path(sys.argv[1])
n = int(counter.read_text()) + 1
counter.write_text(str(n))
status = {"token": f"t{n}", **json.loads(sys.argv[2])}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": status}))
"""


def exec_user(tmp_path, status):
    counter, script = tmp_path / "counter", tmp_path / "plugin.py"
    counter.write_text("0")
    script.write_text(PLUGIN)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script), str(counter), json.dumps(status)],
            "interactiveMode": "Never",
        }
    }


async def test_the_lease_runs_a_plugin_in_its_own_thread_and_leaves_the_cores_token(
    path, tmp_path, clock
):
    write_kubeconfig(path, exec_user(tmp_path, {}))
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    copied = credentials.copy()
    clock.time_s += 10
    copied.invalidate()

    def in_a_thread():
        return asyncio.run(copied.headers())

    assert await asyncio.to_thread(in_a_thread) == {"Authorization": "Bearer t2"}
    assert await credentials.headers() == {"Authorization": "Bearer t1"}
    credentials.invalidate()
    assert await credentials.headers() == {"Authorization": "Bearer t3"}


async def test_a_plugin_without_expiry_runs_again_only_after_a_refusal(path, tmp_path, clock):
    write_kubeconfig(path, exec_user(tmp_path, {}))
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    clock.time_s += 5000
    assert await credentials.headers() == {"Authorization": "Bearer t1"}
    credentials.invalidate()
    assert await credentials.headers() == {"Authorization": "Bearer t2"}
    for _ in range(3):  # refused again and again: not a plugin run for each
        credentials.invalidate()
        assert await credentials.headers() == {"Authorization": "Bearer t2"}
    clock.time_s += 10
    assert await credentials.headers() == {"Authorization": "Bearer t3"}


async def test_a_plugin_with_expiry_runs_again_when_its_token_runs_out(path, tmp_path, clock):
    status = {"expirationTimestamp": "1970-01-01T00:20:00Z"}  # at 1200 s; it is 1000 s now
    write_kubeconfig(path, exec_user(tmp_path, status))
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    clock.time_s += 180
    assert await credentials.headers() == {"Authorization": "Bearer t1"}
    clock.time_s += 10  # a little before
    assert await credentials.headers() == {"Authorization": "Bearer t2"}
    for _ in range(9):  # the new one has run out too: not a run for each request
        clock.time_s += 1
        assert await credentials.headers() == {"Authorization": "Bearer t2"}
    clock.time_s += 1
    assert await credentials.headers() == {"Authorization": "Bearer t3"}


async def test_a_plugin_that_fails_later_leaves_the_old_token(path, tmp_path, clock):
    write_kubeconfig(path, exec_user(tmp_path, {}))
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    (tmp_path / "plugin.py").write_text("import sys; sys.exit(1)")
    clock.time_s += 100
    credentials.invalidate()
    assert await credentials.headers() == {"Authorization": "Bearer t1"}


async def test_tls_verifies_unless_the_kubeconfig_says_otherwise(path, clock):
    write_kubeconfig(path, {"token": "x"}, server="https://127.0.0.1:6443")
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    assert credentials.tls is not None
    assert credentials.tls.check_hostname
    assert credentials.tls.verify_mode.name == "CERT_REQUIRED"
    options = {"insecure-skip-tls-verify": True, "tls-server-name": "k", "proxy-url": "http://p:1"}
    write_kubeconfig(path, {"token": "x"}, server="https://127.0.0.1:6443", **options)
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    assert credentials.tls is not None
    assert credentials.tls.verify_mode.name == "CERT_NONE"
    assert credentials.tls_server_name == "k"
    assert credentials.proxy_url == "http://p:1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no context is current, and there are none; check that it is the right file"),
        ("just a word", "the file: Expected object, got str; correct that field"),
        ("current-context: main\n", "no context is named 'main', and there are none"),
        ("{", "not valid YAML in line 2; correct it there"),
        ("kind: Pod\napiVersion: v1", "not a kubeconfig"),
        ("users: [{name: u, user: {token: 12}}]", "users[0].user.token: Expected str, got int"),
        ("users: [{name: u}]", "users[0]: Object missing required field user"),
        ("users: [{name: u, user: {}}, {name: u, user: {}}]", "'u' is there twice; rename one"),
        ("clusters: [{name: c, cluster: {certificate-authority-data: '!'}}]", "Invalid base64"),
    ],
)
async def test_a_file_that_is_no_kubeconfig(path, clock, text, says):
    path.write_text(text)
    with pytest.raises(KubeConfigError) as caught:
        await credentials_from_kubeconfig(path, clock=clock)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert says in message
    assert "\n" not in message


async def test_mistakes_name_the_file_and_the_remedy(path, tmp_path, clock):
    with pytest.raises(KubeConfigError, match=r"no such kubeconfig; give its path"):
        await load_credentials(tmp_path / "none", clock=clock)
    write_kubeconfig(path, {"token": "x"})
    with pytest.raises(KubeConfigError, match="other"):
        await credentials_from_kubeconfig(path, context="other", clock=clock)
    rubbish = base64.b64encode(b"no certificate").decode()
    server = "https://127.0.0.1:6443"
    write_kubeconfig(path, {"token": "x"}, server=server, **{"certificate-authority-data": rubbish})
    with pytest.raises(KubeConfigError, match="not a usable CA certificate"):
        await credentials_from_kubeconfig(path, clock=clock)
    user = {"client-certificate-data": rubbish, "client-key-data": rubbish}
    write_kubeconfig(path, user, server=server)
    with pytest.raises(KubeConfigError, match="not a usable client certificate"):
        await credentials_from_kubeconfig(path, clock=clock)
    write_kubeconfig(path, {"exec": {"apiVersion": "v9", "command": "/no/such/plugin"}})
    with pytest.raises(KubeConfigError, match=r"config: user 'u': exec: apiVersion: not"):
        await credentials_from_kubeconfig(path, clock=clock)


async def test_in_cluster(tmp_path, clock):
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeConfigError, match="run in a pod with a service account"):
        await credentials_in_cluster(clock=clock, directory=tmp_path, environ={})
    with pytest.raises(KubeConfigError, match="token's file is not there"):
        await credentials_in_cluster(clock=clock, directory=tmp_path, environ=environ)
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_text("not one")
    with pytest.raises(KubeConfigError, match="not a usable CA certificate"):
        await credentials_in_cluster(clock=clock, directory=tmp_path, environ=environ)
    authority = ssl.create_default_context().get_ca_certs(binary_form=True)[0]
    (tmp_path / "ca.crt").write_text(ssl.DER_cert_to_PEM_cert(authority))
    credentials = await credentials_in_cluster(clock=clock, directory=tmp_path, environ=environ)
    assert credentials.base_url == "https://[fd00::1]:443"
    assert credentials.tls is not None
    (tmp_path / "token").write_text("the second\n")
    clock.time_s += LOOK_INTERVAL_S
    assert await credentials.headers() == {"Authorization": "Bearer the second"}
    (tmp_path / "token").write_text("")  # a moment of the kubelet's rewrite
    clock.time_s += LOOK_INTERVAL_S
    assert await credentials.headers() == {"Authorization": "Bearer the second"}
    (tmp_path / "token").write_text("three")
    clock.time_s += LOOK_INTERVAL_S
    assert await credentials.headers() == {"Authorization": "Bearer three"}
