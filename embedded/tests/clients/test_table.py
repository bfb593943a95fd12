"""docs/maintainers/clients.md names tests that there are, and every client's tests are in it."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
(DOCUMENT,) = (ROOT / "docs").rglob("clients.md")
TEST = re.compile(r"`(test_\w+)(?:\.py)?::(test_\w+)`")


def rows() -> list[str]:
    lines = DOCUMENT.read_text().splitlines()
    return [line for line in lines if line.startswith("|") and not re.match(r"\|[ -]+\|", line)]


def names_in(path: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(path.read_text()).body
    return {one.name for one in body if isinstance(one, functions) and one.name[:5] == "test_"}


def test_every_row_names_a_test_and_every_test_is_there():
    files = [*HERE.rglob("test_*.py"), *(ROOT / "tests" / "clients").glob("test_*.py")]
    there = {path.stem: names_in(path) for path in files}
    without, missing = [], []
    for row in rows():
        if "shown by" in row:
            continue  # the head of a table
        named = TEST.findall(row)
        if not named:
            without.append(row)
        missing += [f"{file}::{test}" for file, test in named if test not in there.get(file, ())]
    assert (without, missing) == ([], [])


def test_every_client_and_every_difference_has_a_row():
    named = set(TEST.findall(DOCUMENT.read_text()))
    files = {path.stem for path in HERE.rglob("test_*.py")} - {"test_table"}
    assert files <= {file for file, _ in named}
    differences = {("test_differences", name) for name in names_in(HERE / "test_differences.py")}
    assert differences <= named
