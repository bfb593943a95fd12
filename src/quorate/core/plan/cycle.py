"""One cycle: place the gangs that are ready, one after the other, each whole or not at all.

In: gangs in queue order, the cluster, the room. Out: for each gang its binds, or that it does not
fit. Called by ``scheduler.decide``; what is placed is assumed in the cluster at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from quorate.core.model import SpreadConstraint
from quorate.core.model.storage import ClaimKey
from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.gang import Demand, DoesNotFit, Placement, place_gang
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.plan import Bind, Prepare
from quorate.core.plan.room import Room
from quorate.core.plan.single import Singles
from quorate.core.policy import Policy
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry, PodEntry
from quorate.core.state.wants import Wants, is_kept_for, unbound_claims, wants_of

Members = dict[PodClass, list[PodEntry]]


def members_of(gang: GangEntry, cluster: Cluster) -> Members:
    """Return the gang's waiting members by class: by shape, labels and what volumes demand."""
    neighbours, storage = cluster.neighbours, cluster.storage
    members: Members = {}
    with_problems: list[tuple[PodEntry, Wants]] = []
    for class_id, entries in gang.waiting.items():
        base = cluster.classes.by_id[class_id]
        defaults = _defaults(base, next(iter(entries.values())), cluster)
        if neighbours.is_idle and not storage.users:
            members[base] = list(entries.values())
            continue
        for entry in entries.values():
            wants = wants_of(entry.pod, storage)
            if wants is not None and wants.problems:
                with_problems.append((entry, wants))
                continue
            matched = neighbours.matched(entry.label_set)
            pod_class = cluster.classes.matching(base, matched, defaults, wants)
            members.setdefault(pod_class, []).append(entry)
    _add_with_problems(members, with_problems, cluster)
    return members


def _add_with_problems(
    members: Members, found: list[tuple[PodEntry, Wants]], cluster: Cluster
) -> None:
    """Put pods that no node can take for a like problem into one class, named after the first."""
    first: dict[tuple[object, ...], Wants] = {}
    for entry, wants in sorted(found, key=lambda one: one[0].pod.name):
        base = entry.pod_class
        matched = cluster.neighbours.matched(entry.label_set)
        kind = base.id, matched, *((one.rule, one.kind) for one in wants.problems)
        named = first.setdefault(kind, wants)
        members.setdefault(cluster.classes.matching(base, matched, wants=named), []).append(entry)


def _defaults(base: PodClass, entry: PodEntry, cluster: Cluster) -> tuple[SpreadConstraint, ...]:
    """Return the default spread constraints; pods of a gang and shape have the same owner."""
    if base.profile.packs_gangs or base.shape.spread:
        return ()
    defaults = cluster.spread_defaults.constraints(entry.pod, base.profile)
    for one in defaults:
        cluster.neighbours.host(one.selector)
    return defaults


def demand_of(gang: GangEntry, members: Members) -> Demand:
    """Return what the waiting members ask for."""
    classes = tuple((pod_class, len(entries)) for pod_class, entries in members.items())
    return Demand(classes, gang.need)


