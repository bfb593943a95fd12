"""``make explore`` keeps what fails, also where the time was over first."""

import os
import shlex
import signal
import subprocess
import sys
import tomllib

import pytest

from tests.paths import ROOT
from tools import explore
from tools.testing import HANGS_S

SAYS = {
    "fails": "print('FAILED a.py::test_b - it broke'); raise SystemExit(1)",
    "passes": "print('all is well')",
    "idles": "import time; time.sleep(600)",
}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Let a run be one of ``SAYS``; return what is in the file of finds."""
    file = tmp_path / "finds.toml"
    file.touch()
    monkeypatch.setattr(explore, "FINDS", file)
    monkeypatch.setattr(explore, "KINDS", {kind: ("-c", says) for kind, says in SAYS.items()})
    return lambda: tomllib.loads(file.read_text()).get("find", [])


def test_what_fails_is_kept_with_the_command_that_plays_it_again(kept):
    assert explore.explore("fails", 7, HANGS_S) == "kept in finds.toml"
    (find,) = kept()
    assert find["kind"] == "fails"
    assert find["seed"] == 7
    assert find["said"] == "FAILED a.py::test_b - it broke\n"
    drawn = "QUORATE_SEED=7 QUORATE_TIMES=1 QUORATE_ORDER=reversed"
    again = f"{drawn} .venv/bin/python {shlex.join(['-c', SAYS['fails']])}"
    assert find["again"] == again


def test_what_finds_nothing_is_not_kept(kept):
    assert explore.explore("passes", 7, HANGS_S) == "nothing found"
    assert kept() == []


@pytest.mark.parametrize(
    "line",
    [
        "FAILED tests/test_a.py::test_b - it broke",
        "ERROR tests/test_a.py",
        "seed 12: violation at 7.000 s: it broke",
        "world 12 (load): it broke",
    ],
)
@pytest.mark.parametrize("code", [1, None])
def test_a_find_counts_also_when_the_run_is_cut_off(line, code):
    assert explore.finds_in(f"1 % done\n{line}\nStopped.\n", code) == [line]


def test_of_a_run_that_breaks_the_end_is_kept():
    assert explore.finds_in("begun\nno module is named x\n", 1) == ["begun", "no module is named x"]
    assert explore.finds_in("", -9) == ["exit code -9, without a word"]
    assert explore.finds_in("begun\n", None) == []
    assert explore.finds_in("begun\n", 0) == []


def test_it_ends_with_the_time(kept, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["explore", "--minutes", "0.05", "--of", "idles"])
    assert explore.main() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 runs, 0 finds"


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "tools.explore", "--of", "simulation"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"simulation, seed ")
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0].decode()
    assert process.returncode == 130
    assert said.endswith("Stopped; nothing is left behind.\n")
    assert list(tmp_path.iterdir()) == []
