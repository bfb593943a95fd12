"""The house rules that no linter knows: length of functions and files, and nothing left behind."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.paths import ROOT, tracked
from tools.house import tree_of

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600


def test_no_function_is_longer_than_a_screen():
    too_long = []
    for path in tracked("*.py"):
        for node in ast.walk(tree_of(path)):
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
        for path in tracked("src/*.py", "simulate/*.py")
        if path.read_text().strip() and not ast.get_docstring(tree_of(path))
    ]
    assert not silent


def imported_by(path: Path) -> Iterator[str]:
    """Give the modules that a file imports, and the names that it takes from them."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (one.name for one in node.names)


def test_no_module_of_tests_is_imported():
    """What several tests need is in a module that has no tests: edits of tests stay there."""
    importing = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in tracked("*.py")
        for name in imported_by(path)
        if name.rpartition(".")[2].startswith("test_")
    ]
    assert not importing


def test_benches_and_tools_import_no_tests():
    outside = (*tracked("bench/*.py"), *tracked("tools/*.py"))
    assert not [path for path in outside if any(m.startswith("tests") for m in imported_by(path))]


def test_nothing_is_left_behind():
    leftovers = re.compile(r"\b(FIX" + r"ME|TO" + r"DO|XX" + r"X)\b")
    marked = [str(p) for p in tracked("*.py", "*.md", "*.yaml") if leftovers.search(p.read_text())]
    assert not marked


def test_no_path_of_one_machine_is_in_any_file():
    machine = re.compile(r"(?<![\w.])/(root|home|work|Users)/\w")
    files = tracked("*.py", "*.md", "*.yaml", "*.toml", "*.lock", "Makefile", ".ci/run")
    assert not [str(path) for path in files if machine.search(path.read_text())]
