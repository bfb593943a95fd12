"""One pod, and the one place in which it is. Written by ``state`` alone."""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from quorate.core.cluster.labels.label_sets import LabelSet
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey, Membership, Pod


class Where(IntEnum):
    """The one place in which a pod is."""

    WAITING = 0
    """Ours, could be placed."""
    ASSUMED = 1
    """Ours, has a node in our plan; its Binding is under way."""
    BOUND = 2
    """Has a node, whatever its phase."""
    GATED = 3
    TERMINATING = 4
    """Being deleted before it ever had a node."""
    INVALID = 5
    """Ours, but must not be placed as it is (``pod.defect`` says why)."""
    ENDED = 6
    """Finished without ever having had a node."""
    FOREIGN = 7
    """Another scheduler's, without a node; the guard may have let it through to one."""
    REFUSED = 8
    """Its node's kubelet refused it: it never ran and never will, so it counts for nothing."""
    PAST = 9
    """Bound in an earlier life of its gang, of which no member is alive: it counts for nothing."""
    RELABELLED = 10
    """Ours; its Binding for another gang is under way: it counts for nothing until that is over."""


UNDER_WAY = frozenset({Where.ASSUMED, Where.RELABELLED})
"""Where a pod waits for the outcome of a Binding of ours."""
ON_NODES = UNDER_WAY | {Where.BOUND, Where.FOREIGN, Where.PAST}
"""Where a pod keeps its node when it changes; a foreign one has one while it is on its way."""
UNDECIDED = frozenset({Where.WAITING, Where.GATED, Where.INVALID})
"""Where a pod has no node and may get one."""
SETTLED = frozenset({Where.BOUND, Where.PAST})
"""Where a pod has its node, whatever its gang has come to."""
PLACED = frozenset({Where.BOUND, Where.ASSUMED})
EXISTING = PLACED | {Where.WAITING}
"""Where a member counts towards the quorum."""


class HasAttempt(Protocol):
    """What a pod asks of its gang: whether a try to start it is under way."""

    @property
    def attempt(self) -> object | None:
        """The try that is under way."""


Gang = TypeVar("Gang", bound=HasAttempt)


class PodRecord(Generic[Gang]):
    """A pod and where it is. ``row`` is its node's row, or -1 while that node is not known.

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
        """Whether it was bound before it came to its gang, by another label: it starts nobody."""
        self.elsewhere = False
        """Whether our Binding was refused because another one had come first."""
        self.evicting = False
        self.nominated = pod.nominated
        """The node on which it is promised room: as the API says it, or as we decided since."""
        self.preempting = False
        """Whether we are deleting it to make room for another pod."""

    @property
    def is_alive(self) -> bool:
        """Whether it keeps its gang's life going: it has a node, and is not about to leave it."""
        return self.may_stay and not self.evicting

    @property
    def may_stay(self) -> bool:
        """Whether it has a node as a member of this gang, and nothing that is known ends it."""
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
        """Whether another has given it its node: then it is nobody's to evict for its gang."""
        return self.elsewhere or (bool(self.pod.node) and not self.pod.attempt)

    def note_nomination(self, pod: Pod) -> None:
        """Take what a newer version says of its node, unless it says what the last one said."""
        if pod.nominated != self.pod.nominated:
            self.nominated = pod.nominated


def key_of(pod: Pod) -> GangKey:
    """Return the gang that ``pod`` belongs to; a pod of none is a gang of one."""
    membership: Membership | None = pod.membership
    return membership.key if membership else GangKey(pod.namespace, "pod", f"{pod.name}@{pod.uid}")


def place_of(pod: Pod, entry: PodRecord[Gang] | None, ours: frozenset[str]) -> Where:
    """Decide where a pod is. A pod that has a node never loses it again.

    ``entry`` is what is known of it, if anything; ``ours`` are our scheduler names.
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
    if pod.scheduler not in ours:
        return Where.FOREIGN
    if before is Where.ASSUMED or before is Where.RELABELLED:
        return before
    if pod.terminating:
        return Where.TERMINATING
    if pod.gates:
        return Where.GATED
    return Where.INVALID if pod.defect else Where.WAITING
