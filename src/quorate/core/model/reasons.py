"""Why a gang is not (wholly) started: one enum, and the facts that stand behind each value.

The values are what users meet: the reason of the pod's condition, the label of the metric,
and ``reason`` in ``quorate why -o json``. They are stable names; messages are made in ``explain``.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quorate.core.model import GangKey, Owner


class Reason(StrEnum):
    """One value for each cause that a person would fix in a different way."""

    NONE = "None"
    """Nothing is in the way: every member has its node."""
    STARTING = "Starting"
    """The gang has a placement and its binds are under way."""

    NOT_ENOUGH_MEMBERS = "NotEnoughMembers"
    OWNER_MAKES_TOO_FEW = "OwnerMakesTooFew"
    MEMBERS_GATED = "MembersGated"
    OTHER_SCHEDULER = "OtherScheduler"
    """Its pods name a scheduler that is not ours, or that one has to admit it first."""
    EARLIER_RUN = "EarlierRunGoesOn"
    """Its pods are of a CronJob's next run, and an earlier run is this gang as yet."""
    GANG_OBJECT_MISSING = "PodGroupNotFound"
    GANG_OBJECT_IN_OTHER_API = "PodGroupInOtherApi"
    GANG_API_NOT_INSTALLED = "PodGroupApiNotInstalled"
    API_NOT_AVAILABLE = "ApiNotAvailable"
    """A kind of objects that it needs cannot be listed: a right is missing, or its API fails."""
    GANG_OBJECT_INVALID = "PodGroupInvalid"
    QUEUE_MISSING = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    UNKNOWN_GANG_LABEL = "UnknownGangLabel"
    GANG_NAME_INVALID = "GangNameInvalid"
    """The pod names a gang by a name that no object can have."""
    MEMBERS_DISAGREE = "MembersDisagree"
    POD_INVALID = "PodInvalid"

    CLAIM_NOT_USABLE = "ClaimNotUsable"
    AWAITS_PODS = "AwaitsOtherPods"
    """Required affinity names pods of which none is placed."""
    NO_NODE_MATCHES = "NoNodeMatches"
    REQUEST_TOO_LARGE = "RequestTooLarge"
    MIN_RESOURCES_SHORT = "MinResourcesShort"
    NOT_ENOUGH_ROOM = "NotEnoughRoom"
    ROOM_HELD = "RoomHeld"
    """There would be room, but it is reserved for replacements in other gangs."""
    BACKING_OFF = "BackingOff"
    INTERNAL_ERROR = "InternalError"
    """A defect of quorate's own: the gang is set aside for a while, and the others go on."""

    @property
    def nodes_would_help(self) -> bool:
        """Whether more nodes could start the gang.

        Only then the condition's reason is ``Unschedulable``: autoscalers add nodes on that word.
        """
        return self in _NODES_WOULD_HELP

    @property
    def holds_the_first_pod(self) -> bool:
        """Whether a client that makes no pod before its gang is admitted waits for that."""
        return self in _HOLDS_THE_FIRST_POD

    @property
    def is_misconfiguration(self) -> bool:
        """Whether somebody has to change an object before this gang can ever start."""
        return self in _MISCONFIGURATION


_NODES_WOULD_HELP = {
    Reason.NO_NODE_MATCHES,
    Reason.REQUEST_TOO_LARGE,
    Reason.MIN_RESOURCES_SHORT,
    Reason.NOT_ENOUGH_ROOM,
    Reason.ROOM_HELD,
}
_HOLDS_THE_FIRST_POD = {
    Reason.MIN_RESOURCES_SHORT,
    Reason.OTHER_SCHEDULER,
    Reason.QUEUE_MISSING,
    Reason.QUEUE_CLOSED,
}
_MISCONFIGURATION = {
    Reason.OTHER_SCHEDULER,
    Reason.OWNER_MAKES_TOO_FEW,
    Reason.GANG_OBJECT_MISSING,
    Reason.GANG_OBJECT_IN_OTHER_API,
    Reason.GANG_API_NOT_INSTALLED,
    Reason.API_NOT_AVAILABLE,
    Reason.GANG_OBJECT_INVALID,
    Reason.QUEUE_MISSING,
    Reason.UNKNOWN_GANG_LABEL,
    Reason.GANG_NAME_INVALID,
    Reason.MEMBERS_DISAGREE,
    Reason.POD_INVALID,
    Reason.NO_NODE_MATCHES,
    Reason.REQUEST_TOO_LARGE,
}


