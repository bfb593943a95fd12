"""Pocketkube is a distribution of its own: it imports no quorate, and runs where there is none."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.testing import HANGS_S

HOME = Path(__file__).resolve().parents[1]


def test_nothing_in_it_imports_quorate_or_what_it_does_not_ask_for():
    asked = (HOME / "pyproject.toml").read_text()
    for path in (HOME / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for top in {name.partition(".")[0] for name in names} - {"", "pocketkube"}:
                package = {"yaml": "PyYAML", "cel": "common-expression-language"}.get(top, top)
                package = {"multidict": "aiohttp", "jsonpointer": "jsonpatch"}.get(top, package)
                known = top in sys.stdlib_module_names or f'"{package}>=' in asked
                assert known, f"{path.relative_to(HOME)} imports {top}"


def test_its_tests_import_no_quorate():
    found = re.compile(r"(?m)^\s*(from|import) quorate\b")
    assert [str(path) for path in HOME.rglob("*.py") if found.search(path.read_text())] == []


def run(*arguments, **more):
    command = [sys.executable, "-m", "pocketkube", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_by_itself(stop):
    process = run("--nodes", "2")
    try:
        line = process.stdout.readline()
        kubeconfig = Path(line.removeprefix("export KUBECONFIG=").rstrip("\n"))
        config = json.loads(kubeconfig.read_text())
        assert config["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
        assert config["current-context"] == "pocketkube"
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
    finally:
        process.send_signal(stop)
        _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0, said
    assert "with 2 nodes" in said
    assert "no scheduler runs" in said
    assert not kubeconfig.parent.exists(), "what it made for itself goes with it"


def test_nodes_are_made_once_for_a_folder(tmp_path):
    for asked in ("2", "5"):
        process = run("--nodes", asked, "--data", str(tmp_path / "data"))
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=HANGS_S)
        assert "with 2 nodes" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--nodes", "-1"), "argument --nodes: -1: give a number from 0 to 100000"),
        (("--run-time", "soon"), "argument --run-time: 'soon' is not a duration"),
        (("--data", os.devnull), os.devnull),
    ],
)
def test_a_call_at_fault_says_what_to_write_instead(arguments, says):
    process = run(*arguments)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 2
    assert says in said
    assert "Traceback" not in said


def test_help_says_that_nothing_schedules():
    process = run("--help")
    out, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0
    assert "No scheduler runs" in " ".join(out.split())
