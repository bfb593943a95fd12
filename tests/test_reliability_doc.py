"""docs/operators/reliability.md names tests: each must exist, or a promise is tested no more."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "operators" / "reliability.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_test_that_the_document_names_exists():
    named = NAMED.findall(TEXT)
    assert len(named) > 20
    missing = []
    for file, function in named:
        path = ROOT / file
        if not path.is_file() or (function and function not in functions_of(path)):
            missing.append(f"{file}::{function}")
    assert not missing


def test_nothing_that_looks_like_a_test_escapes_the_check():
    mentioned = re.findall(r"tests/[\w/]+\.py(?:::\w+)?", TEXT)
    checked = ["::".join(filter(None, pair)) for pair in NAMED.findall(TEXT)]
    assert sorted(mentioned) == sorted(checked)
