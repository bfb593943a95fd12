"""The image's upper layers: packages of others, by pip from the lock, and quorate itself.

In: ``requirements-image.lock``, ``requirements-build.lock`` and this checkout. Out: trees. Modules
are compiled by the image's own interpreter: its root file system is read-only, so that it could not
keep what it compiles.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.image.debian import PYTHON
from tools.image.tree import Entry, Tree, folder_tree, write_tree

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-image.lock"
BUILD_LOCK = ROOT / "requirements-build.lock"
SITE = f"usr/local/lib/python{PYTHON[0]}.{PYTHON[1]}/dist-packages"
PROGRAM = b"#!/usr/bin/python3\nfrom quorate.cli.entry import main\n\nmain()\n"
_BY_HASH = ("--require-hashes", "--only-binary", ":all:", "--requirement")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
# Unchecked: the image's files have no times that a compiled module could be compared with.
_COMPILE = """
import compileall, py_compile, sys
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
folder, root = sys.argv[1:]
done = compileall.compile_dir(
    folder, quiet=1, stripdir=root, prependdir="/", invalidation_mode=mode, maxlevels=20
)
sys.exit(not done)
"""


class PythonError(RuntimeError):
    """Packages cannot be fetched by this interpreter; the text says which one can."""


def packages() -> Tree:
    """Return what the lock names, installed. Raises PythonError."""
    if sys.version_info[:2] != PYTHON:
        wanted = ".".join(map(str, PYTHON))
        raise PythonError(f"packages are fetched for this Python: run with python{wanted}")
    return _installed(*_BY_HASH, str(LOCK))


def program() -> Tree:
    """Return quorate as its wheel installs it, and the command."""
    with tempfile.TemporaryDirectory(prefix="quorate-image-") as folder:
        builder = f"{folder}/builder"
        _pip("install", "--target", builder, *_BY_HASH, str(BUILD_LOCK))
        made = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        _pip("wheel", *made, str(ROOT), PYTHONPATH=builder)
        (wheel,) = Path(folder).glob("*.whl")
        tree = _installed("--no-deps", "--no-index", str(wheel))
    return {**tree, "usr/local/bin/quorate": Entry(0o755, PROGRAM)}


def compiled(below: Tree, tree: Tree) -> Tree:
    """Return the modules of ``tree``, compiled; ``below`` has the interpreter."""
    with tempfile.TemporaryDirectory(prefix="quorate-image-") as name:
        root = Path(name).resolve()
        write_tree({**below, **tree}, root)
        own = [path for path in tree if path.endswith(".py")]
        for folder in sorted({path.split("/python3")[0] for path in own if "/python3" in path}):
            run_in(root, "-c", _COMPILE, str(root / folder), str(root))
        made = folder_tree(root, "")
    names = {path.rpartition("/")[0] + "/__pycache__/" for path in own}
    found = {path.lstrip("/"): entry for path, entry in made.items() if path.endswith(".pyc")}
    return {
        path: entry
        for path, entry in found.items()
        if path.rpartition("/")[0] + "/" in names and path not in tree
    }


def run_in(root: Path, *arguments: str) -> str:
    """Run the interpreter of a root file system with its own loader, libraries and modules."""
    (loader,) = (root / "usr" / "lib64").glob("ld-linux-*")
    libraries = [path for path in (root / "usr" / "lib").glob("*-linux-gnu") if path.is_dir()]
    command = [str(loader), "--library-path", ":".join(map(str, libraries))]
    command += [str(root / "usr/bin/python3"), "-B", "-s", *arguments]
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PATH": ""}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=root
    )
    return done.stdout


def _installed(*what: str) -> Tree:
    with tempfile.TemporaryDirectory(prefix="quorate-image-") as folder:
        site = Path(folder) / "site"
        _pip("install", "--no-compile", "--no-warn-script-location", "--target", str(site), *what)
        tree = folder_tree(site, SITE)
    return {
        path: _without_mine(entry) if path.endswith(".dist-info/RECORD") else entry
        for path, entry in tree.items()
        if not path.startswith(f"{SITE}/bin/") and not path.endswith("/direct_url.json")
    }


def _without_mine(record: Entry) -> Entry:
    """Leave out what names this machine: programs its interpreter, direct_url.json its folders."""
    lines = (record.data or b"").splitlines(keepends=True)
    kept = [line for line in lines if b"/bin/" not in line and b"direct_url.json" not in line]
    return record._replace(data=b"".join(kept))


def _pip(*arguments: str, **variables: str) -> None:
    # Zip files begin in 1980.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800", **variables}
    subprocess.run([*_PIP, *arguments], check=True, capture_output=True, text=True, env=environment)
