"""The house: its rooms from top to bottom, circles of imports, and how large things are.

``python -m tools.house`` prints figures; ``--write`` draws the picture in the architecture page
anew. The picture and ``make check`` read the same list: the layers of import-linter's contracts in
``pyproject.toml``. What a room is for is the first sentence of its ``__init__``.
"""

from __future__ import annotations

import argparse
import ast
import functools
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "maintainers" / "architecture.md"
BEGIN, END = "<!-- the house: begin -->\n", "<!-- the house: end -->\n"
PACKAGES = {
    "quorate": ROOT / "src" / "quorate",
    "pocketkube": ROOT / "embedded" / "src" / "pocketkube",
}
"""The packages that are installed, and where each is."""
BESIDE = {
    **{name: ROOT / name for name in ("bench", "simulate", "tools", "tests")},
    "embedded.tests": ROOT / "embedded" / "tests",
}
"""What runs from a checkout only. It has rooms too, but no layers."""
_COLUMN = 34


class Contract(NamedTuple):
    """One list of layers: what is above may import what is below."""

    name: str
    layers: list[list[str]]


def contracts() -> list[Contract]:
    """Return the layers that import-linter holds, as lists of modules from top to bottom."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = settings["tool"]["importlinter"]["contracts"]
    return [
        Contract(one["name"], [[part.strip() for part in row.split("|")] for row in one["layers"]])
        for one in found
        if one["type"] == "layers"
    ]


def modules(package: str) -> dict[str, Path]:
    """Return the modules of a package by dotted name."""
    top = (PACKAGES | BESIDE)[package]
    found = {}
    for path in sorted(top.rglob("*.py")):
        parts = (package, *path.relative_to(top).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file; all who ask have the same one."""
    return ast.parse(path.read_text())


def imports(*packages: str) -> dict[str, set[str]]:
    """Return what each module imports of these packages, for types or at run time, anywhere."""
    known = {name: path for package in packages for name, path in modules(package).items()}
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                found[name].update(alias.name for alias in node.names if alias.name in known)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    target = inner if inner in known else node.module
                    found[name].update({target} & known.keys())
    return found


def circles(*packages: str) -> list[list[str]]:
    """Return the sets of modules of these packages that import one another, by whatever way."""
    graph = imports(*packages)
    reach = {name: _reached(name, graph) for name in graph}
    seen: set[str] = set()
    found = []
    for name in graph:
        if name in seen or name not in reach[name]:
            continue
        circle = sorted(one for one in reach[name] if name in reach[one])
        seen.update(circle)
        found.append(circle)
    return found


def _reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for one in graph[waiting.pop()] - reached:
            reached.add(one)
            waiting.append(one)
    return reached


def rooms(top: Path) -> dict[Path, list[Path]]:
    """Return the modules of each folder; ``__init__`` and ``__main__`` are doors, not modules."""
    found: dict[Path, list[Path]] = defaultdict(list)
    for path in sorted(top.rglob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            found[path.parent].append(path)
    return found


def purpose(path: Path) -> str:
    """Return the first sentence of a module's or package's docstring."""
    text = ast.get_docstring(tree_of(path)) or ""
    sentence = text.split("\n\n")[0].replace("\n", " ")
    return sentence.removesuffix(".")


def picture() -> str:
    """Draw all lists of layers, each as one block."""
    blocks = []
    for contract in contracts():
        lines = [contract.name, ""]
        for row in contract.layers:
            lines += [line for module in row for line in _drawn(module)]
        blocks.append("```\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(blocks)


def _drawn(module: str) -> Iterator[str]:
    path = _path(module)
    yield _line(module.rpartition(".")[2], path, 0)
    if path.name == "__init__.py":
        for inner in sorted(path.parent.rglob("__init__.py")):
            depth = len(inner.relative_to(path.parent).parts) - 1
            if depth and not _has_layers(module):
                yield _line(inner.parent.name, inner, depth)


def _has_layers(module: str) -> bool:
    """Whether a package has a list of layers of its own, which draws what is in it."""
    rows = (row for contract in contracts() for row in contract.layers)
    return any(one.startswith(module + ".") for row in rows for one in row)


def _line(name: str, path: Path, depth: int) -> str:
    shown = "  " * depth + (name + "/" if path.name == "__init__.py" else name + ".py")
    return f"{shown:{_COLUMN - 12}} {purpose(path)}"


def _path(module: str) -> Path:
    package = module.partition(".")[0]
    path = PACKAGES[package].joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def drawn_in(page: str) -> str:
    """Return the page with the picture as it is now."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + picture() + END + rest.split(END)[1]


def _figures(package: str) -> Iterator[str]:
    top = (PACKAGES | BESIDE)[package]
    lengths, sizes = [], []
    for path in modules(package).values():
        text = path.read_text()
        sizes.append(len(text.splitlines()))
        lengths += [
            (node.end_lineno or 0) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    for folder, files in rooms(top).items():
        lines = sum(len(path.read_text().splitlines()) for path in files)
        name = str(folder.relative_to(top.parent))
        yield f"{name:{_COLUMN}} {len(files):4} modules {lines:6} lines"
    lengths.sort()
    sizes.sort()
    yield f"{package}: {len(sizes)} files, {sum(sizes)} lines, median {sizes[len(sizes) // 2]}"
    p99 = lengths[int(len(lengths) * 0.99)]
    yield f"{package}: {len(lengths)} functions, p99 {p99} lines, longest {lengths[-1]}"
    yield f"{package}: {len(circles(package))} circles of imports"


def main() -> int:
    """Print the figures of each package, or write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="draw the picture in the page anew")
    if parser.parse_args().write:
        PAGE.write_text(drawn_in(PAGE.read_text()))
        return 0
    for package in PACKAGES | BESIDE:
        print("\n".join(_figures(package)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
