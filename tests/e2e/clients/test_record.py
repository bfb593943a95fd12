"""Goal: the recording of a running scheduler can be had, replays to the same plans, and is private.

Method: real processes: ``quorate record`` asks ``quorate run``; gangs start, wait and are deleted.
"""

import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tools.testing import command_line, wait_for

SECRET = "hunter2-secret"
SUMMARY = r"replayed [\d,]+ changes and ([\d,]+) decisions: ([\d,]+) plans equal, 0 different, "


def quorate(*args, **more) -> subprocess.CompletedProcess:
    line = command_line(*map(str, args))
    return subprocess.run(line, capture_output=True, timeout=60, check=False, **more)


def replayed_to_the_same_plans(file: Path, *args: str) -> str:
    done = quorate("replay", file, *args)
    out = done.stdout.decode()
    assert done.returncode == 0, out + done.stderr.decode()
    decisions, equal = re.match(SUMMARY, out.splitlines()[-1]).groups()
    assert decisions == equal != "0"
    return out


def make_history(world) -> None:
    """One gang starts, one waits, one comes and goes; pods carry what must not be recorded."""
    world.nodes(2, allocatable={"cpu": "4"})
    container = {"env": [{"name": "PASSWORD", "value": SECRET}]}
    secret = {"container": container, "annotations": {"vault.example/token": SECRET}}
    world.create_pods(world.gang("starts", 4, **secret), world.gang("waits", 30, **secret))
    world.wait_bound(4, "gang=starts")
    world.wait_condition("30 members must start together and 4 fit", "gang=waits")
    world.create_pods(world.gang("goes", 2))
    world.wait_bound(2, "gang=goes")
    for name in ("goes-0", "goes-1"):
        world.delete_pod(name)


@pytest.mark.core
def test_a_recording_of_a_running_scheduler_replays_to_the_same_plans(apart, beside, tmp_path):
    path = tmp_path / "own.recording"
    scheduler = beside({"recorder": {"path": str(path)}})
    make_history(apart)
    target = tmp_path / "some.recording"
    config = ("--config", scheduler.config_file)
    done = quorate("record", scheduler.process.pid, *config, "--output", target)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rb"[\d,]+ bytes written to .*\n", done.stderr)
    assert not path.exists(), "it was moved"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    out = replayed_to_the_same_plans(target, "--why", f"{apart.namespace}/waits")
    assert "30 members must start together" in out
    data = target.read_bytes()
    assert SECRET.encode() not in data
    assert b"waits-29" in data

    done = quorate("record", scheduler.process.pid, *config, "--output", "-")
    copy = tmp_path / "copy.recording"
    copy.write_bytes(done.stdout)
    replayed_to_the_same_plans(copy)
    assert scheduler.log().count('"recording written"') == 2
    assert "an invariant does not hold" not in scheduler.log()
    wait_for(lambda: scheduler.metric("quorate_invariant_checks_total") > 0, "it checks itself")
    assert scheduler.metric("quorate_recorder_bytes") > 1000


def test_a_folder_that_is_not_there_is_logged_and_nothing_ends(apart, beside, tmp_path):
    scheduler = beside({"recorder": {"path": str(tmp_path / "no" / "own.recording")}})
    scheduler.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: "the recording was not written" in scheduler.log(), "it is logged")
    assert scheduler.page("/healthz") == "ok"


def test_processes_that_the_signal_would_end_are_left_alone(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as other:
        done = quorate("record", other.pid, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"is no quorate run (or up) of yours that is ready" in done.stderr
        assert other.poll() is None
        other.kill()
    assert quorate("record", 2**22 + 1, cwd=tmp_path).returncode == 2
