"""What the view shows of a cluster: nodes and gangs, as the API tells of them at one moment.

In: an API client. Out: a Picture. Called by ``stage`` many times a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tools.controlplane import ApiClient

GPU = "nvidia.com/gpu"
COMPLETE_AFTER = "quorate.dev/complete-after"
_PODS = "/api/v1/namespaces/default/pods"


class Gang(NamedTuple):
    """A gang of the story: how to find its pods, and how to draw them."""

    name: str
    letter: str
    style: str
    label: str
    needed: int


PG1 = Gang("pg1", "p", "green", "pod-group.scheduling.sigs.k8s.io", 4)
NGINX = Gang("nginx", "n", "magenta", "pod-group.scheduling.sigs.k8s.io/name", 2)
RED = Gang("red", "R", "red", "scheduling.x-k8s.io/pod-group", 8)
BLUE = Gang("blue", "B", "blue", "scheduling.x-k8s.io/pod-group", 8)
GANGS = (PG1, NGINX, BLUE, RED)


class Member(NamedTuple):
    """One pod of a gang; ``why`` is the message with which a scheduler holds it."""

    name: str
    uid: str
    node: str
    phase: str
    gpus: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSeen:
    """A gang and its pods at one moment."""

    gang: Gang
    members: tuple[Member, ...]

    @property
    def running(self) -> int:
        """How many members run."""
        return sum(member.phase == "Running" for member in self.members)

    @property
    def placed(self) -> int:
        """How many members have a node."""
        return sum(bool(member.node) for member in self.members)

    @property
    def is_whole(self) -> bool:
        """Whether as many run as the gang needs."""
        return self.running >= self.gang.needed

    @property
    def is_done(self) -> bool:
        """Whether all members have succeeded."""
        return bool(self.members) and all(one.phase == "Succeeded" for one in self.members)

    @property
    def why(self) -> str:
        """What a scheduler says about a member that waits; empty when none does."""
        return next((one.why for one in self.members if one.why and not one.node), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A cluster at one moment: nodes with their number of GPUs, and the gangs that have pods."""

    nodes: dict[str, int]
    gangs: dict[str, GangSeen]

    def gang(self, gang: Gang) -> GangSeen:
        """Return what is seen of a gang; without members when there is nothing."""
        return self.gangs.get(gang.name) or GangSeen(gang=gang, members=())

    @property
    def gpus_free(self) -> int:
        """How many GPUs no pod holds."""
        members = [one for seen in self.gangs.values() for one in seen.members]
        held = sum(one.gpus for one in members if one.node and one.phase != "Succeeded")
        return sum(self.nodes.values()) - held


def look(client: ApiClient) -> Picture:
    """Read a cluster. Raises OSError or http.client.HTTPException: it does not answer."""
    nodes = client.api("GET", "/api/v1/nodes")["items"]
    pods = [pod for pod in client.api("GET", _PODS)["items"] if not _is_going(pod)]
    gangs = {}
    for gang in GANGS:
        members = tuple(_member(pod) for pod in pods if _labels(pod).get(gang.label) == gang.name)
        if members:
            gangs[gang.name] = GangSeen(gang=gang, members=members)
    return Picture(
        nodes={node["metadata"]["name"]: _gpus_of(node["status"]) for node in nodes}, gangs=gangs
    )


def end_if_whole(client: ApiClient, gang: Gang) -> bool:
    """End a gang's pods if all it needs run: members meet first, then work; tell whether they did.

    This is what a training program does, which the nodes of an embedded cluster only simulate.
    """
    seen = look(client).gang(gang)
    if not seen.is_whole:
        return False
    annotations = {"metadata": {"annotations": {COMPLETE_AFTER: "0s"}}}
    for member in seen.members:
        client.api(
            "PATCH",
            f"{_PODS}/{member.name}",
            annotations,
            content_type="application/merge-patch+json",
        )
    return True


def _member(pod: dict[str, Any]) -> Member:
    spec, status = pod["spec"], pod["status"]
    conditions = status.get("conditions", [])
    held = [one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]
    return Member(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        node=spec.get("nodeName", ""),
        phase=status["phase"],
        gpus=sum(_requested(container) for container in spec["containers"]),
        why=held[0].get("message", "") if held else "",
    )


def _labels(pod: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return labels


def _is_going(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _requested(container: dict[str, Any]) -> int:
    return int(container.get("resources", {}).get("requests", {}).get(GPU, 0))


def _gpus_of(status: dict[str, Any]) -> int:
    return int(status["allocatable"].get(GPU, 0))
