"""Goal: ``make test`` fails when a stage does, shows why, and leaves no process behind.

Method: small programs as stages, run as ``make test`` runs its own.
"""

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.stages.plan import Stage, stages
from tools.stages.process import Running, stop
from tools.stages.run import Run
from tools.stages.screen import Screen

PASSES = "print('12 passed, 1 skipped in 0.5s')"
FAILS = "print('E  assert 1 == 2'); print('1 failed, 3 passed in 0.5s'); raise SystemExit(1)"


def stage(name, program, **more):
    return Stage(name, (sys.executable, "-c", program), **more)


def played(tmp_path, *stages, cores=2.0, keep_going=False):
    out = io.StringIO()
    run = Run(stages, tmp_path, Screen(out), cores=cores, keep_going=keep_going)
    return run.play(), out.getvalue()


def rows(said):
    """Return the table's rows: name, tests, and what is said of them."""
    table = said[said.rindex("stage ") :].splitlines()[1:]
    found = [re.match(r"(.+?)  +(\d+|-) +(?:\d+|-) +(?:\d+|-) *(.*)", line) for line in table]
    return [row.groups() for row in found if row]


def test_all_pass_and_each_one_s_output_is_whole_and_in_the_table(tmp_path):
    code, said = played(tmp_path, stage("a", PASSES), stage("b", "print('built')"))
    assert code == 0
    for name, output in (("a", "12 passed, 1 skipped in 0.5s"), ("b", "built")):
        assert re.search(rf"──── {name} ────\n{output}\n──── {name}: passed in \d:\d\d ────", said)
    assert sorted(rows(said)) == [("a", "12", "1 skipped"), ("b", "-", "")]


def test_children_that_were_there_before_are_left_alone(tmp_path):
    ours = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        code, _ = played(tmp_path, stage("a", PASSES))
        assert (code, ours.poll()) == (0, None)
    finally:
        ours.kill()
        ours.wait()


def test_a_failure_fails_the_run_and_its_output_comes_last(tmp_path):
    code, said = played(tmp_path, stage("bad", FAILS), stage("good", PASSES), cores=1)
    assert code == 1
    assert said.endswith(
        "The first that failed was bad. It printed:\n\n"
        "E  assert 1 == 2\n1 failed, 3 passed in 0.5s\n"
    )
    assert said.count("E  assert 1 == 2") == 2
    assert rows(said) == [("bad", "3", "FAILED (1), 1 failed"), ("good", "-", "not run")]


def test_after_a_failure_what_runs_goes_on_to_its_end(tmp_path):
    slow = f"import time; time.sleep(1); {PASSES}"
    code, said = played(tmp_path, stage("slow", slow), stage("bad", FAILS), stage("late", PASSES))
    assert code == 1
    told = {name: (tests, how) for name, tests, how in rows(said)}
    assert told["slow"] == ("12", "1 skipped")


def test_in_ci_all_others_run_but_those_that_need_what_failed(tmp_path):
    needs = stage("needs", PASSES, after=("bad",))
    code, said = played(
        tmp_path, stage("bad", FAILS), needs, stage("other", PASSES), cores=1, keep_going=True
    )
    assert code == 1
    assert [row[0] for row in rows(said)] == ["bad", "other", "needs"]
    assert rows(said)[-1] == ("needs", "-", "not run")


def test_a_stage_waits_for_those_that_it_needs_and_for_room(tmp_path):
    program = "import pathlib, time; p = pathlib.Path({!r}); {}"
    mark = str(tmp_path / "mark")
    first = program.format(mark, "time.sleep(0.5); p.touch()")
    second = program.format(mark, "assert p.exists()")
    code, _ = played(tmp_path, stage("second", second, after=("first",)), stage("first", first))
    assert code == 0
    (tmp_path / "mark").unlink()
    code, _ = played(tmp_path, stage("first", first), stage("second", second), cores=1.5)
    assert code == 0


def test_a_process_that_a_stage_leaves_behind_is_killed_and_fails_the_run(tmp_path):
    sleeps = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    daemon = f"import subprocess, sys; print(subprocess.Popen({sleeps}, process_group=0).pid)"
    (tmp_path / "logs").mkdir()
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from tools.stages.plan import Stage\nfrom tools.stages.process import adopt_orphans\n"
        "from tools.stages.run import Run\nfrom tools.stages.screen import Screen\n"
        "adopt_orphans()\n"
        f"one = Stage('leaves', (sys.executable, '-c', {daemon!r}))\n"
        f"run = Run([one], Path({str(tmp_path / 'logs')!r}), Screen(), cores=1, keep_going=False)\n"
        "sys.exit(run.play())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "1 processes of these stages still ran, and were killed." in done.stdout
    (pid,) = re.findall(r"^\d+$", done.stdout, re.MULTILINE)
    assert not is_alive(int(pid))


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("hears", [True, False], ids=["ends at Ctrl-C", "does not hear Ctrl-C"])
def test_what_is_stopped_is_gone(tmp_path, hears):
    deaf = "" if hears else "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    one = Running(
        stage("waits", f"{deaf}import time; print('begun', flush=True); time.sleep(60)"), tmp_path
    )
    while "begun" not in one.output():
        time.sleep(0.01)
    stop([one], grace_s=30 if hears else 0.2)
    assert one.ended()
    assert one.code == (-signal.SIGINT if hears else -signal.SIGKILL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_ends_all_and_leaves_nothing(tmp_path, number, code):
    """``check`` runs long enough to be interrupted, and has many processes."""
    command = [sys.executable, "-m", "tools.stages", "check"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as process:
        while not children(process.pid):
            time.sleep(0.01)
        begun = children(process.pid)
        process.send_signal(number)
        said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == code
    assert said.endswith("Stopped; nothing is left behind.\n")
    assert not [pid for pid in begun if is_alive(pid)]
    assert list(tmp_path.iterdir()) == []


def children(pid):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(one) for one in listed.stdout.split() if is_alive(int(one))]


def test_each_stage_needs_stages_that_there_are():
    names = [one.name for one in stages()]
    assert len(set(names)) == len(names)
    assert all(set(one.after) <= set(names) for one in stages())


def test_every_test_is_in_a_stage():
    """pytest would not tell that a folder is never run."""
    run = {Path(arg) for one in stages() for arg in one.command if "tests/" in arg}
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
