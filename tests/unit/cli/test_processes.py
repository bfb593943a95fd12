"""Goal: commands find quorate's own processes, and say which is which when there are several.

Method: real processes whose words look like those of ``quorate up`` and ``run``.
"""

import signal
import subprocess
import sys

import pytest

from quorate.cli import processes
from tools.testing import call

WAITS = """
import signal, time
for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, lambda *_: None)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def start(tmp_path):
    running = []

    def run(*words):
        line = [sys.executable, "-c", WAITS, *words]
        made = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        running.append(made)
        assert made.stdout.readline() == "ready\n"
        return made.pid

    yield run
    for one in running:
        one.kill()
        one.communicate()


def test_only_those_that_wait_for_the_signal_are_found(start):
    up, run, other = start("quorate", "up"), start("quorate", "run"), start("quorate", "gangs")
    found = processes.of_quorate(("up", "run"), catching=signal.SIGUSR1)
    assert {up, run} <= set(found)
    assert other not in found
    assert up not in processes.of_quorate(("up", "run"), catching=signal.SIGUSR2)


def test_a_recording_of_one_among_several_names_them_and_leaves_no_file(
    start, tmp_path, capsys, monkeypatch
):
    """It said "2 run: 28995, 30379; name one", not which is which, and a file stayed."""
    up, run = start("quorate", "up"), start("quorate", "run")
    monkeypatch.chdir(tmp_path)
    for args in ((), ("--output", "q.recording")):
        assert call("record", *args) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"{up} (up in {tmp_path})" in err
        assert f"{run} (run in {tmp_path})" in err
        assert err.endswith("; name one\n")
    assert list(tmp_path.iterdir()) == []


def test_down_lists_the_clusters_that_run_and_stops_none(start, tmp_path, capsys):
    """Who wanted to know which there are had to risk that the only one was stopped."""
    up, run = start("quorate", "up"), start("quorate", "run")
    assert call("down", "--list") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"{up}  up in {tmp_path}\n" in out
    assert str(run) not in out
    assert processes.command_line(up)


def test_its_own_age_begins_with_the_process():
    code = (
        "import time; time.sleep(0.3); from quorate.cli.processes import own_age_s as a; print(a())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.3 < float(done.stdout) < 60
