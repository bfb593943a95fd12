"""One pod, and the place (``Where``) in which it is counted. Written by ``state`` alone."""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from quorate.core.cluster.labels.label_sets import LabelSet
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey, Membership, Pod


class Where(IntEnum):
    """The one place in which a pod is."""

    WAITING = 0
    """Ours, and could be placed."""
    ASSUMED = 1
    """Ours, with a node in our plan; its Binding is under way."""
    BOUND = 2
    """It has a node, whatever its phase."""
    GATED = 3
    TERMINATING = 4
    """Being deleted before it ever had a node."""
    INVALID = 5
    """Ours, but invalid: it must not be placed (``pod.defect`` says why)."""
    ENDED = 6
    """Finished without ever having had a node."""
    FOREIGN = 7
    """Another scheduler's, without a node."""
    REFUSED = 8
    """Its node's kubelet refused it. It will never run, so it does not count for its gang."""
    PAST = 9
    """Bound in an earlier life of its gang, which is over. It does not count for its gang."""
    RELABELLED = 10
    """Ours; its Binding for another gang is under way. Until that ends, it does not count."""
    NEXT_RUN = 11
    """Ours; of the next run of a CronJob, while an earlier run is the gang. It does not count."""


UNDER_WAY = frozenset({Where.ASSUMED, Where.RELABELLED})
"""Places of pods whose Binding of ours has no outcome yet."""
ON_NODES = UNDER_WAY | {Where.BOUND, Where.PAST}
"""Places in which a pod has a node."""
UNDECIDED = frozenset({Where.WAITING, Where.GATED, Where.INVALID, Where.NEXT_RUN})
"""Places of pods without a node that may get one."""
SETTLED = frozenset({Where.BOUND, Where.PAST})
"""Places of pods with a node, whatever the state of their gangs."""
PLACED = frozenset({Where.BOUND, Where.ASSUMED})
EXISTING = PLACED | {Where.WAITING}
"""Places in which a member counts toward min."""


class HasAttempt(Protocol):
    """What a pod reads of its gang: whether an attempt is open."""

    @property
    def attempt(self) -> object | None:
        """The open attempt, or None."""


Gang = TypeVar("Gang", bound=HasAttempt)


class PodRecord(Generic[Gang]):
    """A pod and its place. ``row`` is its node's row; -1: it has no node, or an unknown one.

    Used as ``gangs.PodEntry``: gangs know their pods, so pods cannot import gangs.
    """

    __slots__ = (
        "adopted",
        "elsewhere",
        "evicting",
        "gang",
        "label_set",
        "node",
        "nominated",
        "ours",
        "pod",
        "pod_class",
        "preempting",
        "row",
        "where",
    )

    def __init__(self, pod: Pod, pod_class: PodClass, label_set: LabelSet, *, ours: bool) -> None:
        self.ours = ours
        self.pod = pod
        self.pod_class = pod_class
        self.label_set = label_set
        self.gang: Gang | None = None
        self.where = Where.FOREIGN
        self.node = ""
        self.row = -1
        self.adopted = False
        """Whether it was bound before a changed label put it into its gang: it starts no gang."""
        self.elsewhere = False
        """Whether another scheduler bound it while we had it to place."""
        self.evicting = False
        self.nominated = pod.nominated
        """The node on which it is promised room, by the API or by a later decision of ours."""
        self.preempting = False
        """Whether we are deleting it to make room for another pod."""

    @property
    def is_alive(self) -> bool:
        """Whether it keeps its gang's life going: it has a node and is not about to leave it."""
        return self.may_stay and not self.evicting

    @property
    def may_stay(self) -> bool:
        """Whether it was bound for this gang and is neither finished nor terminating."""
        is_going = self.pod.finished or self.pod.terminating or self.adopted
        return self.where is Where.BOUND and not is_going

    @property
    def is_leaving(self) -> bool:
        """Whether it has a node and is being deleted or evicted."""
        return self.where is Where.BOUND and (self.evicting or self.pod.terminating)

    @property
    def may_be_preempted(self) -> bool:
        """Whether it may be a victim: not while its gang's binds are under way."""
        if self.where is Where.PAST:
            return True
        return self.where is Where.BOUND and (self.gang is None or self.gang.attempt is None)

    @property
    def is_bound_by_others(self) -> bool:
        """Whether another scheduler bound it: then it is not evicted for its gang."""
        return self.elsewhere or (bool(self.pod.node) and not self.pod.attempt)

    def note_version(self, pod: Pod) -> None:
        """Note who bound it, and the nomination if it differs from that of the last version."""
        if pod.node and not pod.attempt and self.where in UNDECIDED:
            self.elsewhere = True
        if pod.nominated != self.pod.nominated:
            self.nominated = pod.nominated


def key_of(pod: Pod) -> GangKey:
    """Return the key of the pod's gang; a pod without a gang is a gang of one."""
    membership: Membership | None = pod.membership
    return membership.key if membership else GangKey(pod.namespace, "pod", f"{pod.name}@{pod.uid}")


def place_of(pod: Pod, entry: PodRecord[Gang] | None, ours: frozenset[str]) -> Where:
    """Return the place of a pod. A pod with a node never loses it again.

    ``entry`` is the pod's entry so far, if there is one; ``ours`` are our scheduler names.
    """
    before = entry.where if entry is not None else None
    if pod.refusal:
        return Where.REFUSED
    if before is Where.PAST:
        return Where.PAST
    if pod.node or before is Where.BOUND:
        return Where.BOUND
    if pod.finished:
        return Where.ENDED
    if before is Where.ASSUMED or before is Where.RELABELLED:
        return before
    if pod.scheduler not in ours:
        return Where.FOREIGN
    if pod.terminating:
        return Where.TERMINATING
    if pod.gates:
        return Where.GATED
    waits = Where.NEXT_RUN if before is Where.NEXT_RUN else Where.WAITING
    return Where.INVALID if pod.defect else waits