@dataclass(slots=True)
class Cycle:
    """The state of one cycle: the room that is left, and which demands were met with no room.

    ``hopeless`` holds demands that did not fit: room only shrinks within a cycle, so another gang
    that asks for the same need not be tried.
    """

    cluster: Cluster
    policy: Policy
    masks: AttributeMasks
    room: Room
    hopeless: set[Demand] = field(default_factory=set)
    singles: Singles = field(default_factory=Singles)

    def place(self, gang: GangEntry) -> tuple[Bind, ...]:
        """Place the gang and assume it; no binds when it does not fit whole."""
        members = members_of(gang, self.cluster)
        demand = demand_of(gang, members)
        if demand in self.hopeless:
            return ()
        if gang.avoid:
            return self._place_elsewhere(gang.avoid, demand, members)
        if gang.shun:
            nodes, gang.shun = gang.shun, frozenset()
            binds = self._place_elsewhere(nodes, demand, members)
            if binds:
                return binds
        if gang.key.is_single and not next(iter(members)).profile.packs_gangs:
            return self._place_single(members, demand)
        gang.is_short = not gang.started and bool(shortage(gang, self.room, self.cluster.resources))
        if gang.is_short:
            return ()
        found = place_gang(demand, self.room, self.policy.packing, self.policy.search_steps_max)
        if isinstance(found, DoesNotFit):
            if not any(pod_class.shape.affinity for pod_class in members):
                self.hopeless.add(demand)  # else a pod placed later in this cycle could help
            return ()
        self.room = found.room
        return self._assume(members, found)

    def _place_single(self, members: Members, demand: Demand) -> tuple[Bind, ...]:
        """Place a pod of no gang where kube-scheduler would."""
        ((pod_class, (entry,)),) = members.items()
        row = self.singles.best(pod_class, self.room)
        if row is None:
            if not pod_class.shape.affinity:
                self.hopeless.add(demand)
            return ()
        rows = np.array([row])
        self.room.take_at(pod_class, rows, np.ones(1, np.int64))
        self.cluster.assume([entry], [row])
        self.room.settle()
        self.singles.changed(rows, self.room)
        return (self._bind(entry, pod_class, row, set()),)

    def _place_elsewhere(
        self, nodes: Iterable[str], demand: Demand, members: Members
    ) -> tuple[Bind, ...]:
        """Place a gang on other nodes than those where it failed before."""
        rows = self.cluster.nodes.rows
        avoided = [rows[node] for node in nodes if node in rows]
        room = self.room.copy()
        room.free[avoided] = -1  # no slot for any pod, as each takes at least one of ``pods``
        found = place_gang(demand, room, self.policy.packing, self.policy.search_steps_max)
        if isinstance(found, DoesNotFit):
            return ()
        found.room.free[avoided] = self.room.free[avoided]
        self.room = found.room
        return self._assume(members, found)

    def _assume(self, members: Members, placement: Placement) -> tuple[Bind, ...]:
        binds: list[Bind] = []
        prepared: set[ClaimKey] = set()
        for pod_class, pods in placement.pods:
            used = np.flatnonzero(pods)
            rows = np.repeat(used, pods[used]).tolist()
            entries = members[pod_class][: len(rows)]
            self.cluster.assume(entries, rows)
            self.singles.changed(used, self.room)
            for entry, row in zip(entries, rows, strict=True):
                binds.append(self._bind(entry, pod_class, row, prepared))
        self.room.settle()
        return tuple(binds)

    def _bind(
        self, entry: PodEntry, pod_class: PodClass, row: int, prepared: set[ClaimKey]
    ) -> Bind:
        pod = entry.pod
        prepare: tuple[Prepare, ...] = ()
        if pod_class.wants is not None and pod_class.wants.unbound:
            chosen = self.room.volumes.take_chosen(pod_class, row)
            prepare = self._prepare(entry, chosen, prepared)
        return Bind(pod.uid, pod.namespace, pod.name, entry.node, prepare)

    def _prepare(
        self, entry: PodEntry, chosen: tuple[str, ...], prepared: set[ClaimKey]
    ) -> tuple[Prepare, ...]:
        """Return what binds the pod's claims to the chosen volumes, or has these made (``""``)."""
        storage = self.cluster.storage
        found = []
        for claim, name in zip(unbound_claims(entry.pod, storage), chosen, strict=True):
            if claim.key in prepared:
                continue  # another member has it
            prepared.add(claim.key)
            volume = storage.volumes[name] if name else None
            found.append(
                Prepare(
                    claim.namespace,
                    claim.name,
                    claim.uid,
                    entry.node,
                    name,
                    version=volume.version if volume else "",
                    marks=volume is not None and volume.claim is None,
                    written=is_kept_for(volume.claim, claim)
                    if volume
                    else claim.selected_node == entry.node,
                )
            )
        storage.assume(entry.pod.uid, [(one.key, one.volume, one.node) for one in found])
        return tuple(found)
