"""How far a gang has come, and what the queue remembers of it: two parts of a ``GangEntry``.

The life-cycle of a gang's attempts is written by ``state`` and ``core.lifecycle``; what the queue
remembers by ``state``, ``core.lifecycle`` and ``core.queue``. Planning reads both and writes none.
"""

from __future__ import annotations

from quorate.core.model import policy


class Attempt:
    """One try to start a gang: from its plan until all its binds are settled or time is over."""

    __slots__ = (
        "completing",
        "deadline_s",
        "id",
        "min_by_task",
        "min_count",
        "open",
        "refusals",
        "refused",
    )

    def __init__(self, attempt_id: str, deadline_s: float, min_count: int) -> None:
        self.id = attempt_id
        self.deadline_s = deadline_s
        self.min_count = min_count
        """Min of its newest plan: what counts if the object is edited or deleted meanwhile."""
        self.min_by_task: tuple[tuple[str, int], ...] = ()
        """The same of each task."""
        self.open: set[str] = set()
        """Uids whose bind has no outcome yet."""
        self.refusals: list[tuple[str, str]] = []
        """Nodes for which a write that comes before the binds was refused, and the message."""
        self.refused = False
        """Whether a kubelet refused a member since it began; that one may be gone by now."""
        self.completing: set[str] = set()
        """Uids whose binds in the newest plan make the gang quorate; they get the started mark."""


class Lifecycle:
    """How far a gang has come with being started."""

    __slots__ = (
        "attempt",
        "completed_by",
        "evicting",
        "is_undoing",
        "last_start",
        "once_quorate",
        "reopened",
        "saw_started",
        "started_by",
    )

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.once_quorate = False
        self.started_by: set[str] = set()
        """Ids of the attempts that made it quorate, while we remember them; several, when kubelets
        refused members one after the other."""
        self.last_start: Attempt | None = None
        """The newest of these: it knows min as it was then."""
        self.completed_by = ""
        """Uid of the member whose bind made it quorate, whoever sent it."""
        self.reopened = False
        """Whether kubelets refused members of the quorum, so that it has to be reached again."""
        self.saw_started = False
        """Whether a member came with the mark of a start: it may go before that is used."""
        self.evicting = 0
        """Bound members that are being evicted: they count no more."""
        self.is_undoing = False
        """Whether what was prepared for its claims is being taken back."""

    def become_quorate(self) -> None:
        """Note that the gang is quorate, and by which attempt."""
        if not self.once_quorate:
            self.once_quorate = True
            if self.attempt is not None:
                self.started_by.add(self.attempt.id)
                self.last_start = self.attempt

    def end(self) -> None:
        """Forget that the gang was ever quorate: whoever comes is a new gang."""
        self.once_quorate, self.reopened, self.saw_started = False, False, False
        self.started_by.clear()
        self.last_start = None
        self.completed_by = ""


class Aside:
    """Until when something is left alone, for a defect of ours was met with it. Epoch seconds."""

    __slots__ = ("incident", "times", "until_s")

    def __init__(self) -> None:
        self.incident = ""
        """Id of the defect; "" when there was none."""
        self.times = 0
        """Tries in a row that met one."""
        self.until_s = 0.0

    def begin(self, incident: str, now_s: float) -> None:
        """Leave it alone for a while, ever longer; after a long time without a defect, afresh."""
        if now_s > self.until_s + policy.ASIDE_S_MAX:
            self.times = 0
        self.times += 1
        self.incident, self.until_s = incident, now_s + policy.back_off_s(self.times)

    def end(self) -> None:
        """Forget the defects: it went well."""
        self.incident, self.times, self.until_s = "", 0, 0.0

    def lasts(self, now_s: float) -> bool:
        """Whether it is left alone now."""
        return now_s < self.until_s


class QueueMemory:
    """What the queue remembers of a gang between two decisions. Times are epoch seconds."""

    __slots__ = (
        "aside",
        "avoid",
        "avoid_if_possible",
        "failed",
        "failures",
        "last_failure",
        "not_before_s",
        "preemption_said",
        "refused_by",
        "unexplained",
    )

    def __init__(self) -> None:
        self.aside = Aside()
        """Whether it is tried, or left alone."""
        self.unexplained = Aside()
        """Whether it is explained, or not even that."""
        self.refused_by: list[str] = []
        """Nodes that refused a member since the last decision."""
        self.avoid: dict[str, float] = {}
        """Nodes that refused a member, and until when no other one goes there."""
        self.avoid_if_possible: frozenset[str] = frozenset()
        """Nodes for which claims could not be bound: the next attempt goes elsewhere, if it can."""
        self.failed = False
        """Whether a bind failed since the last decision."""
        self.failures = 0
        """Decisions in a row that met failed binds."""
        self.last_failure = ""
        self.not_before_s = 0.0
        """Not tried before this time: it backs off."""
        self.preemption_said = ""
        """What preemption could not do when it was last tried, in kube-scheduler's words."""

    def avoided(self, now_s: float) -> frozenset[str]:
        """Return the nodes that no member goes to now."""
        return frozenset(node for node, end_s in self.avoid.items() if end_s > now_s)
