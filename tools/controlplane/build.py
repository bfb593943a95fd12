"""Build the control plane's binaries from the Go module proxy, once, into the cache.

In: Go and two modules: Kubernetes' own, with exactly its libraries, and ``companions``, which share
theirs; an operator's own module. Out: six files in ``versions.version_dir()/bin``; tools and
operators each in a folder of its version. Called by the command line, and for their own modules by
oracle and bench.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.controlplane import golang, releases, versions
from tools.controlplane.golang import BuildError
from tools.controlplane.process import die_with_parent, lock

MODULE_DIR = Path(__file__).parent
_COMPANIONS = {
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "crane": "github.com/google/go-containerregistry/cmd/crane",  # OCI images
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform",  # schemas of objects
    "helm": "helm.sh/helm/v4/cmd/helm",  # Helm 3 has had its last release
}
PROGRESS_EVERY_S = 30
_VERSION_VARIABLES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")
"""Nobody debugs these: without what a debugger needs a build takes a tenth less."""


def build(progress: Callable[[str], None], names: Sequence[str] = versions.BINARIES) -> None:
    """Build what is missing of these, one at a time; does nothing when every binary is there."""
    missing = versions.missing_binaries(names)
    if not missing:
        return
    how_long = "8 minutes for all on two cores" if names == versions.BINARIES else "some minutes"
    progress(f"building {len(missing)} of {len(names)} binaries ({how_long})")
    for name in missing:
        title = f"{name} ({names.index(name) + 1} of {len(names)})"
        if name in _COMPANIONS:
            module, package, version = MODULE_DIR / "companions", _COMPANIONS[name], ""
        elif name in versions.OPERATORS:
            _build_operator(name, title, progress)
            continue
        elif name == "etcd":
            module, package, version = MODULE_DIR, "go.etcd.io/etcd/server/v3", ""
        else:
            module, package = MODULE_DIR, f"k8s.io/kubernetes/cmd/{name}"
            version = versions.KUBERNETES
        build_program(versions.binary(name), module, package, title, progress, version=version)
    progress(f"built: {versions.folders(names)}")


def _build_operator(name: str, title: str, progress: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory(prefix=f"quorate-{name}-") as work:
        source, package = releases.prepare(name, Path(work), progress)
        build_program(versions.binary(name), source, package, title, progress)


def build_program(
    target: Path,
    module: Path,
    package: str,
    title: str,
    progress: Callable[[str], None],
    *,
    version: str = "",
) -> None:
    """Build a Go program unless it is there; raise BuildError, or GoError where there is no Go.

    It says that it is of this version of Kubernetes. An interrupted build leaves no half-made
    file; two callers never build the same at once.
    """
    if target.is_file():
        return
    go = golang.find_go(progress)
    # Without the version clients fail to parse "v0.0.0-master+$Format".
    stamps = [f"-X {name}.gitVersion={version}" for name in _VERSION_VARIABLES if version]
    with lock(target.parent, progress, target.name):
        if target.is_file():
            return
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            progress(f"building {title} with {go}")
            command = [str(go), "build", *FLAGS, "-ldflags", " ".join(["-s", "-w", *stamps])]
            command += ["-o", str(work / target.name), package]
            environment = golang.environment(GOFLAGS="-mod=readonly")
            elapsed_s = run(command, module, environment, title, progress)
            (work / target.name).rename(target)  # the same file system: atomic
        finally:
            shutil.rmtree(work, ignore_errors=True)
    progress(f"built {title} in {elapsed_s:.0f} s")


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
