"""Nodes that are all alike, for a cluster that nobody described."""

from __future__ import annotations

from collections.abc import Iterator

from pocketkube.objects import Object

NODES_MAX = 100_000
AMOUNTS = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "500Gi", "pods": "110"}


def alike(count: int) -> Iterator[Object]:
    """Give ``count`` Node objects, node-0 and so on; their agents make them ready."""
    for index in range(count):
        name = f"node-{index}"
        labels = {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        }
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"capacity": dict(AMOUNTS), "allocatable": dict(AMOUNTS)},
        }
