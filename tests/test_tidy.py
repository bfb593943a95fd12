"""The house rules that no linter knows: length of functions and files, and nothing left behind."""

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]


def test_no_function_is_longer_than_a_screen():
    too_long = []
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    too_long.append(f"{path.relative_to(ROOT)}:{node.name} has {lines} lines")
    assert not too_long


def test_no_file_is_longer_than_it_can_explain():
    lengths = {path: len(path.read_text().splitlines()) for path in tracked("*.py")}
    assert not [f"{p.relative_to(ROOT)}: {n}" for p, n in lengths.items() if n > FILE_LINES_MAX]


def test_every_module_says_what_it_is_for():
    silent = [
        str(path.relative_to(ROOT))
        for path in tracked("src/*.py")
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent


def test_nothing_is_left_behind():
    leftovers = re.compile(r"\b(FIX" + r"ME|TO" + r"DO|XX" + r"X)\b")
    marked = [str(p) for p in tracked("*.py", "*.md", "*.yaml") if leftovers.search(p.read_text())]
    assert not marked


def test_no_path_of_one_machine_is_in_any_file():
    machine = re.compile(r"(?<![\w.])/(root|home|work|Users)/\w")
    files = tracked("*.py", "*.md", "*.yaml", "*.toml", "*.lock", "Makefile", ".ci/run")
    assert not [str(path) for path in files if machine.search(path.read_text())]
