"""Reservations: room of lost members of started gangs, kept for their replacements for a while.

In: changes of members (from ``cluster.state``), each decision's time and outcome. Out: the
reservations that planning subtracts from the room (``room.reserved_room``). A reservation is not a
pod: no node counts it. Changes carry no time, so ``settle`` sets when a reservation ends. Quotas do
not count reservations, so the operator bounds their length and number (``policy``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.reservation import NotReserved, Placed, Reservation, placed
from quorate.core.cluster.nodes.encoding import PodClass, PodClasses
from quorate.core.model import GangKey, Owner
from quorate.core.model.policy import Policy


class Reservations:
    """All reservations, and how many lost members of each gang have not been replaced yet."""

    def __init__(self, classes: PodClasses | None) -> None:
        self._classes = classes
        """The table that counts uses of the reservations' classes; None in a cycle's copy."""
        self._of: dict[GangKey, list[Reservation]] = {}
        self._in: Counter[str] = Counter()
        """The number of reservations with an end time, by namespace."""
        self._not_reserved: dict[GangKey, NotReserved] = {}
        self._missing: Counter[GangKey] = Counter()
        self._going: dict[GangKey, set[str]] = {}
        """Uids of members that count as lost and still exist."""
        self._lent: dict[str, Reservation] = {}
        """By uid of a replacement, the reservation it uses, until its bind has an outcome."""
        self.changed: set[GangKey] = set()
        """Gangs whose reservations changed since ``changed`` was last emptied."""
        self.ended_on: set[str] = set()
        """Nodes on which a reservation ended."""

    def copy(self) -> Reservations:
        """Return an independent copy for one cycle, which may use reservations up."""
        other = Reservations(None)
        other._of = {key: list(reservations) for key, reservations in self._of.items()}
        other._missing, other._in = self._missing.copy(), self._in.copy()
        return other

    def move_to(self, classes: PodClasses) -> None:
        """Change to the classes of another table, after the state was built again."""
        self._classes = classes
        for reservation in (*self, *self._lent.values()):
            reservation.pod_class = classes.of(
                reservation.pod_class.spec, reservation.pod_class.profile
            )
            classes.acquire(reservation.pod_class)

    def __iter__(self) -> Iterator[Reservation]:
        """Iterate over all reservations, gang by gang."""
        for reservations in self._of.values():
            yield from reservations

    def __len__(self) -> int:
        """Return the number of reservations."""
        return sum(map(len, self._of.values()))

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._of)

    def of(self, key: GangKey) -> list[Reservation]:
        """Return a gang's reservations."""
        return list(self._of.get(key, ()))

    def not_reserved(self, key: GangKey) -> NotReserved | None:
        """Return the slots that an operator's bound keeps from being reserved, or None."""
        return self._not_reserved.get(key)

    def missing(self, key: GangKey) -> int:
        """Return how many lost members of a gang have not been replaced."""
        return self._missing[key]

    def wake_at_s(self) -> float | None:
        """Return when the next reservation ends (epoch seconds); None: none has an end time."""
        return min(
            (reservation.until_s for reservation in self if reservation.until_s), default=None
        )

    # Changes of members

    def note(self, was: Placed | None, entry: PodEntry, *, gone: bool = False) -> None:
        """Take in a change of a pod: ``was`` is ``placed`` of it before, ``entry`` the pod now."""
        lent = self._lent.get(entry.pod.uid)
        if lent is not None:
            stays = not gone and entry.gang is not None and entry.gang.key == lent.key
            if stays and entry.where is Where.BOUND:
                self._let_go(self._lent.pop(entry.pod.uid))
            elif not stays or entry.where is not Where.ASSUMED:
                self._give_back(entry.pod.uid)
            return
        if was is None:
            if self._missing and not gone and placed(entry) is not None:
                assert entry.gang is not None, "it is placed"
                self._let_go(self._replaced(entry.gang.key, entry.node, entry.pod_class))
            return
        if was.where is Where.ASSUMED:
            return
        stays = not gone and entry.gang is not None and entry.gang.key == was.key
        self._note_loss(was, entry, stays=stays and entry.where is Where.BOUND, gone=gone)

    def _note_loss(self, was: Placed, entry: PodEntry, *, stays: bool, gone: bool) -> None:
        pod, key = entry.pod, was.key
        going = self._going.get(key, set())
        lost = not stays or pod.terminating or pod.phase == "Failed"
        # A pod without an owner is never replaced.
        if lost and was.runs and pod.uid not in going and pod.owner is not None:
            self._going.setdefault(key, going).add(pod.uid)
            self._missing[key] += 1
        frees = was.runs and (gone or pod.finished or entry.node != was.node)
        is_replaced = len(self._of.get(key, ())) >= self._missing[key]
        if frees and pod.uid in going and not (is_replaced or entry.where is Where.REFUSED):
            if self._classes is not None:
                self._classes.acquire(was.pod_class)
            self._add(Reservation(was, pod))
        if not stays and pod.uid in going:
            going.discard(pod.uid)
            if not going:
                self._going.pop(key, None)

    def _replaced(self, key: GangKey, node: str, pod_class: PodClass) -> Reservation | None:
        """Note that a lost member has a replacement; return the reservation that it uses, or None.

        The caller then has to keep the reservation or release it (``_let_go``).
        """
        if key not in self._missing:
            return None
        reservations = self.of(key)
        here = [reservation for reservation in reservations if reservation.node == node]
        if not here and len(reservations) < self._missing[key]:
            self._count_down(key)  # it replaces a member whose room is not free yet, or is lost
            return None
        alike = [
            reservation
            for reservation in here or reservations
            if reservation.pod_class is pod_class
        ]
        used = (alike or here or reservations)[0]
        same = used.node == node and used.pod_class is pod_class
        self._take_out(used, frees=not same)
        return used

    def _give_back(self, uid: str) -> None:
        """Restore the reservation of a replacement that was not bound."""
        reservation = self._lent.pop(uid, None)
        if reservation is not None:
            self._missing[reservation.key] += 1
            self._add(reservation)

    def note_assumed(
        self, key: GangKey, uids: Iterable[str], nodes: Iterable[str], pod_class: PodClass
    ) -> None:
        """Note that members are assumed; each replaces a lost member while one is missing."""
        if key not in self._missing:
            return
        for uid, node in zip(uids, nodes, strict=True):
            used = self._replaced(key, node, pod_class)
            if used is not None:
                self._lent[uid] = used

    def node_gone(self, name: str) -> None:
        """End the reservations on a node that is gone."""
        for reservation in [reservation for reservation in self if reservation.node == name]:
            self._end(reservation, frees=False)

    def note_owner_replicas(self, namespace: str, owner: Owner, makes: int | None) -> set[GangKey]:
        """Note how many pods an owner makes; return the gangs that ``settle`` has to look at."""
        asked = [h for h in self if h.owner == owner and h.key.namespace == namespace]
        for reservation in asked:
            reservation.is_told, reservation.makes = True, makes
        return {reservation.key for reservation in asked}

    def owners_to_ask(self, key: GangKey) -> set[Owner]:
        """Return owners of lost members of which it is not known yet how many pods they make."""
        return {
            reservation.owner
            for reservation in self.of(key)
            if reservation.owner and not reservation.is_told
        }

    def take_changed(self) -> set[GangKey]:
        """Return the gangs whose reservations changed since the last call."""
        changed, self.changed = self.changed, set()
        return changed

    def take_ended_on(self) -> set[str]:
        """Return the nodes on which a reservation ended since the last call."""
        ended_on, self.ended_on = self.ended_on, set()
        return ended_on

    # Decisions

    def forget_not_reserved(self, now_s: float) -> None:
        """Forget slots that a bound kept from being reserved, once they would have ended."""
        for key in [key for key, one in self._not_reserved.items() if one.until_s <= now_s]:
            del self._not_reserved[key]
            self.changed.add(key)

    def settle(self, key: GangKey, gang: GangEntry | None, now_s: float, policy: Policy) -> None:
        """End a gang's superfluous reservations; set end times of new ones, within the bounds."""
        if key not in self._missing:
            return
        if gang is None or not (gang.started or gang.runs.may_go_on):
            self.forget(key)
            return
        if not (gang.waits or _living(gang)):
            self._end_of_idle(gang)
        for reservation in self.of(key):
            if not reservation.until_s:
                asked_s = gang.spec.hold_s if gang.spec is not None else None
                if asked_s is None:
                    asked_s = reservation.asked_s
                reservation.asked_s, reservation.since_s = asked_s, now_s
                length_s = policy.hold_s if asked_s is None else asked_s
                reservation.until_s = now_s + min(length_s, policy.hold_s_max)
                self._in[key.namespace] += 1
        self._end_excess(key, gang)
        self.end_due(now_s, self.of(key))
        self._end_above(key, "gang", len(self.of(key)), policy.held_slots_per_gang_max)
        in_all = self._in[key.namespace]
        self._end_above(key, "namespace", in_all, policy.held_slots_per_namespace_max)

    def _end_of_idle(self, gang: GangEntry) -> None:
        """End reservations of a gang of which no member runs or waits: its work is over.

        Unless its last members failed when all others had succeeded: then these may be made anew.
        """
        if not (gang.runs.may_go_on or any(_has_succeeded(one) for one in gang.members.values())):
            self.forget(gang.key)
        for reservation in self.of(gang.key):
            if not reservation.failed:
                self._end(reservation)

    def after_life(self, gang: GangEntry) -> None:
        """Forget a gang whose life is over, unless what it has done counts in the next life."""
        if not gang.runs.may_go_on:
            self.forget(gang.key)

    def _end_above(
        self, key: GangKey, whose: Literal["gang", "namespace"], held: int, most: int
    ) -> None:
        """End a gang's newest reservations beyond a bound, and record their number."""
        above = self.of(key)[most - held :] if held > most else []
        for reservation in above:
            self._end(reservation)
        if above and most:
            until_s = max(reservation.until_s for reservation in above)
            before = self._not_reserved.get(key)
            slots = len(above) + (before.slots if before is not None else 0)
            self._not_reserved[key] = NotReserved(slots, whose, most, until_s)

    def _end_excess(self, key: GangKey, gang: GangEntry) -> None:
        """End reservations for more pods than owners make, or than min if that is unknown."""
        reservations = [reservation for reservation in self.of(key) if reservation.is_told]
        if not reservations:
            return
        living = _living(gang)
        in_all = len(self._of[key]) + sum(living.values())
        for reservation in reversed(reservations):
            mine = [h for h in self._of.get(key, ()) if h.owner == reservation.owner]
            if reservation.makes is None:
                excess = in_all - gang.min_count
            else:
                excess = len(mine) + living[reservation.owner] - reservation.makes
            if excess > 0:
                self._end(reservation)
                in_all -= 1

    def end_due(self, now_s: float, reservations: Iterable[Reservation] | None = None) -> None:
        """End the reservations that are due, of those given or (None) of all."""
        for reservation in list(self if reservations is None else reservations):
            if reservation.until_s and reservation.until_s <= now_s:
                self._end(reservation)

    def end_if(self, is_over: Callable[[Reservation], bool]) -> bool:
        """End the reservations for which ``is_over`` is true; return whether there were any."""
        over = [reservation for reservation in self if is_over(reservation)]
        for reservation in over:
            self._end(reservation)
        return bool(over)

    def end_all_of(self, key: GangKey) -> None:
        """End all reservations of a gang."""
        for reservation in self.of(key):
            self._end(reservation)

    def _add(self, reservation: Reservation) -> None:
        self._of.setdefault(reservation.key, []).append(reservation)
        self._in[reservation.key.namespace] += reservation.until_s > 0.0
        self.changed.add(reservation.key)

    def _end(self, reservation: Reservation, *, frees: bool = True) -> None:
        self._take_out(reservation, frees=frees)
        self._let_go(reservation)

    def _let_go(self, reservation: Reservation | None) -> None:
        """Release the class of a reservation that will not be restored."""
        if reservation is not None and self._classes is not None:
            self._classes.release(reservation.pod_class)

    def _take_out(self, reservation: Reservation, *, frees: bool) -> None:
        reservations = self._of[reservation.key]
        reservations.remove(reservation)
        self._in[reservation.key.namespace] -= reservation.until_s > 0.0
        if not self._in[reservation.key.namespace]:
            del self._in[reservation.key.namespace]
        if not reservations:
            del self._of[reservation.key]
        self._count_down(reservation.key)
        self.changed.add(reservation.key)
        if frees:
            self.ended_on.add(reservation.node)

    def _count_down(self, key: GangKey) -> None:
        self._missing[key] -= 1
        if self._missing[key] <= 0:
            del self._missing[key]
            self._not_reserved.pop(key, None)

    def forget(self, key: GangKey) -> None:
        """Forget a finished gang and end its reservations."""
        self.end_all_of(key)
        self._missing.pop(key, None)
        self._not_reserved.pop(key, None)
        self._going.pop(key, None)
        for uid in [uid for uid, reservation in self._lent.items() if reservation.key == key]:
            self._let_go(self._lent.pop(uid))


def _has_succeeded(entry: PodEntry) -> bool:
    return entry.where is Where.BOUND and entry.pod.phase == "Succeeded"


def _living(gang: GangEntry) -> Counter[Owner | None]:
    """Return by owner the number of members with a node that are not lost.

    Members that have finished are left out: a Job says how many pods it runs at a time.
    """
    return Counter(
        entry.pod.owner
        for entry in gang.members.values()
        if entry.where is Where.ASSUMED
        or (
            entry.where is Where.BOUND
            and not (entry.pod.finished or entry.pod.terminating or entry.evicting)
        )
    )
