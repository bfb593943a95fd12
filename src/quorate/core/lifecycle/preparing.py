"""Prepares claims before binds: waits until all volumes of a gang are bound or the attempt fails.

In: plans with claims to prepare, then news of claims. Out: the gang's binds once every claim is
bound, or what to undo. Called by ``applying`` and ``advancing``. No member is bound before all
claims of all members are bound, so a claim that fails leaves no gang partly bound.
Source of the rules: kube-scheduler 1.36's VolumeBinding (Reserve, PreBind).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.core.check.verify import verify_gang
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import Attempt, GangEntry, PodEntry, Where, place_of
from quorate.core.cluster.gangs.pods import UNDER_WAY
from quorate.core.cluster.storage.volume_needs import is_kept_for
from quorate.core.model import GangKey
from quorate.core.model.changes import BindFailed, BindFailure
from quorate.core.model.plan import Bind, GangBinds, Prepare, Undo
from quorate.core.model.storage import Claim, ClaimKey


@dataclass(slots=True)
class _Preparing:
    """One attempt whose claims are not all bound yet."""

    attempt: Attempt
    plan: GangBinds
    seen: set[ClaimKey] = field(default_factory=set)
    """Claims on which our write was seen. If it disappears later, provisioning has failed."""
    let_go: set[str] = field(default_factory=set)
    """Pods, by uid, that are not of this attempt any more. Another gang may plan them meanwhile."""

    @property
    def prepared(self) -> list[Prepare]:
        return [one for bind in self.plan.binds for one in bind.prepare]


class Preparations:
    """The attempts whose claims are being bound."""

    def __init__(self) -> None:
        self._open: dict[GangKey, _Preparing] = {}

    def begin(self, gang: GangEntry, plan: GangBinds) -> None:
        """Wait for the claims of a plan whose writes are about to be sent."""
        attempt = gang.lifecycle.attempt
        assert attempt is not None, "it was opened with the plan"
        seen = {one.key for bind in plan.binds for one in bind.prepare if one.written}
        self._open[gang.key] = _Preparing(attempt, plan, seen)

    def holds(self, gang: GangEntry) -> bool:
        """Whether the gang waits for its claims to be bound, or for an undo to finish."""
        return gang.key in self._open or gang.lifecycle.is_undoing

    def plans(self) -> list[GangBinds]:
        """Return the plans whose claims are being bound."""
        return [one.plan for one in self._open.values()]

    def open_keys(self) -> list[GangKey]:
        """Return the gangs whose claims are being bound."""
        return list(self._open)

    def step(
        self, key: GangKey, cluster: Cluster, now_s: float
    ) -> tuple[list[GangBinds], list[Undo]]:
        """Return a gang's binds once all its claims are bound, or what to undo once that failed.

        Both are empty while it waits. KeyError if the gang's claims are not being bound.
        """
        one, gang = self._open[key], cluster.gangs.get(key)
        _let_go(one, cluster)
        if gang is None or gang.lifecycle.attempt is not one.attempt:
            return [], self._end(key, gang, cluster)
        waiting, failed = _look(one, cluster)
        binds = _alive(one, cluster)
        if not waiting and not failed and _enough(gang, len(binds)):
            plan = _plan(one, gang, binds, now_s)
            problems = verify_gang(plan, cluster)
            if not problems:
                del self._open[key]
                return [plan], []
            failed = {"": f"{problems[0]}: this changed while claims were being bound"}
        if not failed and not _enough(gang, len(binds)):
            who = "members" if gang.quorum_is_known else "the object that names min"
            failed = {"": f"{who} went while claims were being bound"}
        if not failed and now_s >= one.attempt.deadline_s:
            failed = waiting
        if not failed:
            return [], []
        gang.memory.avoid_if_possible = frozenset(node for node in failed if node)
        message = next(iter(failed.values()))
        for bind in binds:
            cluster.apply(BindFailed(bind.uid, bind.node, BindFailure.UNPREPARED, message))
        return [], self._end(key, gang, cluster)

    def _end(self, key: GangKey, gang: GangEntry | None, cluster: Cluster) -> list[Undo]:
        """End a preparation without binds; return what to undo."""
        one, claims = self._open[key], cluster.storage.claims
        left = tuple(
            prepare
            for prepare in one.prepared
            if (claim := claims.get(prepare.key)) is not None and not claim.is_bound
        )
        if gang is not None:
            gang.lifecycle.is_undoing = bool(left)
        del self._open[key]
        return [Undo(one.plan.key, left)] if left else []


def _look(one: _Preparing, cluster: Cluster) -> tuple[dict[str, str], dict[str, str]]:
    """Return messages by node: why claims are not bound yet, and why they never will be."""
    waiting: dict[str, str] = {}
    failed: dict[str, str] = dict(one.attempt.refusals)
    storage = cluster.storage
    for prepare in one.prepared:
        claim = storage.claims.get(prepare.key)
        node = prepare.node
        if claim is None or claim.uid != prepare.uid:
            failed.setdefault(node, f"claim {prepare.key} does not exist any more")
        elif not claim.is_bound:
            written = _is_written(prepare, claim, cluster)
            if written:
                one.seen.add(prepare.key)
            elif prepare.key in one.seen:
                failed.setdefault(node, _gave_up(prepare))
            if written or prepare.key not in one.seen:
                late = f"claim {prepare.key} was not bound in time, for node {node}"
                waiting.setdefault(node, late)
    if not waiting and not failed:
        failed = _misplaced(one, cluster)
    return waiting, failed


def _is_written(prepare: Prepare, claim: Claim, cluster: Cluster) -> bool:
    if not prepare.volume:
        return claim.selected_node == prepare.node
    volume = cluster.storage.volumes.get(prepare.volume)
    return volume is not None and is_kept_for(volume.claim, claim)


def _gave_up(prepare: Prepare) -> str:
    if prepare.volume:
        return f"volume {prepare.volume} is not kept for claim {prepare.key} any more"
    return f"no volume could be made for claim {prepare.key} on node {prepare.node}"


def _misplaced(one: _Preparing, cluster: Cluster) -> dict[str, str]:
    """Return a message, under "", if a bound volume does not admit its pod's node.

    There are two causes: a volume was provisioned for another node, or members share a volume that
    was provisioned for the first of them.
    """
    storage, found = cluster.storage, {}
    for bind in _alive(one, cluster):
        entry = cluster.pods[bind.uid]
        row = cluster.nodes.rows.get(bind.node)
        node = cluster.nodes.nodes[row] if row is not None else None
        labels = dict(node.labels) if node else {}
        for use in entry.pod.claims:
            claim = storage.claims.get(ClaimKey(entry.pod.namespace, use.name))
            volume = storage.volumes.get(claim.volume) if claim and claim.is_bound else None
            if volume is None or volume.affinity is None:
                continue
            if not any(term.matches(bind.node, labels) for term in volume.affinity):
                found[""] = f"volume {volume.name} of claim {use.name} is not for node {bind.node}"
    return found


def _let_go(one: _Preparing, cluster: Cluster) -> None:
    """Fail the binds of pods that no longer wait, or that have moved to another gang."""
    for bind in one.plan.binds:
        if bind.uid in one.let_go:
            continue
        entry = cluster.pods.get(bind.uid)
        if entry is None or entry.where not in UNDER_WAY:
            cluster.devices.forget(bind.uid)  # its device claims will not be written
            one.let_go.add(bind.uid)
        elif entry.node == bind.node and _has_left(entry, cluster):
            message = "it must not be bound any more"
            cluster.apply(BindFailed(bind.uid, bind.node, BindFailure.NOT_SENT, message))
            one.let_go.add(bind.uid)


def _has_left(entry: PodEntry, cluster: Cluster) -> bool:
    """Whether a pod under way no longer waits for a node, or is another gang's now."""
    place = place_of(entry.pod, None, cluster.scheduler_names)
    return entry.where is Where.RELABELLED or place is not Where.WAITING


