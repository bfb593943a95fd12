"""Build the oracle, once per version of its sources, into the cache.

In: Go and this folder's sources. Out: ``binary()``. Called by the command line and by tests.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from tools.controlplane import versions
from tools.controlplane.build import build_program

MODULE_DIR = Path(__file__).parent
KEPT = 4  # builds of other sources: 80 MB each, and a checkout of another branch may use one


def sources() -> list[Path]:
    """List what the binary is made of."""
    return sorted([*MODULE_DIR.glob("*.go"), MODULE_DIR / "go.mod", MODULE_DIR / "go.sum"])


def cache_dir() -> Path:
    """Give the folder of all builds of the oracle."""
    return versions.cache_root() / "oracle"


def binary() -> Path:
    """Give the path that the binary of these sources has once it is built."""
    digest = hashlib.sha256()
    for path in sources():
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return cache_dir() / f"{versions.KUBERNETES}-{digest.hexdigest()[:16]}" / "oracle"


def build(progress: Callable[[str], None]) -> Path:
    """Build the oracle unless it is there; give its path."""
    target = binary()
    if not target.is_file():
        build_program(target, MODULE_DIR, ".", "the oracle", progress)
        _prune(target.parent)
    return target


def _prune(newest: Path) -> None:
    """Remove the oldest builds of other sources."""
    builds = [folder for folder in cache_dir().glob("v*") if folder != newest]
    builds.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in builds[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
