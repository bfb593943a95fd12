"""Operators as released: their modules, and what is edited so that two run on one machine.

In: Go and the module proxy. Out: sources that build with exactly their own libraries, and the
release's manifests beside the binary. Called by ``build``.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.controlplane import golang, versions
from tools.controlplane.process import lock


class Edit(NamedTuple):
    """A piece of a released file, and what has to stand there so that it builds and runs here."""

    file: str
    old: str
    new: str


class Release(NamedTuple):
    """One operator at one version."""

    module: str
    checksum: str
    """Of the module at the version of ``versions.OPERATORS``, as a go.sum has it."""
    package: str
    edits: tuple[Edit, ...]
    """All that differs from what is released."""
    manifests: str = "manifests"
    """Its folder of manifests."""


_APIS = "volcano.sh/apis v1.14.0"
"""Volcano's own library, which its module leaves out: the nearest one that the proxy has."""
_AFTER = "stathat.com/c/consistent v1.0.0 h1:"


def _of_volcano(package: str) -> Release:
    return Release(
        "volcano.sh/volcano",
        "h1:9eLs47iZeLgey6EcA1rHwVkU7HoBNm3UVpJZ4uhFJ7c=",
        package,
        (
            Edit("go.mod", "=> ./staging/src/volcano.sh/apis", f"=> {_APIS}"),
            Edit(
                "go.sum",
                _AFTER,
                f"{_APIS} h1:Rf8wzGFmgzbyg85GO0CxapDDEk/VM3D7QbjbI/sH+OQ=\n"
                f"{_APIS}/go.mod h1:CKQbxVt0o4lTKisC0MonoXWruGFC0S8KU+UuzaZ5E7k=\n{_AFTER}",
            ),
        ),
        "installer",
    )


RELEASES = {
    "training-operator": Release(
        "github.com/kubeflow/training-operator",
        "h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc=",
        "./cmd/training-operator.v1",
        (
            Edit(
                "cmd/training-operator.v1/main.go",
                "Port: webhookServerPort,",
                'Host: "127.0.0.1", Port: webhookServerPort,',
            ),
            # As the library that serves them already does.
            Edit(
                "pkg/cert/cert.go",
                "CertDir:        certDir,",
                'CertDir: os.TempDir() + "/k8s-webhook-server/serving-certs",',
            ),
        ),
    ),
    "mpi-operator": Release(
        "github.com/kubeflow/mpi-operator",
        "h1:XvBwyXXQ9103DNMa22sxsaQlaktvaT2LY/g0UniGn5U=",
        "./cmd/mpi-operator",
        (
            Edit(
                "cmd/mpi-operator/app/server.go",
                'Addr:    fmt.Sprintf(":%d", healthCheckPort),',
                'Addr:    "127.0.0.1:0",',
            ),
        ),
    ),
    "vc-controller-manager": _of_volcano("./cmd/controller-manager"),
    "vc-webhook-manager": _of_volcano("./cmd/webhook-manager"),
}


def manifests(name: str) -> Path:
    """Give the folder of the release's manifests."""
    return versions.binary(name).with_name("manifests")


def prepare(name: str, work: Path, progress: Callable[[str], None]) -> tuple[Path, str]:
    """Put a release's sources below ``work``, edited; return their folder and the package.

    Raises BuildError, or GoError where there is no Go.
    """
    release = RELEASES[name]
    source = work / name
    _copy(_download(name, progress), source)
    for edit in release.edits:
        path = source / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise golang.BuildError(f"{name}: {edit.file} has not exactly one {edit.old!r}")
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    kept = manifests(name)
    with lock(kept.parent, progress, kept.name):
        if not kept.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=".manifests-", dir=kept.parent))
            _copy(source / release.manifests, partial)
            partial.rename(kept)
    return source, release.package


def _copy(source: Path, target: Path) -> None:
    """Copy a tree without its modes: nobody may write to what is in Go's cache of modules."""
    for one in source.rglob("*"):
        if one.is_file():
            copied = target / one.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(one, copied)


def _download(name: str, progress: Callable[[str], None]) -> Path:
    """Fetch a module; return its folder in Go's cache of modules."""
    release = RELEASES[name]
    wanted = f"{release.module}@{versions.OPERATORS[name]}"
    go = golang.find_go(progress)
    progress(f"fetching {wanted}")
    done = subprocess.run(
        [str(go), "mod", "download", "-json", wanted],
        cwd=tempfile.gettempdir(),  # outside of every module
        env=golang.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(done.stdout) if done.stdout.strip() else {"Error": done.stderr.strip()}
    if problem := said.get("Error"):
        raise golang.BuildError(f"{wanted} was not fetched: {problem}. Is GOPROXY reachable?")
    if said["Sum"] != release.checksum:
        raise golang.BuildError(f"{wanted} has the checksum {said['Sum']}, not {release.checksum}")
    return Path(said["Dir"])