class GangState(StrEnum):
    """Where a gang stands."""

    WAITING = "Waiting"
    STARTING = "Starting"
    STARTED = "Started"


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a gang's pods. ``needed`` is min; ``exist`` leaves out gated and terminating ones.

    ``bound`` have a node (whatever their phase); ``assumed`` have one in our plan; ``waiting`` have
    none. ``running``, ``succeeded`` and ``failed`` are phases of pods that are bound, or were in an
    earlier life of the gang (``past``), unless members wait to begin another one. Of the past ones
    ``done`` count towards min: they succeeded in the run that goes on. ``unassigned`` have no node
    in the API server's eyes, whatever is under way.
    """

    needed: int
    exist: int = 0
    bound: int = 0
    assumed: int = 0
    waiting: int = 0
    gated: int = 0
    terminating: int = 0
    invalid: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    total: int = 0
    past: int = 0
    done: int = 0
    unassigned: int = 0

    @property
    def placed(self) -> int:
        """How many have a node, as any scheduler can tell from the objects alone."""
        return self.bound + self.past


class RuledOut(msgspec.Struct, frozen=True):
    """``nodes`` nodes fail the rule whose message this is (kube-scheduler's words).

    0 nodes: the pod is rejected before any node is looked at.
    """

    message: str
    nodes: int


def available(nodes: int, ruled_out: tuple[RuledOut, ...]) -> str:
    """Return kube-scheduler's message (its FitError) from the counts of its reasons."""
    reasons = sorted(
        f"{one.nodes} {one.message}" if one.nodes else one.message for one in ruled_out
    )
    why = f": {', '.join(reasons)}" if reasons else ""
    return f"0/{nodes} nodes are available{why}."


class ClosedNodes(msgspec.Struct, frozen=True):
    """``nodes`` nodes could hold such a pod, and do not take it for this reason; some of them.

    ``for_others``: they work, and are for others; or the pod lacks what would let it in.
    """

    why: str
    nodes: int
    some: tuple[str, ...] = ()
    for_others: bool = False


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """One class of pods that does not (wholly) fit: how many of ``pods`` fit, and why not more."""

    pod: str
    """Name of one pod of the class."""
    pods: int
    fit: int
    ruled_out: tuple[RuledOut, ...] = ()
    nearest_miss: str = ""
    """The node that comes closest, and what it lacks."""
    hint: str = ""
    """The object and the field that have to be made or fixed first."""
    closed: tuple[ClosedNodes, ...] = ()
    """Nodes that are out of production, about to be another's or gone, or reserved for others."""
    own_rule: str = ""
    """The rule among the gang's own members that keeps some out of nodes with room, and counts."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of why a gang stands where it stands.

    ``message`` is the one that condition, Event and command line share; ``hint`` says what a
    person can do; ``priority`` is the gang's; ``missing_class`` is the PriorityClass that its
    object names and that does not exist; ``warnings`` are true whatever the reason (two dialects on
    one pod). ``held`` says what room is reserved for replacements of lost members, and until when:
    ``held_until_s`` is that time (epoch seconds; 0: nothing is). ``order`` is what the line is
    sorted by, smaller first (``ready.order_key``); empty: the gang is not in line. ``exhausted``
    means that room was not found in a search that ended before it was complete.
    """

    key: GangKey
    state: GangState
    reason: Reason
    message: str
    members: Members
    priority: int = 0
    missing_class: str = ""
    hint: str = ""
    nodes: int = 0
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()
    held: str = ""
    held_until_s: float = 0.0
    order: tuple[float, ...] = ()
    exhausted: bool = False


class GangView(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect needs to write the status of a gang's object.

    ``admitted`` says whether its clients may make its pods (Volcano's Inqueue); ``owner`` is the
    first member's. ``scheduler_known`` is False for one without pods that may be anybody's: then no
    more is written than the first phase of an object that has none.
    """

    key: GangKey
    uid: str
    state: GangState
    members: Members
    admitted: bool
    reason: Reason
    message: str
    created_s: float
    owner: Owner | None = None
    priority: int = 0
    scheduler_known: bool = True
