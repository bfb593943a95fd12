"""Build the control plane's binaries from the Go module proxy, once, into the cache.

In: Go and two modules: Kubernetes' own, with exactly its libraries, and ``companions``, which share
theirs. Out: six files in ``versions.version_dir()/bin``, or the tools that check chart and image,
each in a folder of its version. Called by the command line. An interrupted
build leaves no half-made binary, two callers never build at once.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.controlplane import golang, versions
from tools.controlplane.process import die_with_parent

MODULE_DIR = Path(__file__).parent
_COMPANIONS = {
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "crane": "github.com/google/go-containerregistry/cmd/crane",  # OCI images
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform",  # schemas of objects
    "helm": "helm.sh/helm/v4/cmd/helm",  # Helm 3 has had its last release
}
_TOTAL_TIMES = {
    versions.BINARIES: "8 minutes for all six on two cores",
    tuple(versions.TOOLS): "a minute for all three after kwok",
}
PROGRESS_EVERY_S = 30

_VERSION_VARIABLES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
# Without the version stamp clients fail to parse "v0.0.0-master+$Format".
_STAMP = " ".join(f"-X {name}.gitVersion={versions.KUBERNETES}" for name in _VERSION_VARIABLES)
FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")
"""Nobody debugs these: without what a debugger needs a build takes a tenth less."""


class BuildError(RuntimeError):
    """A binary did not build; the text holds the compiler's last words."""


def build(progress: Callable[[str], None], names: Sequence[str] = versions.BINARIES) -> None:
    """Build what is missing of these, one at a time; does nothing when every binary is there."""
    missing = versions.missing_binaries(names)
    if not missing:
        return
    go = golang.find_go(progress)
    how_long = _TOTAL_TIMES.get(tuple(names), "some minutes")
    progress(f"building {len(missing)} of {len(names)} binaries with {go} ({how_long})")
    for name in missing:
        with lock(versions.binary(name).parent, progress, name):
            if versions.missing_binaries([name]):  # still: nobody else has built it meanwhile
                _build_one(go, name, f"{name} ({names.index(name) + 1} of {len(names)})", progress)
    progress(f"built: {versions.folders(names)}")


@contextmanager
def lock(folder: Path, progress: Callable[[str], None], name: str = "build") -> Iterator[None]:
    """Let one build at a time put ``name`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another build of {folder / name}")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _build_one(go: Path, name: str, title: str, progress: Callable[[str], None]) -> None:
    target = versions.binary(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        command, cwd, environment = _command(go, name, work)
        progress(f"building {title}")
        elapsed_s = run(command, cwd, environment, title, progress)
        (work / name).rename(target)  # the same folder, hence the same file system: atomic
    finally:
        shutil.rmtree(work, ignore_errors=True)
    progress(f"built {title} in {elapsed_s:.0f} s")


def _command(go: Path, name: str, work: Path) -> tuple[list[str], Path, dict[str, str]]:
    """Give command, folder and environment that put one binary into ``work``."""
    module, ldflags = MODULE_DIR, "-s -w"
    if name in _COMPANIONS:
        module, package = MODULE_DIR / "companions", _COMPANIONS[name]
    elif name == "etcd":
        package = "go.etcd.io/etcd/server/v3"
    else:
        package, ldflags = f"k8s.io/kubernetes/cmd/{name}", f"-s -w {_STAMP}"
    command = [str(go), "build", *FLAGS, "-ldflags", ldflags, "-o", str(work / name), package]
    return command, module, golang.environment(GOFLAGS="-mod=readonly")


def run(
    command: list[str],
    cwd: Path,
    environment: dict[str, str],
    title: str,
    progress: Callable[[str], None],
) -> float:
    """Run one build and tell that it goes on; give the seconds it took, or raise BuildError."""
    start_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            die_with_parent(command), cwd=cwd, env=environment, stdout=log, stderr=log
        )
        try:
            while True:
                try:
                    process.wait(timeout=PROGRESS_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    elapsed_s = time.monotonic() - start_s
                    progress(f"still building {title}, {elapsed_s:.0f} s so far")
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 3000))
            raise BuildError(
                f"{title} did not build: {' '.join(command)}\n{log.read().strip()}\n"
                "If a download failed, check that the Go module proxy (GOPROXY) is reachable"
                " and run the same command again; what is built stays."
            )
    return time.monotonic() - start_s
