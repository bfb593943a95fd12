"""Goal: what ``quorate up`` runs and removes is its own, wherever and with whatever it is called.

Method: calls that end before a cluster starts.
"""

import os
import subprocess

from quorate.cli.commands import background
from tools.testing import command_line


def test_a_folder_called_quorate_is_not_what_runs_in_the_background(tmp_path, monkeypatch, capsys):
    """The folder in which it was called came first among those that modules are read from."""
    (tmp_path / "quorate").mkdir()
    (tmp_path / "quorate" / "__init__.py").write_text("raise SystemExit('not quorate')")
    monkeypatch.chdir(tmp_path)
    assert background.up(["up", "--background", "--nodes", "3", "--gpu-nodes", "2"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_a_variable_that_it_inherits_removes_no_file(tmp_path):
    """``QUORATE_UP_LOG=x quorate up`` removed x at its end."""
    mine = tmp_path / "mine"
    mine.touch()
    line = command_line("up", "--config", str(tmp_path / "nothing"))
    environment = {**os.environ, "QUORATE_UP_LOG": str(mine)}
    assert subprocess.run(line, env=environment, capture_output=True, check=False).returncode == 2
    assert mine.exists()
