"""Whose a node is: its labels in, the reservation, labels and taints that it should have out. Pure.

Called by ``nodes`` for each version of each node. ``judge`` is the table of rules; ``amended`` says
what has to be written so that the node is as it should be. A node with none of the three labels of
the life-cycle is not part of it and is left alone.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from quorate.cks.rules import Rules
from quorate.cks.states import STEPS, TRIAGE
from quorate.core.model.life_cycle import CONTROL_PLANE, PRODUCTION
from quorate.shell.kube.objects import NamedMetadata

REASON: Final = "rules.quorate.dev/reason"
"""The annotation of a node that says why it is not for whom its labels ask for it."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
TYPE: Final = "node.kubernetes.io/type"
"""An older name of it, kept equal."""
SAFE: Final = TRIAGE
"""What a node is reserved for whose labels cannot be believed: nobody's pods go there."""
_GPU, _CPU = "gpu", "cpu"

Taint = dict[str, Any]


class Reason(StrEnum):
    """Why a node is not, or not yet, for whom its labels ask for it."""

    PENDING = "Pending"
    NO_STATE = "NoState"
    UNKNOWN_STATE = "UnknownState"
    NO_ORGANIZATION = "NoOrganization"
    UNKNOWN_ORGANIZATION = "UnknownOrganization"
    UNSTEADY = "Unsteady"


class _Spec(msgspec.Struct):
    taints: list[Taint] | None = None


class _Status(msgspec.Struct):
    capacity: dict[str, str | int] | None = None


class Node(msgspec.Struct):
    """A node of the API, of which these fields matter."""

    metadata: NamedMetadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def labels(self) -> dict[str, str]:
        """Its labels, {} where it has none."""
        return self.metadata.labels or {}

    @property
    def reason(self) -> str:
        """What its annotation says, "" where it has none."""
        return (self.metadata.annotations or {}).get(REASON, "")


class Verdict(NamedTuple):
    """What a node should be reserved for; ``reason`` is None where that is what is desired."""

    reserved: str
    desired: str = ""
    """What its label should say is desired; "" leaves the label as it is."""
    reason: Reason | None = None
    words: str = ""

    @property
    def told(self) -> str:
        """The annotation's value."""
        return f"{self.reason}: {self.words}" if self.reason else ""


def judge(node: Node, rules: Rules, *, is_vacant: bool = False) -> Verdict | None:
    """Return what the node should be reserved for; None: it is not part of the life-cycle.

    ``is_vacant``: no pods are on it but the control plane's, DaemonSets' and those of whom it is
    desired for. A node becomes what is desired when that is so and it is closed: an open one may
    get more pods.
    """
    state, reserved, desired = (
        node.labels.get(key)
        for key in (rules.state_label, rules.reserved_label, rules.desired_label)
    )
    if state is None and reserved is None and desired is None:
        return None
    kept = ""
    if desired is None and reserved in rules.organizations:
        desired = kept = reserved or ""  # else nobody knows whose it was when its state changes
    if state != PRODUCTION:
        return _out_of_production(state, kept, rules)
    if desired is None:
        words = f"label {rules.desired_label} does not say for whom it is"
        return Verdict(CONTROL_PLANE, kept, Reason.NO_ORGANIZATION, words)
    if desired not in (CONTROL_PLANE, *rules.organizations):
        words = f"label {rules.desired_label} asks for '{desired}', which is no organization"
        return Verdict(CONTROL_PLANE, kept, Reason.UNKNOWN_ORGANIZATION, words)
    if desired in (reserved, CONTROL_PLANE) or (is_vacant and not is_open(node, rules)):
        return Verdict(desired, kept)
    words = f"it is for {desired} once the pods of others have ended"
    return Verdict(CONTROL_PLANE, kept, Reason.PENDING, words)


