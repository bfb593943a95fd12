"""Whether a Binding, by any scheduler, may go through: the admission guard's decision.

In: the cluster as it is known, a Binding, the time. Out: a ``GuardDecision``. Called by
``shell.serve.guard``. A binding is denied only if it is known to do harm: the node would be
overcommitted in a resource that the pod asks for, or we are binding the pod to another node. If
pod or node is unknown, the binding is not judged and goes through.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED, UNDER_WAY
from quorate.core.cluster.nodes.encoding import PODS, PodClass
from quorate.core.model import GangKey, HostPort, policy
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    BindingAdmitted,
    Change,
    PodChanged,
    PodGone,
)
from quorate.core.model.quantity import format_amount

_SETTLED = SETTLED | {Where.ENDED, Where.REFUSED, Where.TERMINATING}
"""States in which a binding has no effect: the API server refuses it, or it takes no room."""
_COUNTED = _SETTLED | UNDER_WAY
"""States in which a pod is counted on its node already, or never will be."""


class GuardAnswer(StrEnum):
    """The verdict on a binding; its value is a label of the metric."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNJUDGED = "unjudged"
    """Let through, because too little is known."""


class GuardDecision(NamedTuple):
    """An answer, and the message that a denied scheduler reads."""

    answer: GuardAnswer
    message: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the binding goes through."""
        return self.answer is not GuardAnswer.DENIED


class Binding(NamedTuple):
    """The fields of a Binding. ``uid`` may be empty: not every scheduler sets it."""

    namespace: str
    name: str
    uid: str
    node: str


_ALLOWED = GuardDecision(GuardAnswer.ALLOWED)
UNJUDGED = GuardDecision(GuardAnswer.UNJUDGED)


def may_bind(
    cluster: Cluster, entry: PodEntry, node: str, admitted: Iterable[PodEntry] = ()
) -> GuardDecision:
    """Judge a binding of ``entry`` to ``node``; ``admitted`` are pods with allowed bindings there.

    Room is judged as the kubelet does before it runs a pod: only in resources that the pod asks for
    and the node lists. A bind of ours was counted on its node when it was planned; it is judged
    too, because other pods may have taken the room since.
    """
    if entry.where in _SETTLED:
        return _ALLOWED
    if entry.where in UNDER_WAY and entry.node != node:
        by = _words(entry.gang.key) if entry.gang is not None else "quorate"
        return GuardDecision(
            GuardAnswer.DENIED, f"pod {_name(entry)} is being bound to node {entry.node} by {by}"
        )
    row = cluster.nodes.rows.get(node)
    if row is None:
        return UNJUDGED
    others = [one.pod_class for one in admitted]
    is_counted = entry.row == row
    free = _free(cluster, row, entry.pod_class if is_counted else None, others)
    lacks = [
        (column, amount, free[column])
        for column, amount in entry.pod_class.demands
        if column in free and free[column] < amount
    ]
    if lacks:
        return GuardDecision(GuardAnswer.DENIED, _no_room(cluster, entry, node, lacks))
    if not is_counted:
        taken = _taken_port(cluster, row, entry.pod_class, others)
        if taken is not None:
            words = f"host port {taken.port} is taken{_being_bound(cluster, node)}"
            return GuardDecision(
                GuardAnswer.DENIED, f"node {node} cannot take pod {_name(entry)}: {words}"
            )
    return _ALLOWED


def _free(
    cluster: Cluster, row: int, own: PodClass | None, others: list[PodClass]
) -> dict[int, int]:
    """Return the free amounts of the node at ``row``, by column of the resources that it lists.

    All that holds room on a node is summed here, and only here: what the cluster counts (bound
    pods, our binds under way, allowed bindings that it knows of) and bindings allowed since then.
    ``own`` is what the cluster counts of the pod itself.
    """
    table = cluster.nodes
    node = table.nodes[row]
    assert node is not None, f"row {row} holds no node"
    free = {}
    for name, amount in node.allocatable:
        if not amount and name in cluster.devices.backed:
            continue  # devices back this resource
        column = table.resources.columns[name]
        free[column] = int(table.free[row, column])
    for pod_class in others:
        for column, amount in pod_class.demands:
            if column in free:
                free[column] -= amount
    for column, amount in own.demands if own is not None else ():
        if column in free:
            free[column] += amount
    return free


def _taken_port(
    cluster: Cluster, row: int, pod_class: PodClass, others: list[PodClass]
) -> HostPort | None:
    """Return the first host port of the class that is taken on the node."""
    held = [port for other in others for port in other.spec.host_ports]
    for port in pod_class.spec.host_ports:
        if cluster.nodes.has_port(row, port) or any(map(port.conflicts, held)):
            return port
    return None


def _no_room(
    cluster: Cluster, entry: PodEntry, node: str, lacks: list[tuple[int, int, int]]
) -> str:
    names = cluster.resources.names
    words = [
        f"{format_amount(names[column], amount)} {names[column]}, "
        f"and {format_amount(names[column], max(0, free))} is free"
        if column != PODS
        else "another pod, and it may hold no more"
        for column, amount, free in lacks
    ]
    return (
        f"node {node} has no room for pod {_name(entry)}: it asks for {'; '.join(words)}"
        f"{_being_bound(cluster, node)}"
    )


def _being_bound(cluster: Cluster, node: str) -> str:
    """Return, as text, which gangs have binds under way to the node."""
    keys = {
        entry.gang.key
        for entry in cluster.pods_on(node)
        if entry.where is Where.ASSUMED and entry.gang is not None
    }
    if not keys:
        return ""
    shown = [_words(key) for key in sorted(keys)[: policy.GANGS_NAMED_MAX]]
    more = f" and {len(keys) - len(shown)} more" if len(keys) > len(shown) else ""
    return f"; being bound there: {', '.join(shown)}{more}"


def _words(key: GangKey) -> str:
    return f"pod {key}" if key.is_single else f"gang {key}"


def _name(entry: PodEntry) -> str:
    return f"{entry.pod.namespace}/{entry.pod.name}"


class Guard:
    """Judges bindings, and counts allowed ones until the watch shows them.

    The cluster counts an allowed pod of another scheduler, so that no plan takes its room:
    ``take_changes`` returns the changes for it. Until the cluster has them, the guard counts.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._changes: list[BindingAdmitted] = []
        self._uids: dict[str, dict[str, str]] = {}
        """Uids by namespace and name, for bindings without a uid."""
        self._until_s: dict[str, float] = {}
        """By uid, the oldest first: the time when an allowed binding stops counting, in seconds."""
        self._node_of: dict[str, str] = {}
        self._going_to: dict[str, dict[str, None]] = {}
        """Uids by node: the inverse of ``_node_of``."""

    def __len__(self) -> int:
        """Return the number of allowed bindings that still count."""
        return len(self._node_of)

    def observe(self, changes: Iterable[Change]) -> None:
        """Learn the names of pods. Call it before the cluster gets the same changes."""
        for change in changes:
            if isinstance(change, PodChanged):
                pod = change.pod
                self._uids.setdefault(pod.namespace, {})[pod.name] = pod.uid
            elif isinstance(change, PodGone) or (
                isinstance(change, BindFailed) and change.failure is BindFailure.GONE
            ):
                self._forget_name(change.uid)

    def judge(self, binding: Binding, now_s: float, *, dry_run: bool = False) -> GuardDecision:
        """Judge a binding, and count it from now on if it goes through.

        ``now_s`` is seconds of a monotonic clock. With ``dry_run`` nothing is counted.
        """
        uid = binding.uid or self._uids.get(binding.namespace, {}).get(binding.name, "")
        entry = self._cluster.pods.get(uid)
        if entry is None or not binding.node:
            return UNJUDGED
        pod = entry.pod
        if (pod.namespace, pod.name) != (binding.namespace, binding.name):
            return UNJUDGED  # the API server refuses it: the uid is another pod's
        decision = may_bind(self._cluster, entry, binding.node, self._going(binding.node, uid))
        if decision.allowed and not dry_run and entry.where not in _COUNTED:
            self._admit(uid, binding.node, now_s)
        return decision

    def expire(self, now_s: float) -> None:
        """Stop counting allowed bindings that the watch did not show in time."""
        while self._until_s:
            uid = next(iter(self._until_s))
            if self._until_s[uid] > now_s:
                return
            self._lapse(uid)

    def take_changes(self) -> list[BindingAdmitted]:
        """Remove and return the changes that the cluster has to observe."""
        taken, self._changes = self._changes, []
        return taken

    def _going(self, node: str, asking: str) -> list[PodEntry]:
        """Return pods with allowed bindings to ``node`` that the cluster does not count there."""
        pods = self._cluster.pods
        entries = [pods[uid] for uid in self._going_to.get(node, ()) if uid in pods]
        return [
            entry
            for entry in entries
            if entry.where not in _COUNTED and entry.node != node and entry.pod.uid != asking
        ]

    def _admit(self, uid: str, node: str, now_s: float) -> None:
        self._drop(uid)
        if len(self._node_of) >= policy.ADMITTED_MAX:
            self._lapse(next(iter(self._until_s)))
        self._until_s[uid], self._node_of[uid] = now_s + policy.ADMITTED_S, node
        self._going_to.setdefault(node, {})[uid] = None
        self._changes.append(BindingAdmitted(uid, node))

    def _lapse(self, uid: str) -> None:
        self._drop(uid)
        entry = self._cluster.pods.get(uid)
        if entry is not None and entry.where is Where.FOREIGN:
            self._changes.append(BindingAdmitted(uid, ""))

    def _drop(self, uid: str) -> None:
        """Drop a binding, if it counts."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        del self._until_s[uid]
        del self._going_to[node][uid]
        if not self._going_to[node]:
            del self._going_to[node]

    def _forget_name(self, uid: str) -> None:
        entry = self._cluster.pods.get(uid)
        if entry is None:
            return
        names = self._uids.get(entry.pod.namespace, {})
        if names.get(entry.pod.name) == uid:  # else a new pod has this name
            del names[entry.pod.name]
            if not names:
                del self._uids[entry.pod.namespace]
