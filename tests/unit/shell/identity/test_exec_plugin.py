"""Plugins that get credentials: what they are told, what they may do, and how they are ended."""

import asyncio
import json
import logging
import os
import sys

import pytest

from quorate.shell.kube.identity import exec_plugin
from quorate.shell.kube.identity.access import KubeConfigError
from quorate.shell.kube.identity.kubeconfig import Chosen, Cluster, EnvVar, Plugin, User
from tools.testing import HANGS_S

V1 = "client.authentication.k8s.io/v1"
GOOD = {"kind": "ExecCredential", "apiVersion": V1, "status": {"token": "t0ken"}}


def said(value=GOOD):
    return f"print({json.dumps(value)!r})"


async def run(code, timeout_s=HANGS_S, by=sys.executable, **fields):
    options = {"api_version": V1, "interactive_mode": "Never", **fields}
    plugin = Plugin(command=by, args=("-c", code), **options)
    chosen = Chosen("x", "default", Cluster(), User(plugin=plugin), "f: cluster 'c'", "f: user 'u'")
    return await exec_plugin.run(plugin, chosen, timeout_s)


async def test_it_gives_a_token():
    assert (await run(said())).token == "t0ken"
    nulls = {"token": "t", "clientKeyData": None, "expirationTimestamp": None}
    assert (await run(said({**GOOD, "status": nulls, "spec": {}}))).token == "t"


async def test_it_is_not_asked_to_talk_to_a_person_who_is_not_there():
    code = "import sys; assert not sys.stdin.read(); " + said()
    assert (await run(code, interactive_mode="IfAvailable")).token == "t0ken"
    with pytest.raises(KubeConfigError, match="interactiveMode is Always"):
        await run(said(), interactive_mode="Always")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('s3cret')", "printed no valid ExecCredential"),
        ("import sys; sys.stdout.buffer.write(b'{\\xff s3cret')", "no valid ExecCredential"),
        (said({**GOOD, "status": {"token": ["s3cret"]}}), r"at \$.status.token"),
        (said({**GOOD, "status": {}}), "neither a token nor a certificate"),
        (said({**GOOD, "status": {"clientKeyData": "s3cret"}}), "neither a token nor a cert"),
        (said({**GOOD, "apiVersion": V1 + "beta1"}), "another version than .*/v1; correct"),
        ("print('s3cret'); raise SystemExit(3)", "ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "ended with exit code -9"),
        ("print('s3cret' * 1_000_000)", "no valid ExecCredential"),
    ],
)
async def test_what_is_wrong_is_told_without_what_it_printed(code, says):
    with pytest.raises(KubeConfigError, match=says) as caught:
        await run(code)
    assert str(caught.value).startswith("f: user 'u': exec: ")
    assert "s3cret" not in str(caught.value)


async def test_a_plugin_that_is_not_there_is_told_with_its_hint():
    plugin = Plugin(V1, "no-such-plugin", install_hint="run\x1b[2J brew", interactive_mode="Never")
    chosen = Chosen("x", "default", Cluster(), User(plugin=plugin), "f: cluster 'c'", "f: user 'u'")
    with pytest.raises(KubeConfigError, match=r"no-such-plugin: .*\(run\\x1b\[2J brew\)"):
        await exec_plugin.run(plugin, chosen)


async def test_what_it_says_to_people_is_logged_escaped_and_bounded(caplog):
    code = (
        "import sys\n"
        "sys.stderr.write('open \\x1b[31m https://login.example\\n')\n"
        "for i in range(10_000): sys.stderr.write('more' * 100 + '\\n')\n" + said()
    )
    with caplog.at_level(logging.WARNING):
        await run(code)
    first, *others = [record.getMessage() for record in caplog.records]
    assert first.endswith(": open \\x1b[31m https://login.example")
    assert len(others) == 99


async def test_a_prompt_without_an_end_of_line_is_shown_while_the_plugin_waits(caplog, tmp_path):
    """It stayed hidden until the plugin ended: nobody could know that it asked for a PIN."""
    answer = tmp_path / "answer"
    code = (
        "import os, sys, time\n"
        "sys.stderr.write('touch\\nPIN \\x1b[8m: ')\n"
        "sys.stderr.flush()\n"
        f"while not os.path.exists({str(answer)!r}): time.sleep(0.01)\n"
        "sys.stderr.write('thanks')\n" + said()
    )
    with caplog.at_level(logging.WARNING):
        asked = asyncio.create_task(run(code))
        while not asked.done() and "PIN" not in caplog.text:
            await asyncio.sleep(0.01)
        answer.touch()
        assert (await asked).token == "t0ken"
    told = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert told == ["touch", r"PIN \x1b[8m:", "thanks"]


async def test_one_that_gives_no_answer_is_ended_with_all_that_it_started(tmp_path):
    pids = tmp_path / "pids"
    code = f"sleep 600 & echo $$ $! > '{pids}'; wait"
    with pytest.raises(KubeConfigError, match="gave no answer within 2 s"):
        await run(code, timeout_s=2.0, by="/bin/sh")
    plugin, child = map(int, pids.read_text().split())
    assert not os.path.exists(f"/proc/{plugin}")  # ended and buried, no zombie is left
    while is_alive(child):
        await asyncio.sleep(0.01)


def is_alive(pid):
    """Tell whether it runs; who was killed and not yet buried does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_it_gets_its_variables_and_ours(monkeypatch):
    monkeypatch.setenv("OURS", "a")
    code = "import os; assert os.environ['OURS'] + os.environ['ITS'] == 'ab'; " + said()
    assert (await run(code, env=(EnvVar("ITS", "b"),))).token == "t0ken"
    assert "ITS" not in os.environ
