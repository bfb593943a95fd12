"""The nodes, pods and gangs of which the cases of ``core_bench`` are made."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.core.model import GangKey, GangSpec, Membership, Node, Owner, Pod, PodSpec
from quorate.core.model.changes import Change, GangChanged, NodeChanged, PodChanged
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER

GI = 2**30
HOST = "kubernetes.io/hostname"
NAMESPACE = "team"
GPU_POD = PodSpec(requests=(("cpu", 1_000), ("memory", GI), ("nvidia.com/gpu", 1)))
KUBE_POLICY = Policy(profiles=(("quorate", KUBE_SCHEDULER),))
"""Pods of the scheduler ``quorate`` are placed as kube-scheduler places them."""


def node(index: int, *, cpu: int = 64_000, labels: tuple[tuple[str, str], ...] = ()) -> Node:
    """Return a node of 8 GPUs, in a rack of 16 nodes and one of three zones."""
    name = f"node-{index}"
    return Node(
        name,
        (("cpu", cpu), ("memory", 256 * GI), ("nvidia.com/gpu", 8), ("pods", 110)),
        labels=((HOST, name), ("rack", f"r{index // 16}"), ("zone", f"z{index % 3}"), *labels),
    )


def nodes(count: int) -> Iterator[Change]:
    return (NodeChanged(node(index)) for index in range(count))


def pod(
    name: str,
    spec: PodSpec = GPU_POD,
    *,
    gang: GangKey | None = None,
    node_name: str = "",
    labels: tuple[tuple[str, str], ...] = (),
    created_s: float = 0.0,
    owner: Owner | None = None,
) -> Pod:
    """Return a pod of ours that waits, or runs on a node."""
    return Pod(
        uid(name),
        NAMESPACE,
        name,
        "quorate",
        spec,
        created_s=created_s,
        node=node_name,
        phase="Running" if node_name else "Pending",
        labels=labels,
        membership=Membership(gang) if gang else None,
        owner=owner,
    )


def uid(name: str) -> str:
    return f"uid-{name}"


def gang(name: str, size: int, spec: PodSpec = GPU_POD, created_s: float = 0.0) -> list[Change]:
    """Return the news of a gang of pods that are alike; all of them have to start."""
    key = gang_key(name)
    members = (pod(f"{name}-{index}", spec, gang=key, created_s=created_s) for index in range(size))
    of_gang = GangSpec(key, size, created_s=created_s)
    return [GangChanged(of_gang), *(PodChanged(member) for member in members)]


def gang_key(name: str) -> GangKey:
    return GangKey(NAMESPACE, "x-k8s", name)
