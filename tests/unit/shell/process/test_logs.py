"""One line for each event, also of libraries, threads and defects, whoever wrote what is in it."""

import json
import subprocess
import sys

import pytest

EVIL = 'a\x1b[2Jb\n{"event":"forged"}\r\u202ec\x9b\x7f'

SAYS = """
import asyncio, logging, sys, threading, warnings
import structlog
from quorate.shell.process import logs

EVIL = sys.argv[2]
logs.set_up("debug", sys.argv[1])
structlog.get_logger().info(EVIL, gang=EVIL, listed=[EVIL], number=1)
structlog.get_logger().info("large", text="x" * 1_000_000)
logging.getLogger("credentials").warning("told by %s", EVIL)
warnings.warn(EVIL)

def fails():
    raise ValueError(EVIL)

thread = threading.Thread(target=fails, name="lease")
thread.start()
thread.join()

async def lost():
    async def fails():
        raise ValueError(EVIL)
    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    del task

asyncio.run(lost())
try:
    fails()
except ValueError as error:
    logs.uncaught(error)
"""


def lines(style):
    done = subprocess.run(
        [sys.executable, "-c", SAYS, style, EVIL], capture_output=True, check=True
    )
    assert done.stdout == b""
    return done.stderr.decode().removesuffix("\n").split("\n")


def test_in_json_each_is_one_object_on_one_line_and_loses_nothing():
    found = [json.loads(line) for line in lines("json")]
    assert all(line.isascii() and line.isprintable() for line in lines("json"))
    by_event = {one["event"]: one for one in found}
    assert by_event[EVIL]["gang"] == EVIL
    assert len(by_event["large"]["text"]) < 5000
    assert by_event[f"told by {EVIL}"]["logger"] == "credentials"
    assert by_event["a thread ended with an error"]["thread"] == "lease"
    assert "ValueError" in by_event["a thread ended with an error"]["exception"]
    (of_asyncio,) = [one for one in found if one.get("logger") == "asyncio"]
    assert of_asyncio["event"].startswith("Task exception was never retrieved")
    assert "ValueError" in of_asyncio["exception"]
    last = by_event["an error that nobody expected ends this process"]
    assert (last["level"], last["error"]) == ("critical", EVIL)
    assert "Traceback" in last["exception"]
    assert {one["level"] for one in found} == {"info", "warning", "error", "critical"}
    assert all("timestamp" in one for one in found)


def test_for_a_person_nothing_moves_the_cursor_or_makes_a_line_of_its_own():
    found = lines("text")
    assert all(line.isprintable() for line in found)
    assert not any(line.startswith("{") for line in found)
    assert any("\\x1b[2Jb\\n" in line and "told by" in line for line in found)


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_scheduler_that_cannot_start_leaves_one_line(style, tmp_path):
    """Its address is in use: no session is left open, and no traceback printed."""
    (tmp_path / "kubeconfig").write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
                "current-context": "c",
            }
        )
    )
    program = f"""
import asyncio, socket, sys, warnings
from pathlib import Path
from quorate.shell import app
from quorate.shell.process import logs
from quorate.shell.serve.bounded_http import ServeError
from quorate.shell.process.clock import SystemClock
from quorate.shell.configuration.config import Config
from quorate.shell.kube.identity.credentials import load_credentials

logs.set_up("info", {style!r})
taken = socket.create_server(("127.0.0.1", 0))

async def main():
    credentials = await load_credentials(Path(sys.argv[1]), clock=SystemClock())
    config = Config(health_host="127.0.0.1", health_port=taken.getsockname()[1])
    await app.run(config, credentials, asyncio.Event())

try:
    asyncio.run(main())
except ServeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program, str(tmp_path / "kubeconfig")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the port is in use" in done.stdout
    assert "Unclosed" not in done.stderr
    assert "Traceback" not in done.stderr
