"""Credentials: every kind of user in a kubeconfig, and one clear line for each mistake."""

import base64
import json
import os
import ssl
import sys

import pytest
import yaml

from quorate.shell.kube.credentials import (
    LOOK_INTERVAL_S,
    KubeConfigError,
    credentials_from_kubeconfig,
    credentials_in_cluster,
    load_credentials,
)
from tests.unit.shell.scripted_server import ManualClock


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
    status = {"expirationTimestamp": "2999-01-01T00:00:00Z"}
    write_kubeconfig(path, exec_user(tmp_path, status))
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    clock.time_s += 60
    assert await credentials.headers() == {"Authorization": "Bearer t1"}
    status = {"expirationTimestamp": "2001-01-01T00:00:00Z"}
    write_kubeconfig(path, exec_user(tmp_path, status))
    credentials = await credentials_from_kubeconfig(path, clock=clock)
    clock.time_s += 60
    assert await credentials.headers() == {"Authorization": "Bearer t2"}


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
        ("", "check it with"),
        ("just a word", "check it with"),
        ("current-context: main\n", "list; check it with"),
        ("{", "check it with"),
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
        await credentials_from_kubeconfig(path, "other", clock=clock)
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
    with pytest.raises(KubeConfigError, match=r"config: .*; check it with"):
        await credentials_from_kubeconfig(path, clock=clock)


async def test_in_cluster(tmp_path, clock):
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeConfigError, match="run in a pod with a service account"):
        await credentials_in_cluster(clock=clock, directory=tmp_path, environ={})
    with pytest.raises(KubeConfigError, match="token file does not exist"):
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
