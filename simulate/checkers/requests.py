"""The checkers that look at every plan, every request and every write of a replica.

In: plans, requests, and the states in ``history``. Out: violations. A plan is judged by the events
that its replica had received by then; a write by the state when it arrives, except for changes that
the replica could not know in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from quorate.core.model.plan import Bind, GangBinds, Plan
from quorate.core.model.policy import Policy
from quorate.shell.kube.errors import ApiError, ServerError, Unreachable
from simulate.checkers.history import History
from simulate.checkers.records import (
    NEVER,
    POD_GROUP_PATHS,
    PODS_PATH,
    Amounts,
    GangTruth,
    PodTruth,
)
from simulate.checkers.violations import Decision, Violation
from simulate.cluster.network import Link
from simulate.cluster.server import Request

_NODES = "/api/v1/nodes"
_RECOVERY_S = Policy().recovery_s
_PARTIAL_S_MAX = 5.0
"""Seconds in addition to the time of an attempt."""
_PARTIAL_S_MAX_UNCLEAR = 20.0
"""The same while an answer or an eviction is pending, since requests may fail many times."""


class Checks:
    """All checkers of one run."""

    def __init__(self, history: History, now_s: Callable[[], float]) -> None:
        self._history = history
        self._now_s = now_s
        self.violations: list[Violation] = []
        self.made: Counter[str] = Counter()
        self.on_violation: Callable[[], None] = lambda: None
        self._decisions: dict[tuple[str, str], Decision] = {}
        self._newest_min: dict[tuple[str, str], int | None] = {}
        """By replica and gang: min as the replica knew it at its newest plan."""
        self._doubtful: dict[tuple[str, str], tuple[str, str]] = {}
        """By replica and pod name: uid and node of a sent bind without a clear answer."""
        self._confirmed: set[tuple[str, str]] = set()
        self._evicted: set[str] = set()
        self._knew: dict[str, dict[str, int]] = {}
        """By replica: the last revision it had received, by path, when it last decided."""
        self._sent_by: dict[tuple[str, str], int] = {}
        """Up to which revision of pods the sender of a bind had decided, by replica and uid."""
        self._sent_min: dict[tuple[str, str], int | None] = {}
        """Min as the sender of a bind knew it then, by replica and uid: it asks once more."""
        self._late: dict[tuple[str, str], int] = {}
        """The same of tries that were answered with an error before they arrived."""
        self._renewing: dict[str, dict[str, int]] = {}
        """The same, when it sent the renewal of its Lease that is under way."""
        history.on_bound.append(self._on_bound)
        history.goes_on = self._goes_on

    def check(self, promise: str, holds: bool, text: Callable[[], str]) -> None:
        """Count a check, and note a violation when the promise does not hold."""
        self.made[promise] += 1
        if not holds:
            self.violate(promise, text())

    def violate(self, promise: str, text: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(self._now_s(), promise, text))
        self.on_violation()

    # Plans

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Check a plan that a replica is about to carry out."""
        told = link.told.get(PODS_PATH, 0)
        self._knew[link.name] = dict(link.told)
        for gang in plan.gangs:
            first = self._history.pods.get(gang.binds[0].uid)
            truth = self._history.gangs.get(first.gang) if first is not None else None
            knows = self._knows(link, truth, told) if truth is not None else told
            may_go_on = truth is not None and self._may_go_on(link, truth, told)
            for bind in gang.binds:
                self._check_pod(link, bind, told)
                self._check_node(link, bind)
                self._decisions[link.name, bind.uid] = Decision(
                    bind.uid,
                    bind.node,
                    told,
                    knows,
                    link.told.get(_NODES, 0),
                    self._min_told(link, bind.uid),
                    self._gang_of(gang),
                    may_go_on,
                )
            if first is not None:
                self._newest_min[link.name, first.gang] = self._min_told(link, first.uid)
                if truth is not None and not truth.is_unclear(told):
                    self._check_quorum(link, gang, first, truth, told, knows)
        for eviction in plan.evictions:
            pod = self._history.pods.get(eviction.uid)
            truth = self._history.gangs.get(pod.gang) if pod is not None else None
            if truth is not None:
                self._evicted.add(truth.name)
            if truth is None or truth.is_unclear(told):
                continue
            if truth.can_be_known_by(link.name, told):
                self.check(
                    "a started gang is never torn down",
                    not truth.has_started_by(told),
                    lambda t=truth, e=eviction: (
                        f"{link.name} evicts {e.name} of {t.name}, {t.state}"
                    ),  # type: ignore[misc]
                )

    def _gang_of(self, planned: GangBinds) -> str:
        """Return the gang that binds are for: its scheduler may not know where pods are now."""
        if planned.key.is_single:
            pod = self._history.pods.get(planned.binds[0].uid)
            return pod.gang if pod is not None else ""
        return self._history.of_key(planned.key)

    def _min_told(self, link: Link, uid: str) -> int | None:
        """Return the min of a pod's gang as a replica knows it."""
        pod = self._history.pods.get(uid)
        gang = self._history.gangs.get(pod.gang) if pod is not None else None
        if gang is None:
            return None
        path = POD_GROUP_PATHS.get(gang.dialect, PODS_PATH)
        return gang.min_at(link.told.get(path, 0))

    def _may_go_on(self, link: Link, gang: GangTruth, told: int) -> bool:
        """Whether a replica may know a member of the gang that is alive, or is being bound."""
        return any(
            told < min(one.terminating, one.finished, one.gone)
            and (one.bound <= told or (link.name, one.uid) in self._decisions)
            for one in gang.pods.values()
        )

    def _goes_on(self, pod: PodTruth, others: list[PodTruth]) -> bool:
        """Whether, as far as the pod's scheduler knew, others of its life were alive."""
        decision = self._decisions.get((pod.bound_by, pod.uid))
        if decision is None:
            return False
        return decision.may_go_on or any(one.bound > decision.told for one in others)

    def _check_pod(self, link: Link, bind: Bind, told: int) -> None:
        pod = self._history.pods.get(bind.uid)
        known = pod is not None and pod.created <= told
        wrong = ""
        if pod is None or not known:
            wrong = "which it was never told of"
        elif pod.terminating <= told or pod.gone <= told:
            wrong = "which it knew to be going"
        elif pod.ungated > told:
            wrong = "which has scheduling gates"
        elif pod.bound <= told or (link.name, bind.uid) in self._confirmed:
            wrong = f"which it knew to be on {pod.node}"
        self.check(
            "only pods that wait are placed",
            not wrong,
            lambda: f"{link.name} places {bind.name} on {bind.node}, {wrong}",
        )

    def _check_node(self, link: Link, bind: Bind) -> None:
        truth = self._history.nodes.get(bind.node)
        told, pod = link.told.get(_NODES, 0), self._history.pods.get(bind.uid)
        version = truth.version_at(told) if truth else None
        self.check(
            "only nodes that take pods are used",
            version is not None and version.amounts is not None and not version.cordoned,
            lambda: f"{link.name} places {bind.name} on {bind.node}, which is gone or cordoned",
        )
        self.check(
            "only nodes that suit a pod are used",
            version is None or pod is None or version.suits(pod),
            lambda: f"{link.name} places {bind.name} on {bind.node}: {version}",
        )

    def _check_quorum(
        self, link: Link, gang: GangBinds, first: PodTruth, truth: GangTruth, told: int, knows: int
    ) -> None:
        if truth.quorate_since != NEVER or truth.has_started_by(knows):
            return
        if first.moved and self._history.of_key(gang.key) != truth.name:
            return  # it knows the pod in its earlier gang only
        minimum = self._min_told(link, gang.binds[0].uid)
        if minimum is None and first.moved and truth.dialect not in POD_GROUP_PATHS:
            return  # its own pods have not come; min is what the moved ones carry
        placed = {bind.uid for bind in gang.binds}
        counted = [pod for pod in truth.pods.values() if self._counts(link, pod, told, placed)]
        self.check(
            "no gang starts below its min",
            minimum is not None and len(counted) >= minimum,
            lambda: f"{link.name} starts {truth.name} with {len(counted)} of {minimum} members",
        )

    def _knows(self, link: Link, gang: GangTruth, told: int) -> int:
        """Return the revision by which a replica knows a gang: from its watch, or from answers.

        What it bound counts as bound from the answer on, until its watch says that the pod is gone.
        """
        answered = (
            pod.bound
            for pod in gang.pods.values()
            if pod.bound > told and (link.name, pod.uid) in self._confirmed
        )
        return max(answered, default=told)

    def _counts(self, link: Link, pod: PodTruth, told: int, placed: set[str]) -> bool:
        """Whether a replica may count a pod: placed, under way by itself, or bound."""
        if pod.gone <= told or pod.created > told:
            return False
        decision = self._decisions.get((link.name, pod.uid))
        under_way = decision is not None and decision.gang == pod.gang
        return pod.uid in placed or under_way or pod.bound <= told

    # Requests

    def on_sent(self, link: Link, request: Request, blow: str) -> None:
        """A replica sends a request now."""
        if request.is_lease and request.method == "PUT":
            self._renewing[link.name] = self._knew.get(link.name, {})
        if not (request.is_bind or request.is_eviction):
            return
        holder = self._history.lease_holder
        self.check(
            "only the holder of the lease binds and evicts",
            holder == link.name,
            lambda: f"{link.name} sends {request.path}, and {holder or 'nobody'} leads",
        )
        if request.is_bind:
            self._check_binding(link, request, blow)

    def _check_binding(self, link: Link, request: Request, blow: str) -> None:
        body: dict[str, Any] = msgspec.json.decode(request.body)
        uid, node = str(body["metadata"].get("uid", "")), str(body["target"]["name"])
        name = str(body["metadata"]["name"])
        decision = self._decisions.get((link.name, uid))
        self.check(
            "each bind was decided on and names its pod's uid",
            decision is not None and decision.node == node,
            lambda: f"{link.name} binds {name} ({uid or 'no uid'}) to {node} without a plan",
        )
        self._note_try(link, uid, blow)
        doubtful = self._doubtful.get((link.name, name), (uid, node))
        self.check(
            "a lost answer is looked up before the pod goes elsewhere",
            doubtful[0] != uid or doubtful[1] == node,
            lambda: f"{link.name} binds {name} to {node}; that to {doubtful[1]} may have happened",
        )

    def _note_try(self, link: Link, uid: str, blow: str) -> None:
        """Remember what the sender of a bind knew; of a try that arrives late, for good."""
        if blow.startswith(("refused", "dropped")):
            return
        knew, place = self._knew.get(link.name, {}).get(PODS_PATH, 0), (link.name, uid)
        self._sent_by[place] = min(knew, self._late.get(place, knew))
        self._sent_min[place] = self._min_told(link, uid)
        if blow.startswith("late"):
            self._late[place] = self._sent_by[place]

    def on_answered(self, link: Link, request: Request, error: ApiError | None) -> None:
        """A replica has its answer."""
        if request.is_lease and request.method == "PUT" and error is None:
            told = self._renewing[link.name]
            of_pods = told.get(PODS_PATH, 0)
            for gang in self._history.gangs.values():
                if gang.is_started_by(told) and gang.can_be_known_by(link.name, of_pods):
                    gang.is_on_record = True
            return
        name = request.path.split("/")[6] if request.path.count("/") >= 6 else ""
        if request.is_bind:
            body = msgspec.json.decode(request.body)
            node, uid = body["target"]["name"], body["metadata"].get("uid", "")
            if isinstance(error, Unreachable | ServerError):
                self._doubtful[link.name, name] = uid, node
            elif error is None:
                self._confirmed.add((link.name, uid))
                self._doubtful.pop((link.name, name), None)
        elif request.method == "GET" and name and (error is None or error.status == 404):
            self._doubtful.pop((link.name, name), None)

    # Writes

    def _on_bound(self, pod: PodTruth) -> None:
        """A pod has its node now."""
        decision = self._decisions.get((pod.bound_by, pod.uid))
        if not pod.bound_by.startswith("replica"):
            return
        self.check(
            "only pods that were decided on are bound",
            decision is not None,
            lambda: f"{pod.bound_by} bound {pod.name}, of which it knew nothing",
        )
        if decision is None:
            return
        self._check_room(pod, decision)
        gang, planned = map(self._history.gangs.get, (pod.gang, decision.gang))
        if planned is not None and planned is not gang:
            planned.tampered = True  # its scheduler counts the pod until it is told
        if gang is None:
            return
        # It has started if it has all that is needed, or all that its scheduler could know to be.
        told = self._sent_by.get((pod.bound_by, pod.uid), 0)
        members = gang.bound + gang.lost_unheard(pod, told) * pod.marked
        # What bears no mark makes it started only by min as it is: a newer plan may know another.
        newest = self._newest_min.get((pod.bound_by, pod.gang), decision.minimum)
        sent = self._sent_min.get((pod.bound_by, pod.uid))
        minima = (decision.minimum, sent) if pod.marked else (newest,)
        has_quorum = any(one is not None and members >= one for one in minima)
        was_known = gang.has_started_by(decision.told) or gang.has_started_by(decision.knows)
        had_started = gang.quorate_since <= pod.bound or was_known
        self.check(
            "only a quorate gang is marked as started",
            has_quorum or had_started or not pod.marked or gang.is_unclear(decision.told),
            lambda: f"{pod.bound_by} marks {pod.name} of {gang.name}, {gang.state}",
        )
        if pod.marked and not (has_quorum or had_started):
            gang.tampered = True  # a successor believes the mark of one who could not know
        goes_on = decision.may_go_on and was_known
        if has_quorum or goes_on:
            gang.go_on(pod.bound, pod.bound_by, decision.told if goes_on else NEVER)

    def _check_room(self, pod: PodTruth, decision: Decision) -> None:
        """Sum the pods on the node, except those that the replica could not know in time."""
        known = [
            other
            for other in self._history.on_node.get(pod.node, {}).values()
            if other.holds_room
            and not other.bound_late
            and (other.bound <= decision.told or other.bound_by == pod.bound_by)
        ]
        met = [
            other.name
            for other in known
            if other.gang == pod.gang and other is not pod and not other.moved
        ]
        self.check(
            "members that stay apart do not meet",
            pod.bound_late or not pod.apart or not met,
            lambda: f"{pod.bound_by} bound {pod.name} to {pod.node}, beside {met}",
        )
        used: Amounts = {}
        for other in known:
            for name, amount in other.wants.items():
                used[name] = used.get(name, 0) + amount
        truth = self._history.nodes.get(pod.node)
        versions = truth.versions if truth else []
        most: Amounts = {}  # since the decision; a node may be recreated, smaller
        for index, version in enumerate(versions):
            until = versions[index + 1].since if index + 1 < len(versions) else NEVER
            if version.amounts is not None and until > decision.told_nodes:
                for name, amount in version.amounts.items():
                    most[name] = max(most.get(name, 0), amount)
        over = [n for n, amount in used.items() if n in pod.wants and amount > most.get(n, 0)]
        self.check(
            "no node is filled over its allocatable",
            pod.bound_late or not over,
            lambda: f"{pod.bound_by} bound {pod.name} to {pod.node}: {used} of {most}",
        )

    # Time

    def on_tick(self, passed_s: float, leader: str) -> None:
        """Some time has passed; ``leader`` was able to act all the while, if there is one."""
        for gang in self._history.gangs.values():
            if not gang.is_partial or gang.tampered:
                gang.partial_s, gang.partial_under, gang.was_left_so = 0.0, leader, False
                continue
            if not leader:
                continue
            if gang.partial_under != leader:
                gang.was_left_so = bool(gang.partial_under)
                gang.partial_s, gang.partial_under = 0.0, leader
            if not gang.is_going:
                gang.partial_s += passed_s
            unclear = gang.name in self._evicted or any(
                (leader, pod.name) in self._doubtful for pod in gang.members()
            )
            more_s = _PARTIAL_S_MAX_UNCLEAR if unclear else _PARTIAL_S_MAX
            own_s = _RECOVERY_S if gang.was_left_so else gang.timeout_s
            limit_s = own_s + more_s
            self.check(
                "no gang stays bound in part",
                gang.partial_s <= limit_s,
                lambda g=gang, s=limit_s: f"{g.name} for more than {s:g} s: {g.state}",  # type: ignore[misc]
            )
        if not any(gang.is_partial for gang in self._history.gangs.values()):
            self._evicted.clear()