def is_open(node: Node, rules: Rules) -> bool:
    """Tell whether users' pods may come: to a new node any, else those that select its label.

    An organization that has left the rules may have pods still.
    """
    return node.labels.get(rules.reserved_label) not in (CONTROL_PLANE, *STEPS)


def unsteady(desired: str) -> Verdict:
    """Return the verdict on a node that is given to and fro, to be judged when it stays quiet.

    ``desired`` is what its label should say, "" leaves it.
    """
    words = "its labels or taints change to and fro; it is held until they have been quiet"
    return Verdict(SAFE, desired, Reason.UNSTEADY, words)


def _out_of_production(state: str | None, kept: str, rules: Rules) -> Verdict:
    if state is None:
        words = f"it has no label {rules.state_label}"
        return Verdict(SAFE, kept, Reason.NO_STATE, words)
    if state not in STEPS:
        words = f"label {rules.state_label} is '{state}', which is no state"
        return Verdict(SAFE, kept, Reason.UNKNOWN_STATE, words)
    return Verdict(state, kept)


def amended(node: Node, verdict: Verdict, rules: Rules) -> dict[str, Any] | None:
    """Return the merge patch that makes the node what the verdict says; None: it is so already.

    The patch holds for this version of the node only. Taints and labels that are not the rules'
    stay as they are.
    """
    labels = {rules.reserved_label: verdict.reserved}
    if verdict.desired:
        labels[rules.desired_label] = verdict.desired
    if INSTANCE_TYPE in node.labels:
        labels[TYPE] = node.labels[INSTANCE_TYPE]
    changed = {key: value for key, value in labels.items() if node.labels.get(key) != value}
    metadata: dict[str, Any] = {"labels": changed} if changed else {}
    if verdict.told != node.reason:
        metadata["annotations"] = {REASON: verdict.told or None}
    before = node.spec.taints or []
    after = _taints(before, is_gpu=_is_gpu(node, rules), reserved=verdict.reserved, rules=rules)
    patch: dict[str, Any] = {"spec": {"taints": after}} if after != before else {}
    if not metadata and not patch:
        return None
    return {**patch, "metadata": {**metadata, "resourceVersion": node.metadata.resource_version}}


def is_of_reservation(node: Node, patch: dict[str, Any], rules: Rules) -> bool:
    """Tell whether a patch changes for whom the node is, and not only what else is said of it."""
    taints = patch.get("spec", {}).get("taints", ())
    own = [one for one in taints if one["key"] == rules.reserved_label]
    labels = patch["metadata"].get("labels", {})
    return rules.reserved_label in labels or any(one not in (node.spec.taints or ()) for one in own)


def _taints(before: list[Taint], *, is_gpu: bool, reserved: str, rules: Rules) -> list[Taint]:
    """Return the taints of a node: others' as they are, and the rules' own, each once."""
    own = (
        _taint(rules.reserved_label, hashed(reserved), "NoSchedule"),
        _taint(rules.gpu_taint, "true", "PreferNoSchedule")
        if is_gpu
        else _taint(rules.cpu_taint, "", "NoSchedule"),
    )
    managed = {
        (rules.reserved_label, "NoSchedule"),
        (rules.gpu_taint, "PreferNoSchedule"),
        (rules.cpu_taint, "NoSchedule"),
    }
    after = [*(one for one in before if (one.get("key"), one.get("effect")) not in managed), *own]
    is_so = len(before) == len(after) and all(one in before for one in after)
    return before if is_so else after  # their order means nothing


def _taint(key: str, value: str, effect: str) -> Taint:
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def hashed(reserved: str) -> str:
    """Return the value of a reservation's taint."""
    return hashlib.sha256(reserved.encode()).hexdigest()[:16]


def _is_gpu(node: Node, rules: Rules) -> bool:
    called = node.labels.get(rules.class_label)
    if called in (_GPU, _CPU):
        return called == _GPU
    capacity = node.status.capacity or {}
    return any(str(capacity.get(one, "0")) != "0" for one in rules.gpu_resources)