def _alive(one: _Preparing, cluster: Cluster) -> tuple[Bind, ...]:
    """Return the binds of the pods that are still assumed on the planned nodes."""
    return tuple(
        bind
        for bind in one.plan.binds
        if bind.uid not in one.let_go
        and (entry := cluster.pods.get(bind.uid)) is not None
        and entry.where is Where.ASSUMED
        and entry.node == bind.node
    )


def _enough(gang: GangEntry, binds: int) -> bool:
    """Whether the remaining ``binds`` may be sent.

    They may not if min is no longer known, or if a started gang has no other living member: then
    its life is over.
    """
    if gang.started and not gang.alive and gang.assumed <= binds:
        return False
    return binds > 0 and not gang.need and (gang.started or gang.quorum_is_known)


def _plan(one: _Preparing, gang: GangEntry, binds: tuple[Bind, ...], now_s: float) -> GangBinds:
    """Return the plan of the remaining binds, with nothing left to prepare."""
    others = gang.stays + gang.assumed - len(binds)
    first = max(0, gang.min_count - others - 1)
    return GangBinds(
        key=gang.key,
        attempt=one.plan.attempt,
        size=gang.bound + gang.assumed,
        deadline_s=max(one.plan.deadline_s, now_s + 1.0),
        binds=tuple(Bind(b.uid, b.namespace, b.name, b.node, gives=b.gives) for b in binds),
        first=min(first, len(binds)),
        started=gang.started,
    )
