"""Goal: what ``quorate up`` runs and removes is its own, wherever and with whatever it is called.

Method: calls that end before a cluster starts.
"""

import os
import re
import signal
import subprocess
import sys

import pytest

from quorate.cli import processes
from quorate.cli.commands import background
from tools.testing import HANGS_S, command_line, wait_for


def test_a_folder_called_quorate_is_not_what_runs_in_the_background(tmp_path, monkeypatch, capsys):
    """The folder in which it was called came first among those that modules are read from."""
    (tmp_path / "quorate").mkdir()
    (tmp_path / "quorate" / "__init__.py").write_text("raise SystemExit('not quorate')")
    monkeypatch.chdir(tmp_path)
    code = background.up(["up", "--background", "--nodes", "2", "--gpu-nodes", "3"])
    said = capsys.readouterr()
    for pid in re.findall(r"quorate down ([0-9]+)", said.out):
        background.down(int(pid))
    assert code == 2
    assert "--nodes counts all nodes" in said.err


STARTS = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # nohup's children ignore SIGHUP
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
from quorate.cli.commands import background
background.ENDED_BY = "said by nobody"
background.up(["up", "--background", "--nodes", "1", "--write-kubeconfig", sys.argv[1]])
"""


@pytest.mark.parametrize("early", [True, False], ids=["at once", "as its cluster is ready"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_waits_leaves_neither_process_nor_file(tmp_path, number, early):
    """Ctrl-C ended the command line, and the cluster that it waited for ran on."""
    kubeconfig, temporary = tmp_path / "kubeconfig", tmp_path / "tmp"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, str(kubeconfig)],
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        (child,) = wait_for(lambda: children(process.pid), "it has started its cluster")
        wait_for(lambda: early or kubeconfig.exists(), "the cluster is ready")
        process.send_signal(number)
        assert process.wait(HANGS_S) in (-number, 128 + number)
    assert not (processes.PROC / str(child)).exists()
    assert [*temporary.iterdir(), *tmp_path.glob("kubeconfig*")] == []


def children(pid):
    """Return the ids of the processes that this one has started."""
    listed = (processes.PROC / str(pid) / "task" / str(pid) / "children").read_text()
    return [int(one) for one in listed.split()]


def test_a_variable_that_it_inherits_removes_no_file(tmp_path):
    """``QUORATE_UP_LOG=x quorate up`` removed x at its end."""
    mine = tmp_path / "mine"
    mine.touch()
    line = command_line("up", "--config", str(tmp_path / "nothing"))
    environment = {**os.environ, "QUORATE_UP_LOG": str(mine)}
    assert subprocess.run(line, env=environment, capture_output=True, check=False).returncode == 2
    assert mine.exists()
