"""Which volumes unbound claims get, or where volumes are provisioned, while one cycle places gangs.

A part of ``room.volume_room``, copied with it. In: volume needs and rows. Out: slots, and names of
volumes. Where several pods share a claim, the first pod decides for all of them. Later gangs of the
cycle treat that decision as if it were written on the claim. ``turn.cycle`` reads the choices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.needs import UnboundNeed, VolumeNeeds
from quorate.core.cluster.storage.volume_counts import UNLIMITED
from quorate.core.model.steps import Steps, costs
from quorate.core.model.storage import ClaimKey
from quorate.core.room.reach import Reach
from quorate.core.room.volume_candidates import Starts, VolumeCandidates, candidates_of


class _CycleCache:
    """A cache that all copies of one cycle share."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """Numbers of the volumes that are candidates for some claim."""
        self.names: list[str] = []
        self.candidates: dict[UnboundNeed, VolumeCandidates] = {}


class _ClaimOptions(NamedTuple):
    """How one claim of a pod is met: by one of ``volume_candidates`` or by provisioning a volume.

    ``row`` is the only node allowed; None allows all. ``is_open``: the volume is not chosen yet.
    ``must``: no volume may be provisioned, so the claim needs one of the candidates.
    """

    need: UnboundNeed
    row: int | None = None
    candidates: VolumeCandidates | None = None
    is_open: bool = False
    must: bool = False


class ClaimChoices:
    """What unbound claims get. Rows are those of the snapshot; n of them."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._cycle_cache = _CycleCache()
        self.steps: Steps | None = None
        self._taken: frozenset[int] = frozenset()
        """Numbers of the volumes that were chosen for claims."""
        self._decided: dict[ClaimKey, tuple[int, str]] = {}
        """By shared claim: the row where it is provisioned and "", or the volume it gets."""
        self._settled: dict[ClaimKey, tuple[int, str]] = {}
        """The same for gangs that are placed: treated as if written on the claim."""
        self._chosen: dict[tuple[int, int], tuple[tuple[str, ...], ...]] = {}

    def copy(self) -> ClaimChoices:
        """Return an independent copy for a trial."""
        other = ClaimChoices.__new__(ClaimChoices)
        other._reach, other._cycle_cache, other.steps = self._reach, self._cycle_cache, self.steps
        other._taken, other._settled = self._taken, self._settled
        other._decided, other._chosen = dict(self._decided), dict(self._chosen)
        return other

    # Questions

    def judge(self, volume_needs: VolumeNeeds) -> Mask:
        """Return bool[n]: the nodes where some unbound claim of a pod cannot be bound.

        Raises OutOfStepsError when the turn is over.
        """
        n = len(self._reach.snapshot)
        lacking = np.zeros(n, np.bool_)
        if self.steps is not None and volume_needs.unbound:
            self.steps.expect()
        for part in map(self._part, volume_needs.unbound):
            self._count(1 + n // costs.CLAIM_NODES_PER_STEP + _steps_of(part))
            if part.row is not None:
                lacking |= (np.arange(n) != part.row) | ~self._provisionable(part.need)
            elif part.candidates is not None:
                taken = self._taken if part.is_open else frozenset[int]()
                has_none = part.candidates.free_at(n, taken) == 0
                if not part.must and has_none.any():
                    has_none &= ~self._provisionable(part.need)
                lacking |= has_none
        return lacking

    def constrain(self, volume_needs: VolumeNeeds) -> bool:
        """Whether one pod's volumes decide where the next pod with equal claims may go.

        They do not where each volume is reachable from one node only: ``slots`` counts those.
        """
        if any(part.is_open and part.need.claim for part in map(self._part, volume_needs.unbound)):
            return True
        return not all(candidates.is_local for _, candidates in self._contested(volume_needs))

    def gather(self, volume_needs: VolumeNeeds) -> bool:
        """Whether all pods with these claims must go to the node of the first one."""
        open_ones = [part.need for part in map(self._part, volume_needs.unbound) if part.is_open]
        return any(need.claim is not None and not need.shareable for need in open_ones)

    def slots(self, volume_needs: VolumeNeeds) -> Ints | None:
        """Return int64[n]: the number of pods for which there are volumes; None: any number.

        Where pods constrain one another, it is an upper bound.
        """
        n, slots = len(self._reach.snapshot), None
        for need, candidates in self._contested(volume_needs):
            free = candidates.free_at(n, self._taken)
            more = np.where(self._provisionable(need), UNLIMITED, free)
            slots = more if slots is None else np.minimum(slots, more)
            self._count(1 + candidates.steps)
        return slots

    def most(self, volume_needs: VolumeNeeds) -> int:
        """Return an upper bound on the pods that get volumes, over all nodes."""
        most = UNLIMITED
        for need, candidates in self._contested(volume_needs):
            if not self._provisionable(need).any():
                most = min(most, len(candidates.numbers - self._taken))
        return most

    def served(self, volume_needs: VolumeNeeds, rows: Ints, pods: Ints) -> Ints:
        """Return int64[len(rows)]: of ``pods`` on each row, how many get all their volumes."""
        found = np.zeros(len(rows), np.int64)
        places = np.repeat(np.arange(len(rows)), pods).tolist()
        got = self.copy()._give(volume_needs, rows[places].tolist())
        for place, numbers in zip(places, got, strict=True):
            found[place] += numbers is not None
        return found

    # What pods take

    def take(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        """Choose volumes for ``pods`` (int64[len(rows)]) more pods of the class.

        A claim for which no volume is left is provisioned; the caller has checked that it can be.
        """
        volume_needs = pod_class.volume_needs
        if volume_needs is None or not any(self._has_names(need) for need in volume_needs.unbound):
            return
        none = (-1,) * len(volume_needs.unbound)
        each = np.repeat(rows, pods).tolist()
        for row, numbers in zip(each, self._give(volume_needs, each), strict=True):
            names = tuple(self._cycle_cache.names[n] if n >= 0 else "" for n in numbers or none)
            before = self._chosen.get((pod_class.id, row), ())
            self._chosen[pod_class.id, row] = (*before, names)

    def take_chosen(self, pod_class: PodClass, row: int) -> tuple[str, ...]:
        """Remove and return the volumes chosen for one pod of the class on the row.

        One name for each unbound claim; "" where a volume is to be provisioned. Call it when the
        whole gang is placed: its decisions for shared claims are final from then on.
        """
        if self._decided:
            self._settled, self._decided = self._settled | self._decided, {}
        chosen = self._chosen.get((pod_class.id, row), ())
        if not chosen:
            return ("",) * (len(pod_class.volume_needs.unbound) if pod_class.volume_needs else 0)
        self._chosen[pod_class.id, row] = chosen[1:]
        return chosen[0]

    # Inside

    def _give(self, volume_needs: VolumeNeeds, rows: Iterable[int]) -> list[list[int] | None]:
        """Choose volumes for one pod on each of these rows; None for a pod that lacks one."""
        taken, starts = set(self._taken), Starts()
        parts = [self._part(need) for need in volume_needs.unbound]
        is_shared = any(need.claim for need in volume_needs.unbound)
        found: list[list[int] | None] = []
        for row in rows:
            numbers = self._numbers_at(row, parts, taken, starts)
            found.append(numbers)
            if numbers is None:
                continue
            taken.update(number for number in numbers if number >= 0)
            if is_shared and self._note_choices(row, parts, numbers):
                parts = [self._part(need) for need in volume_needs.unbound]
        self._taken = frozenset(taken)
        looked = {part.candidates for part in parts if part.candidates is not None}
        self._count(1 + len(found) * len(parts) // costs.CLAIM_PODS_PER_STEP)
        self._count(sum(candidates.take_steps() for candidates in looked))
        return found

    def _numbers_at(
        self, row: int, parts: list[_ClaimOptions], taken: set[int], starts: Starts
    ) -> list[int] | None:
        numbers: list[int] = []
        for part in parts:
            number = -1
            if part.row is not None and part.row != row:
                return None
            if part.candidates is not None:
                given = taken if part.is_open else ()
                number = part.candidates.pick_at(row, given, starts)
            if number < 0 and (part.must or not self._is_provisioned(part, row)):
                return None
            numbers.append(number)
        return numbers

    def _is_provisioned(self, part: _ClaimOptions, row: int) -> bool:
        """Whether a volume can be provisioned on the row, or was decided to be."""
        if part.row is None and part.candidates is None:
            return True
        return bool(self._provisionable(part.need)[row])

    def _provisionable(self, need: UnboundNeed) -> Mask:
        """Return bool[n]: whether each node lets a volume be provisioned for the claim."""
        found = self._reach.provision(need.storage_class)
        self._count(self._reach.take_steps())
        return found

    def _note_choices(self, row: int, parts: list[_ClaimOptions], numbers: list[int]) -> bool:
        """Record a pod's decisions for shared claims; return whether there were any."""
        before = len(self._decided)
        for part, number in zip(parts, numbers, strict=True):
            claim = part.need.claim
            if claim is not None and claim not in self._settled:
                name = self._cycle_cache.names[number] if number >= 0 else ""
                self._decided.setdefault(claim, (row, name))
        return len(self._decided) > before

    def _part(self, need: UnboundNeed) -> _ClaimOptions:
        """Return how a claim is met, given the decisions so far."""
        if need.selected_node is not None:
            rows = self._reach.snapshot.rows_named((need.selected_node,))
            return _ClaimOptions(need, row=rows[0] if rows else -1)
        found, is_settled = None, False
        if need.claim is not None:
            is_settled = need.claim in self._settled
            found = (self._settled if is_settled else self._decided).get(need.claim)
        if found is None:
            candidates = self._candidates(need)
            return _ClaimOptions(need, candidates=candidates, is_open=need.is_open)
        row, name = found
        if name:
            return _ClaimOptions(
                need, candidates=self._candidates(need._replace(kept=name)), must=True
            )
        if need.shareable and not is_settled:
            return _ClaimOptions(need)  # any node does, as long as its volume is not there
        return _ClaimOptions(need, row=row)

    def _contested(self, volume_needs: VolumeNeeds) -> list[tuple[UnboundNeed, VolumeCandidates]]:
        """Return the claims for which pods compete, each with its volumes; no volume is of two."""
        return [
            (part.need, part.candidates)
            for part in map(self._part, volume_needs.unbound)
            if part.is_open and part.candidates is not None and part.candidates.numbers
        ]

    def _has_names(self, need: UnboundNeed) -> bool:
        if need.selected_node is not None:
            return False
        return need.claim is not None or bool(self._candidates(need).numbers)

    def _candidates(self, need: UnboundNeed) -> VolumeCandidates:
        """Return the volumes that could be bound to such a claim."""
        found = self._cycle_cache.candidates.get(need)
        if found is None:
            found = candidates_of(need, self._reach, self._cycle_cache.numbers)
            self._cycle_cache.candidates[need] = found
            self._cycle_cache.names = list(self._cycle_cache.numbers)
            in_class = self._reach.snapshot.storage.index.volumes_in.get(need.storage_class, ())
            looked = 0 if need.kept else len(in_class) // 10
            self._count(1 + looked + found.steps_to_make + self._reach.take_steps())
        return found

    def _count(self, steps: int) -> None:
        if self.steps is not None:
            self.steps.take(steps)


def _steps_of(part: _ClaimOptions) -> int:
    return part.candidates.steps if part.candidates is not None else 0
