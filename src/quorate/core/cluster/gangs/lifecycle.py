"""Two parts of a ``GangEntry``: the life-cycle of a gang, and the queue's memory of it.

``cluster.state`` and ``core.lifecycle`` write both parts as news and time pass. ``turn.applying``
writes both for a plan, and ``turn.rebuilding`` after a defect. Placing reads both.
"""

from __future__ import annotations

from quorate.core.model import policy


class Attempt:
    """One try to start a gang: from its plan until all its binds are settled or it times out."""

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
        """Min at its newest plan, in case the object is edited or deleted meanwhile."""
        self.min_by_task: tuple[tuple[str, int], ...] = ()
        """The minima of tasks at its newest plan."""
        self.open: set[str] = set()
        """Uids whose bind has no outcome yet."""
        self.refusals: list[tuple[str, str]] = []
        """Nodes for which a write that precedes the binds was refused, with the message."""
        self.refused = False
        """Whether a kubelet has refused a member since it began; the member may be gone by now."""
        self.completing: set[str] = set()
        """Uids whose binds in the newest plan complete the gang; they get the mark."""


class Lifecycle:
    """Whether a gang has started or is being started, and by which attempts."""

    __slots__ = (
        "attempt",
        "completed_by",
        "evicting",
        "is_looked_at",
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
        """Ids of the attempts that made it quorate; several if kubelets refused members between."""
        self.last_start: Attempt | None = None
        """The newest of these attempts, with min at that time."""
        self.completed_by = ""
        """Uid of the member whose bind made it quorate, whoever sent that bind."""
        self.reopened = False
        """Whether kubelets refused members of the quorum, so that min has to be reached again."""
        self.saw_started = False
        """Whether a member came with the mark; noted here, as the member may go before its use."""
        self.evicting = 0
        """The number of bound members that are being evicted."""
        self.is_looked_at = False
        """Whether it was asked which of its members are of an earlier life."""
        self.is_undoing = False
        """Whether the preparation of its claims is being undone."""

    def become_quorate(self) -> None:
        """Note that the gang is quorate, by the open attempt if there is one."""
        if not self.once_quorate:
            self.once_quorate = True
            if self.attempt is not None:
                self.started_by.add(self.attempt.id)
                self.last_start = self.attempt

    def end(self) -> None:
        """End the gang's life: members that come later form a new gang."""
        self.once_quorate, self.reopened, self.saw_started = False, False, False
        self.started_by.clear()
        self.last_start = None
        self.completed_by = ""


class SetAside:
    """Until when something is set aside after a defect of ours. Times are epoch seconds."""

    __slots__ = ("incident", "times", "until_s")

    def __init__(self) -> None:
        self.incident = ""
        """Id of the defect; "": there was none."""
        self.times = 0
        """The number of tries in a row that met a defect."""
        self.until_s = 0.0

    def begin(self, incident: str, now_s: float) -> None:
        """Set it aside, longer each time; the count restarts after a long time without a defect."""
        if now_s > self.until_s + policy.ASIDE_S_MAX:
            self.times = 0
        self.times += 1
        self.incident, self.until_s = incident, now_s + policy.back_off_s(self.times)

    def end(self) -> None:
        """Forget the defects after a try without one."""
        self.incident, self.times, self.until_s = "", 0, 0.0

    def is_active(self, now_s: float) -> bool:
        """Whether it is set aside now."""
        return now_s < self.until_s


class QueueMemory:
    """What the queue remembers of a gang between two turns. Times are epoch seconds."""

    __slots__ = (
        "aside",
        "avoid",
        "avoid_if_possible",
        "failed",
        "failures",
        "last_failure",
        "not_before_s",
        "preemption_message",
        "refused_by",
        "unexplained",
    )

    def __init__(self) -> None:
        self.aside = SetAside()
        """Until when it is not tried, after a defect in trying it."""
        self.unexplained = SetAside()
        """Until when it is not explained, after a defect in explaining it."""
        self.refused_by: list[str] = []
        """Nodes that refused a member since the last turn."""
        self.avoid: dict[str, float] = {}
        """Nodes that refused a member, and until when the gang avoids them."""
        self.avoid_if_possible: frozenset[str] = frozenset()
        """Nodes for which claims could not be bound: the next attempt prefers others."""
        self.failed = False
        """Whether a bind failed since the last turn."""
        self.failures = 0
        """The number of turns in a row with failed binds."""
        self.last_failure = ""
        self.not_before_s = 0.0
        """The end of its back-off: it is not tried before."""
        self.preemption_message = ""
        """Why preemption did not help at the last try, in kube-scheduler's words."""

    def avoided(self, now_s: float) -> frozenset[str]:
        """Return the nodes that the gang avoids now."""
        return frozenset(node for node, end_s in self.avoid.items() if end_s > now_s)
