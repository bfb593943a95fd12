"""Tokens: read anew while they rotate, and never in a log, in an error, or on the screen."""

import json
import logging
import subprocess
import sys

import pytest
import yaml
from aiohttp import web

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.identity.credentials import (
    KubeConfigError,
    credentials_from_kubeconfig,
    credentials_in_cluster,
)
from tests.unit.shell.scripted_server import ManualClock, ScriptedServer, answer, refusal, serving

SECRET = "eyJhbGciOiJSUzI1NiJ9.very-secret.signature"


def kubeconfig(**parts):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": SECRET}}],
    }
    return {**config, **parts}


def user(**fields):
    return kubeconfig(users=[{"name": "u", "user": fields}])


MISTAKES = {
    "token beside the user": kubeconfig(users=[{"name": "u", "token": SECRET}]),
    "user is the token": kubeconfig(users=[{"name": "u", "user": SECRET}]),
    "user without a name": kubeconfig(users=[{"user": {"token": SECRET}}]),
    "users is a map": kubeconfig(users={"name": "u", "user": {"token": SECRET}}),
    "no server": kubeconfig(clusters=[{"name": "c", "server": f"http://u:{SECRET}@h"}]),
    "no such context": kubeconfig(contexts=[{"name": "other", "context": {"user": SECRET}}]),
    "plugin without command": user(exec={"args": [SECRET], "env": [{"value": SECRET}]}),
    "plugin that is not there": user(
        exec={
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin",
            "args": [SECRET],
        }
    ),
    "plugin that prints rubbish": user(
        exec={
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", f"print('{SECRET}')"],
            "interactiveMode": "Never",
        }
    ),
    "provider": user(**{"auth-provider": {"name": "oidc", "config": {"id-token": SECRET}}}),
    "key": user(**{"client-key-data": SECRET, "client-certificate-data": SECRET}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_in_a_kubeconfig_is_told_without_what_is_secret_in_it(
    tmp_path, mistake, caplog
):
    config = MISTAKES[mistake]
    if mistake == "key":
        config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    with caplog.at_level(logging.DEBUG), pytest.raises(KubeConfigError) as caught:
        await credentials_from_kubeconfig(path, clock=ManualClock())
    assert str(caught.value).startswith(str(path)) or mistake == "key"
    assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("text", ["users: [{token: %s: x}]", "a: 'b\n  token: %s", "\t%s", "{%s"])
async def test_a_file_that_is_no_yaml_is_told_without_its_lines(tmp_path, text):
    path = tmp_path / "config"
    path.write_text(text % SECRET)
    with pytest.raises(KubeConfigError) as caught:
        await credentials_from_kubeconfig(path, clock=ManualClock())
    assert SECRET not in str(caught.value)


async def in_cluster(tmp_path, server, clock):
    """Credentials of a pod whose API server is the scripted one."""
    (tmp_path / "token").write_text(SECRET)
    path = tmp_path / "config"
    config = user(tokenFile=str(tmp_path / "token"))
    config["clusters"][0]["cluster"]["server"] = server.url
    path.write_text(yaml.safe_dump(config))
    return await credentials_from_kubeconfig(path, clock=clock)


def echo(status):
    """Answer as some proxies do: with the request's own headers in the page of the error."""

    async def step(request):
        said = f"{status}: {dict(request.headers)}"
        body = {"kind": "Status", "code": status, "reason": "Odd", "message": said}
        text = json.dumps(body) if "watch" in request.query else said
        return web.Response(status=status, text=text)

    return step


async def test_a_server_that_repeats_our_headers_does_not_make_us_repeat_them(tmp_path, caplog):
    server = ScriptedServer(*[echo(status) for status in (400, 500, 502, 403)])
    async with serving(server):
        credentials = await in_cluster(tmp_path, server, ManualClock())
        async with KubeClient(credentials) as client:
            with caplog.at_level(logging.DEBUG):
                for ask in (
                    client.get("/api/v1/pods"),
                    client.post("/api/v1/pods", {}),
                    client.patch("/api/v1/pods", {}, "merge"),
                    client.get("/api/v1/pods", {"watch": "true"}),
                ):
                    with pytest.raises(ApiError) as caught:
                        await ask
                    assert "Bearer (redacted)" in caught.value.message
                    assert SECRET not in f"{caught.value} {caught.value!r}"
    assert SECRET not in caplog.text
    assert all(r.headers["Authorization"] == f"Bearer {SECRET}" for r in server.requests)


async def test_every_way_out_uses_the_new_token_after_a_rotation(tmp_path):
    clock = ManualClock()
    listed = answer(200, {"metadata": {}, "items": []})
    server = ScriptedServer(*[listed] * 6)
    async with serving(server):
        credentials = await in_cluster(tmp_path, server, clock)
        async with KubeClient(credentials) as client:
            for token in (SECRET, "rotated-once"):
                (tmp_path / "token").write_text(token)
                clock.time_s += 60
                await client.get("/api/v1/pods")
                await client.post("/api/v1/pods", {})
                async with client.stream("/api/v1/pods", None, silence_s_max=5) as stream:
                    await stream.read()
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == [f"Bearer {SECRET}"] * 3 + ["Bearer rotated-once"] * 3


async def test_a_refused_token_is_read_again_before_its_minute_is_over(tmp_path):
    clock = ManualClock()
    server = ScriptedServer(refusal(401, "Unauthorized"), answer(200, {}))
    async with serving(server):
        credentials = await in_cluster(tmp_path, server, clock)
        async with KubeClient(credentials) as client:
            clock.time_s += 11
            with pytest.raises(ApiError):
                await client.post("/api/v1/pods", {})
            (tmp_path / "token").write_text("rotated-once")
            await client.post("/api/v1/pods", {})
    assert server.requests[1].headers["Authorization"] == "Bearer rotated-once"


async def test_a_pod_without_a_token_says_so_and_shows_nothing_of_its_files(tmp_path):
    (tmp_path / "ca.crt").write_text(SECRET)
    (tmp_path / "token").write_text(SECRET)
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeConfigError) as caught:
        await credentials_in_cluster(clock=ManualClock(), directory=tmp_path, environ=environ)
    assert SECRET not in str(caught.value)


FAILS = f"""
import sys
import structlog
from quorate.shell.process.logs import set_up

set_up("debug", sys.argv[1])
headers = {{"Authorization": "Bearer " + "{SECRET}"[::-1][::-1]}}
token = headers["Authorization"]
try:
    raise RuntimeError("a defect")
except RuntimeError:
    structlog.get_logger().exception("it failed")
"""


@pytest.mark.parametrize("style", ["json", "text"])
def test_the_log_of_a_defect_shows_no_values_of_variables(style, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS.replace(f'"{SECRET}"', "sys.argv[2]"))
    done = subprocess.run(
        [sys.executable, str(script), style, SECRET], capture_output=True, text=True, check=True
    )
    assert "RuntimeError: a defect" in done.stderr
    assert SECRET not in done.stderr
