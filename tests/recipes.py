"""Recipes: pages of docs/maintainers whose fenced blocks are applied to a copy of the checkout.

A block is headed by the file that it is about. ```` ```python title="src/..." ```` holds a whole
new file. ```` ```diff title="src/..." ```` changes one: its lines begin with a space (to be found
there), ``-`` (to be found there, and removed) or ``+`` (added). What is to be found is one run of
whole lines, and is there once. Blocks without a title are prose.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.paths import ROOT

_BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_OLD, _NEW = " -", " +"


class Block(NamedTuple):
    """One fenced block of a recipe, and the file that it is about."""

    language: str
    path: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are headed by a file, in order."""
    found = [Block(*match.groups()) for match in _BLOCK.finditer(page.read_text())]
    assert found, f"{page} has no block that is headed by a file"
    return found


def copied(to: Path) -> Path:
    """Copy the checkout, as it is now, without what git ignores; return its root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    return to


def apply(page: Path, tree: Path) -> set[str]:
    """Apply the blocks of a page to a copy; return the files that were written or changed."""
    touched = set()
    for block in blocks(page):
        target = tree / block.path
        if block.language == "diff":
            target.write_text(_changed(target.read_text(), block))
        else:
            assert not target.exists(), f"{block.path} is there already"
            target.write_text(block.text)
        touched.add(block.path)
    return touched


def _changed(text: str, block: Block) -> str:
    lines = [line or " " for line in block.text.splitlines()]  # editors strip a lone space
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] in _OLD)
    new = "".join(f"{line[1:]}\n" for line in lines if line[0] in _NEW)
    times = f"\n{text}".count(f"\n{old}")
    assert times == 1, f"{block.path} has these lines {times} times, not once:\n{old}"
    return f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:]


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy, on its own source, for 5 minutes at most."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_tests(tree: Path, *tests: str) -> None:
    """Run tests of the copy, on its own source; fail with their output when one fails."""
    imported = run(tree, "-c", "import quorate; print(quorate.__file__)")
    assert imported.stdout.strip().startswith(str(tree)), imported.stdout + imported.stderr
    done = run(tree, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
