"""What volumes leave room for while one cycle places gangs: a part of ``Room``, copied with it.

Keeps what was taken since the snapshot: volumes chosen for claims, volumes attached, disks mounted,
claims in use. Asked by ``filters.volume_*`` and ``filters.node_volume_limits``; what was chosen for
whom is asked by ``plan.cycle``, for the writes that come before the binds.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from quorate.core.model import Disk, SelectorTerm
from quorate.core.model.storage import NO_PROVISIONER, ClaimKey
from quorate.core.plan.candidates import Candidates, candidates_of
from quorate.core.plan.filters import node_affinity
from quorate.core.plan.moved_volumes import MovedVolumes
from quorate.core.state.arrays import Ints, Mask
from quorate.core.state.encoding import PodClass
from quorate.core.state.snapshot import Snapshot
from quorate.core.state.volume_counts import UNLIMITED, VolumeId
from quorate.core.state.wants import ZONE_LABELS, Topology, UnboundWant, Wants

Codes = npt.NDArray[np.int8]
OK, NO_VOLUME, NO_SPACE = 0, 1, 2
"""Verdicts on unbound claims: as kube-scheduler's BindConflict and NotEnoughSpace."""
_NOBODY: frozenset[int] = frozenset()


class _Lasting:
    """What does not change while a cycle lasts, worked out when it is first asked for."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """Numbers of the volumes that are candidates for some claim."""
        self.names: list[str] = []
        self.candidates: dict[UnboundWant, Candidates] = {}
        self.provisions: dict[tuple[str, int | None], Codes] = {}
        self.affinities: dict[tuple[SelectorTerm, ...], Mask] = {}
        self.zones: dict[tuple[Topology, ...], Mask] = {}
        self.by_label: dict[str, tuple[Ints, Codes]] = {}
        """Rows in the order of their codes of a label, and these codes."""


class VolumeRoom:
    """What is left for pods with volumes. Rows are those of the snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._storage = snapshot.storage
        self._lasting = _Lasting()
        self._taken: frozenset[int] = frozenset()
        """Volumes, by number, that were chosen for claims here."""
        self._attached: dict[str, Ints] = {}
        self._holders: dict[VolumeId, frozenset[int]] = {}
        self._disks: tuple[tuple[tuple[Disk, ...], frozenset[int]], ...] = ()
        self._in_use: frozenset[ClaimKey] = frozenset()
        self._decided: dict[ClaimKey, tuple[int, str]] = {}
        """Where a claim of several pods is provisioned (row, ""), or which volume it gets."""
        self._chosen: dict[tuple[int, int], tuple[tuple[str, ...], ...]] = {}
        self.moved: MovedVolumes | None = None
        """Of pods that a trial thinks away, or there; set on a copy."""

    def copy(self) -> VolumeRoom:
        """Return a room of its own to try something in."""
        other = VolumeRoom.__new__(VolumeRoom)
        other._snapshot, other._storage = self._snapshot, self._storage
        other._lasting, other._taken = self._lasting, self._taken
        other._attached, other._holders = dict(self._attached), dict(self._holders)
        other._disks, other._in_use = self._disks, self._in_use
        other._decided, other._chosen = dict(self._decided), dict(self._chosen)
        other.moved = None
        return other

    # Questions of the rules

    def rows_with_disks(self, disks: Collection[Disk]) -> list[int]:
        """Return the rows where a pod has a disk that conflicts with one of these."""
        found: set[int] = set()
        for disk in disks:
            held = self._storage.disks.get((disk.plugin, disk.id))
            found.update(row for row, other in held or () if disk.conflicts(other))
            for others, rows in self._disks:
                if any(disk.conflicts(other) for other in others):
                    found |= rows
        if self.moved is not None:
            is_held = any(self.moved.has_disk(disk) for disk in disks)
            (found.add if is_held else found.discard)(self.moved.row)
        return sorted(found)

    def is_used(self, claims: Collection[ClaimKey]) -> bool:
        """Whether a pod on a node uses one of these claims."""
        if self.moved is not None and self.moved.is_used(claims):
            return True
        there = self._storage.in_use if self.moved is None else ()
        return any(key in self._in_use or key in there for key in claims)

    def limits(self, driver: str) -> Ints | None:
        """Return int64[n]: how many volumes of the driver each node takes; None: any number."""
        found = self._storage.nodes.limits.get(driver)
        return None if found is None else found[: len(self._snapshot)]

    def attached(self, driver: str) -> Ints:
        """Return int64[n]: how many volumes of the driver are on each node."""
        found = self._attached.get(driver)
        if found is None:
            found = self._storage.nodes.column(driver)[: len(self._snapshot)]
        if self.moved is not None and (change := self.moved.change(driver)):
            found = found.copy()
            found[self.moved.row] += change
        return found

    def holders(self, volume_id: VolumeId) -> list[int]:
        """Return the rows on which a pod uses the volume."""
        here = self._storage.nodes.holders.get(volume_id)
        rows = set(self._holders.get(volume_id, _NOBODY).union(here or ()))
        if self.moved is not None:
            (rows.add if self.moved.holds(volume_id) else rows.discard)(self.moved.row)
        return sorted(rows)

    def affinity(self, terms: tuple[SelectorTerm, ...]) -> Mask:
        """Return bool[n]: nodes that match a volume's node affinity."""
        found = self._lasting.affinities.get(terms)
        if found is None:
            found = np.zeros(len(self._snapshot), np.bool_)
            for term in terms:
                found |= node_affinity.matches_term(term, self._snapshot)
            self._lasting.affinities[terms] = found
        return found

    def rows_of(self, terms: tuple[SelectorTerm, ...] | None) -> Ints:
        """Return the rows of the nodes that match a volume's node affinity (None: of all).

        Local volumes name their one node: that is looked up, not searched for.
        """
        alive = self._snapshot.alive
        if terms is None:
            return np.flatnonzero(alive)
        if len(terms) != 1 or len(terms[0].expressions) != 1:
            return np.flatnonzero(self.affinity(terms) & alive)
        [one] = terms[0].expressions
        if one.operator != "In" or len(one.values) != 1:
            return np.flatnonzero(self.affinity(terms) & alive)
        column = self._snapshot.label(one.key)
        code = column.code_of.get(one.values[0])
        if code is None:
            return np.zeros(0, np.int64)
        found = self._lasting.by_label.get(one.key)
        if found is None:
            codes = np.where(alive, column.codes[: len(alive)], -1)
            order = np.argsort(codes, kind="stable")
            found = self._lasting.by_label[one.key] = order, codes[order]
        order, ordered = found
        return order[np.searchsorted(ordered, code) : np.searchsorted(ordered, code, "right")]

    def in_zone(self, topologies: tuple[Topology, ...]) -> Mask:
        """Return bool[n]: nodes in the zones of bound volumes, and those that are in no zone."""
        found = self._lasting.zones.get(topologies)
        if found is None:
            bears_none = np.ones(len(self._snapshot), np.bool_)
            for key in ZONE_LABELS:
                bears_none &= self._snapshot.label(key).codes[: len(bears_none)] < 0
            found = np.ones(len(self._snapshot), np.bool_)
            for topology in topologies:
                found &= self._in_one(topology)
            found |= bears_none
            self._lasting.zones[topologies] = found
        return found

    def _in_one(self, topology: Topology) -> Mask:
        own = self._snapshot.label(topology.key)
        present = self._snapshot.label(ZONE_LABELS[topology.key])
        n = len(self._snapshot)
        wanted = [own.code_of.get(value, -2) for value in topology.values]
        wanted_now = [present.code_of.get(value, -2) for value in topology.values]
        absent = own.codes[:n] < 0
        found: Mask = np.isin(own.codes[:n], wanted)
        found |= absent & np.isin(present.codes[:n], wanted_now)
        return found

    def judge_unbound(self, wants: Wants) -> Codes:
        """Return int8[n]: whether all unbound claims of a pod can be bound on the node."""
        return self._choices(wants)[0]

    def _choices(self, wants: Wants) -> tuple[Codes, list[Ints]]:
        """Return verdicts int8[n] and, for each unbound claim, int64[n]: volume numbers or -1."""
        n = len(self._snapshot)
        codes = np.zeros(n, np.int8)
        elsewhere = np.zeros(n, np.bool_)
        choices: list[Ints] = []
        unmatched: list[tuple[UnboundWant, Mask]] = []
        selected: list[tuple[UnboundWant, Mask]] = []
        everywhere = np.ones(n, np.bool_)
        for want in wants.unbound:
            choice = np.full(n, -1, np.int64)
            node = self._node_of(want)
            if node is not None:
                elsewhere |= ~self._only(node)
                selected.append((want, everywhere))
            elif not self._is_settled(want):
                decided = self._is_decided_by_volume(want)
                taken = frozenset() if want.kept or decided else self._taken
                choice = self.candidates(want).pick(n, taken, choices)
                if decided:
                    elsewhere |= choice < 0
                unmatched.append((want, choice < 0))
            choices.append(choice)
        for want, lacks in (*selected, *unmatched):
            lacking = lacks & (codes == OK)
            if lacking.any():
                codes[lacking] = self._provision(want)[lacking]
        codes[elsewhere] = NO_VOLUME
        return codes, choices

    def _node_of(self, want: UnboundWant) -> str | None:
        if want.selected_node is not None:
            return want.selected_node
        decided = self._decided.get(want.claim) if want.claim else None
        if decided is None or decided[1] or want.shareable:
            return None
        return self._snapshot.node(decided[0]).name

    def _is_settled(self, want: UnboundWant) -> bool:
        """Whether another pod of this plan has the claim provisioned, and any node will do."""
        decided = self._decided.get(want.claim) if want.claim else None
        return decided is not None and not decided[1] and want.shareable

    def _is_decided_by_volume(self, want: UnboundWant) -> bool:
        return want.claim is not None and bool(self._decided.get(want.claim, (0, ""))[1])

    def _only(self, node: str) -> Mask:
        mask = np.zeros(len(self._snapshot), np.bool_)
        mask[self._snapshot.rows_named((node,))] = True
        return mask

    def candidates(self, want: UnboundWant) -> Candidates:
        """Return the volumes that could be bound to such a claim."""
        if self._is_decided_by_volume(want):
            assert want.claim is not None
            want = want._replace(kept=self._decided[want.claim][1])
        found = self._lasting.candidates.get(want)
        if found is None:
            found = candidates_of(want, self._snapshot, self.rows_of, self._lasting.numbers)
            self._lasting.candidates[want] = found
            self._lasting.names = list(self._lasting.numbers)
        return found

    def _provision(self, want: UnboundWant) -> Codes:
        """Return int8[n]: whether a volume could be made for the claim, by node."""
        key = want.storage_class, want.size
        found = self._lasting.provisions.get(key)
        if found is None:
            found = self._lasting.provisions[key] = self._provisions(*key)
        return found

    def _provisions(self, class_name: str, size: int | None) -> Codes:
        n = len(self._snapshot)
        storage = self._storage
        codes = np.zeros(n, np.int8)
        found = storage.classes.get(class_name)
        if found is None or found.provisioner in ("", NO_PROVISIONER):
            codes[:] = NO_VOLUME
            return codes
        driver = storage.drivers.get(found.provisioner)
        if size is not None and driver is not None and driver.storage_capacity:
            reached = np.zeros(n, np.bool_)
            for capacity in storage.capacities.get(class_name, {}).values():
                if capacity.nodes is None or capacity.size_max is None or capacity.size_max < size:
                    continue
                near = np.ones(n, np.bool_)
                for requirement in capacity.nodes.requirements:
                    near &= node_affinity.matches_label(requirement, self._snapshot)
                reached |= near
            codes[~reached] = NO_SPACE
        if found.topologies:
            allowed = np.zeros(n, np.bool_)
            for term in found.topologies:
                allowed |= self._in_topology(term)
            codes[~allowed] = NO_VOLUME
        return codes

    def _in_topology(self, term: tuple[tuple[str, tuple[str, ...]], ...]) -> Mask:
        mask = np.full(len(self._snapshot), bool(term))
        for key, values in term:
            column = self._snapshot.label(key)
            wanted = [column.code_of.get(value, -2) for value in values]
            mask &= np.isin(column.codes[: len(mask)], wanted)
        return mask

    # What pods take

    def constrains(self, pod_class: PodClass) -> bool:
        """Whether one pod of the class changes where the next one of it may go."""
        wants = pod_class.wants
        if wants is None or wants.problems:
            return False
        if wants.shared or wants.exclusive:
            return True
        if len(wants.unbound) == 1 and self._has_one_each(wants.unbound[0]):
            return False
        return self._chooses(wants)

    def _chooses(self, wants: Wants) -> bool:
        """Whether volumes have to be chosen for the pods one after the other."""
        return any(want.claim or self.candidates(want).exist for want in wants.unbound)

    def _has_one_each(self, want: UnboundWant) -> bool:
        """Whether volumes are local, one for each node: then no pod is in another's way."""
        found = self._storage.classes.get(want.storage_class)
        return (
            want.claim is None
            and found is not None
            and found.provisioner == NO_PROVISIONER
            and self.candidates(want).one_each
        )

    def slots(self, pod_class: PodClass) -> Ints:
        """Return int64[n]: how many more pods of the class each node takes, by volume limits.

        Disks that exclude one another allow one, and so do volumes that have to be chosen; all else
        is said by the rules.
        """
        slots = np.full(len(self._snapshot), UNLIMITED, np.int64)
        for driver, each in pod_class.wants.new if pod_class.wants else ():
            limits = self.limits(driver)
            if limits is not None:
                np.minimum(slots, (limits - self.attached(driver)) // each, out=slots)
        disks = pod_class.shape.disks
        if any(disk.conflicts(other) for disk in disks for other in disks):
            np.minimum(slots, 1, out=slots)
        if pod_class.wants is not None and self._chooses(pod_class.wants):
            np.minimum(slots, 1, out=slots)
        return np.maximum(slots, 0, out=slots)

    def take(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        """Count more pods of the class on these rows (each once): ``pods`` is int64[len(rows)]."""
        wants = pod_class.wants
        if pod_class.shape.disks:
            self._disks = (*self._disks, (pod_class.shape.disks, frozenset(rows.tolist())))
        if wants is None or wants.problems:
            return
        for driver, each in wants.new:
            self._attached[driver] = column = self.attached(driver).copy()
            column[rows] += each * pods
        for volume_id in wants.shared:
            fresh = np.setdiff1d(rows, self.holders(volume_id))
            self._attached[volume_id[0]] = column = self.attached(volume_id[0]).copy()
            column[fresh] += 1
            known = self._holders.get(volume_id, _NOBODY)
            self._holders[volume_id] = known.union(fresh.tolist())
        if rows.size and wants.exclusive:
            self._in_use = self._in_use.union(wants.exclusive)
        if self._chooses(wants):
            self._choose(pod_class.id, wants, np.repeat(rows, pods).tolist())

    def _choose(self, class_id: int, wants: Wants, rows: list[int]) -> None:
        """Choose volumes for pods on these rows, as the verdicts on them were found."""
        shared = any(want.claim for want in wants.unbound)
        choices = self._choices(wants)[1]
        fresh: set[int] = set()
        for row in rows:
            numbers = [int(choice[row]) for choice in choices]
            if not fresh.isdisjoint(numbers) or (shared and fresh):
                self._taken, fresh = self._taken | fresh, set()
                choices = self._choices(wants)[1]
                numbers = [int(choice[row]) for choice in choices]
            fresh.update(number for number in numbers if number >= 0)
            names = tuple(self._lasting.names[n] if n >= 0 else "" for n in numbers)
            for want, name in zip(wants.unbound, names, strict=True):
                if want.claim is not None:
                    self._decided.setdefault(want.claim, (row, name))
            chosen = self._chosen.get((class_id, row), ())
            self._chosen[class_id, row] = (*chosen, names)
        self._taken = self._taken | fresh

    def take_chosen(self, pod_class: PodClass, row: int) -> tuple[str, ...]:
        """Return and forget the volumes chosen for one pod of the class on the row.

        One name for each unbound claim; "" where a volume is to be made for it.
        """
        chosen = self._chosen.get((pod_class.id, row), ())
        if not chosen:
            return ("",) * (len(pod_class.wants.unbound) if pod_class.wants else 0)
        self._chosen[pod_class.id, row] = chosen[1:]
        return chosen[0]
