"""VolumeZone: a node with zone or region labels must be in those of the pod's bound volumes.

Source: kube-scheduler 1.36's plugin of that name.
"""

from __future__ import annotations

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.volume_needs import ZONE
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict, rejected_for

REFUSALS = (Refusal("node(s) had no available volume zone", resolvable=False),)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing."""
    volume_needs = pod_class.volume_needs
    if volume_needs is None:
        return None
    refused = rejected_for(volume_needs.problems, ZONE, len(room.free))
    if refused is not None:
        return refused
    if not volume_needs.topologies:
        return None
    return Verdict((~room.volumes.reach.in_zone(volume_needs.topologies)).astype("int8"), REFUSALS)


def concerns(pod_class: PodClass) -> bool:
    """Whether the class has volumes."""
    return pod_class.volume_needs is not None


RULE = Rule(
    name="VolumeZone",
    kind=RuleKind.VOLUMES,
    judge=judge,
    concerns=concerns,
)
