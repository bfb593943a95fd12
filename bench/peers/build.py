"""Build the peer that is not in the control plane's cache: scheduler-plugins' coscheduling.

In: Go and ``coscheduling/`` (a module of its own). Out: one cached binary. Called by
``python -m bench`` and ``python -m bench.peers.build``. An interrupted build leaves no binary.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools.controlplane import golang
from tools.controlplane.process import die_with_parent
from tools.controlplane.versions import cache_root

SCHEDULER_PLUGINS = "v0.33.5"
KUBERNETES = "v1.33.5"  # the version that scheduler-plugins v0.33.5 requires
MODULE_DIR = Path(__file__).parent / "coscheduling"
TITLE = f"scheduler-plugins {SCHEDULER_PLUGINS} coscheduling"
PROGRESS_EVERY_S = 10

_VERSION_VARIABLES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
# Without the version stamp clients fail to parse "v0.0.0-master+$Format".
_STAMP = " ".join(f"-X {name}.gitVersion={KUBERNETES}" for name in _VERSION_VARIABLES)


class PeerBuildError(RuntimeError):
    """The peer did not build; the text holds the compiler's last words and a hint."""


def say(message: str) -> None:
    """Print progress to standard error."""
    print(f"bench: {message}", file=sys.stderr, flush=True)


def coscheduling_binary() -> Path:
    """Give the path that the binary has once it is built."""
    folder = cache_root() / "peers" / f"scheduler-plugins-{SCHEDULER_PLUGINS}" / "bin"
    return folder / "coscheduling"


def build_coscheduling(progress: Callable[[str], None] = say) -> Path:
    """Build the binary unless it is there, and give its path."""
    target = coscheduling_binary()
    if target.is_file():
        return target
    go = golang.find_go(progress)
    progress(f"building {TITLE} (about 2 minutes on two cores)")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".coscheduling-", dir=target.parent))
    command = [str(go), "build", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {_STAMP}"]
    command += ["-o", str(work / target.name), "."]
    try:
        elapsed_s = _run(command, progress)
        (work / target.name).rename(target)  # the same folder: atomic
    finally:
        shutil.rmtree(work, ignore_errors=True)
    progress(f"built {TITLE} in {elapsed_s:.0f} s")
    return target


def _run(command: list[str], progress: Callable[[str], None]) -> float:
    start_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            die_with_parent(command),
            cwd=MODULE_DIR,
            env=golang.environment(GOFLAGS="-mod=readonly"),
            stdout=log,
            stderr=log,
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(timeout=PROGRESS_EVERY_S)
                except subprocess.TimeoutExpired:
                    elapsed_s = time.monotonic() - start_s
                    progress(f"still building {TITLE}, {elapsed_s:.0f} s so far")
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 3000))
            raise PeerBuildError(
                f"{TITLE} did not build: {' '.join(command)}\n{log.read().strip()}\n"
                "If a download failed, check that the Go module proxy (GOPROXY) is reachable and"
                " run the same command again; or leave it out: --peers ceiling,quorate,native"
            )
    return time.monotonic() - start_s


if __name__ == "__main__":
    print(build_coscheduling())
