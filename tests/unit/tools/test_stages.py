"""Goal: a run of stages fails when a stage does, shows why, and leaves no process behind.

Method: small programs as stages, run as ``make test`` runs its own.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.stages import TIERS, Stage, run

PASSES = "print('12 passed, 1 skipped in 0.5s')"
FAILS = "print('E  assert 1 == 2'); print('1 failed, 3 passed in 0.5s'); raise SystemExit(1)"


def stage(name, program, needs=()):
    return Stage(name, (sys.executable, "-c", program), tuple(needs))


def test_a_stage_that_passes_is_one_line(tmp_path, capsys):
    assert run([stage("a", PASSES)], tmp_path, keep_going=False) == 0
    said = capsys.readouterr().out
    assert re.fullmatch(r"passed: a \d+ s 12 passed, 1 skipped\n", said)


def test_what_a_stage_that_fails_has_printed_is_shown_whole_and_nothing_more_begins(
    tmp_path, capsys
):
    stages = [stage("bad", FAILS), stage("late", PASSES, ["bad"])]
    assert run(stages, tmp_path, keep_going=False) == 1
    assert re.fullmatch(
        "E  assert 1 == 2\n1 failed, 3 passed in 0.5s\n"
        r"FAILED with exit code 1: bad \d+ s 1 failed, 3 passed\n"
        "failed: bad; not run: late\n",
        capsys.readouterr().out,
    )


def test_in_ci_all_run_and_each_that_failed_is_named(tmp_path, capsys):
    stages = [stage("a", FAILS), stage("b", FAILS, "a"), stage("good", PASSES, "ab")]
    assert run(stages, tmp_path, keep_going=True) == 1
    said = capsys.readouterr().out
    assert "passed: good" in said
    assert said.endswith("failed: a, b\n")


def test_a_stage_begins_when_those_that_it_needs_are_over(tmp_path):
    mark = tmp_path / "mark"
    folder = tmp_path / "logs"
    folder.mkdir()
    stages = [
        stage("late", f"import os; os.rmdir({str(mark)!r})", ["early", "not picked"]),
        stage("early", f"import os, time; time.sleep(0.3); os.mkdir({str(mark)!r})"),
    ]
    assert run(stages, folder, keep_going=False) == 0


def test_what_a_stage_needs_stands_before_it():
    for stages in TIERS.values():
        names = [one.name for one in stages]
        for place, one in enumerate(stages):
            assert {*one.needs} <= {*names[:place]}, one.name


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_ends_all_and_leaves_nothing(tmp_path, number, code):
    """``check`` runs long enough to be interrupted, and has many processes."""
    command = [sys.executable, "-m", "tools.stages", "test", "check"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as process:
        while not (begun := children(process.pid)):
            pass
        process.send_signal(number)
        said = process.communicate()[0].decode()
    assert process.returncode == code
    assert said.endswith("Stopped; nothing is left behind.\n")
    assert not [pid for pid in begun if is_alive(pid)]
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import os, subprocess, sys
from tools import signals, stages

class Popen(subprocess.Popen):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        print(self.pid, flush=True)
        os.kill(os.getpid(), number)

number = int(sys.argv.pop())
subprocess.Popen = Popen
sys.exit(signals.heeding_signals(stages.main))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_ends_what_is_just_being_started(tmp_path, number, code):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "test", "check", str(int(number))],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    pid, *said = done.stdout.splitlines()
    assert (done.returncode, said[-1]) == (code, "Stopped; nothing is left behind.")
    assert not is_alive(int(pid))
    assert list(tmp_path.iterdir()) == []


def children(pid):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(one) for one in listed.stdout.split() if is_alive(int(one))]


def test_every_test_is_in_a_stage():
    """pytest would not tell that a folder is never run."""
    stages = [one for tier in TIERS.values() for one in tier]
    run = {Path(arg) for one in stages for arg in one.command if "tests/" in arg}
    tops = (ROOT / "tests", ROOT / "embedded" / "tests")
    files = [file.relative_to(ROOT) for top in tops for file in top.rglob("test_*.py")]
    left_out = [file for file in files if not run & {file, *file.parents}]
    assert sorted(file.name for file in left_out if file.parent != Path("tests")) == []


def test_the_tests_of_the_house_are_in_the_stage_that_checks():
    said = subprocess.run(
        ["make", "--dry-run", "check"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for file in (ROOT / "tests").glob("test_*.py"):
        assert f"tests/{file.name}" in said
