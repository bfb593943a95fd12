"""What a gang without room needs, what there is where it may run, and who holds the rest.

In: a gang's waiting members, the room and the cluster. Out: a ``Lack``, and its sentence and hint.
Called by ``diagnosis``. All is counted in the room as it is, with no member placed in thought.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, key_of
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.slots import slots_of
from quorate.core.model import GangKey, policy
from quorate.core.model.quantity import format_amount
from quorate.core.place.greedy import Demand
from quorate.core.place.members import Members
from quorate.core.room.room import Room
from quorate.core.rules.masks import mask_of
from quorate.core.words.counting import counted


class Held(NamedTuple):
    """Amounts of a resource by the gang, or the pod of no gang, whose pods hold them."""

    amounts: tuple[tuple[GangKey, int], ...] = ()
    """The largest first."""
    in_all: int = 0
    is_cut: bool = False
    """Whether there were more pods than are looked at: the fullest nodes come first."""


class Holdings:
    """Who holds what, at one instant; each question is answered once."""

    __slots__ = ("_cluster", "_found")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[tuple[int, bytes], Held] = {}

    def of(self, column: int, used: Ints) -> Held:
        """Return who holds a resource; ``used`` is int64[n], how much of it on each node."""
        question = column, used.tobytes()
        found = self._found.get(question)
        if found is None:
            found = self._found[question] = self._looked_up(column, used)
        return found

    def _looked_up(self, column: int, used: Ints) -> Held:
        amounts: Counter[GangKey] = Counter()
        asked: dict[PodClass, int] = {}
        table, left = self._cluster.nodes, policy.HOLDERS_PODS_MAX
        for row in np.argsort(-used, kind="stable")[: int((used > 0).sum())].tolist():
            node = table.nodes[row]
            pods = self._cluster.pods_on(node.name) if node is not None else []
            left -= len(pods)
            if left < 0:
                break
            for entry in pods:
                amount = asked.get(entry.pod_class)
                if amount is None:
                    amount = dict(entry.pod_class.demands).get(column, 0)
                    asked[entry.pod_class] = amount
                if amount and entry.row == row:
                    gang = entry.gang
                    amounts[gang.key if gang is not None else key_of(entry.pod)] += amount
        largest = sorted(amounts.items(), key=lambda one: (-one[1], one[0]))
        return Held(tuple(largest), sum(amounts.values()), left < 0)


@dataclass(frozen=True, slots=True)
class Lack:
    """What the members that have to be placed need of a resource, and how the nodes stand.

    The nodes are those that the members may use by their attributes, cordoned ones too; amounts are
    in base units. ``in_use`` includes what the gang's ``own`` members hold.
    """

    gang: GangKey
    resource: str
    needed: int
    size: int
    in_use: int
    own: int
    free: int
    cordoned: int
    """What is free on cordoned nodes."""
    held: Held
    members: tuple[int, int, str] | None = None
    """How many members of a class have to be placed, how many the nodes hold when empty, if that
    is fewer; and the name of one."""
    is_started: bool = False

    @property
    def never(self) -> int:
        """How much the nodes lack even when others leave them; 0: nothing."""
        return max(0, self.needed - (self.size - self.own))

    @property
    def words(self) -> str:
        """The sentence, without a full stop."""
        never = "they can never all run here" if self.is_started else "it can never start here"
        if not self.never and self.members is not None:
            needed, hold, name = self.members
            members = counted(needed, "member")
            return (
                f"{never}: the nodes that it may use hold {hold} of {members} like {name}, "
                "were they empty"
            )
        has = (
            f"needs {self._of(self.needed)} {self.resource}; "
            f"the nodes that it may use have {self._of(self.size)}"
        )
        if self.never:
            return f"{never}: {has}, {self._in_use()}"
        parts = f"{self._of(self.free)} free"
        if self.needed <= self.free:
            parts += " in too small parts"
        if self.cordoned:
            parts += f", {self._of(self.cordoned)} free and cordoned"
        if self.own:
            parts += f", {self._of(self.own)} in use by its own members"
        if reserved := self.size - self.free - self.cordoned - self.in_use:
            parts += f", {self._of(reserved)} reserved" if reserved > 0 else ""
        return f"{has}, {parts}{self._holders()}"

    @property
    def hint(self) -> str:
        """What would have to change, if nothing that others hold is enough; else ""."""
        less = "or ask for less" if self.is_started else "ask for less, or lower min"
        if self.never:
            return f"add nodes with {self._of(self.never)} {self.resource}, {less}"
        if self.members is not None:
            needed, hold, _ = self.members
            return f"add nodes for {counted(needed - hold, 'member')}, {less}"
        return ""

    def _of(self, amount: int) -> str:
        return format_amount(self.resource, amount)

    def _in_use(self) -> str:
        if not self.own:
            return f"{self._of(self.in_use)} in use"
        if self.own == self.in_use:
            return f"{self._of(self.own)} in use by its own members"
        return f"{self._of(self.in_use)} in use, {self._of(self.own)} of it by its own members"

    def _holders(self) -> str:
        """Name those who hold most, the largest first, and count the others."""
        held = self.held
        first_few = held.amounts[: policy.LISTED_MAX + 1]
        few = [one for one in first_few if one[0] != self.gang][: policy.LISTED_MAX]
        more = " or more" * held.is_cut
        named = [
            f"{'pod' if key.is_single else 'gang'} {key} ({self._of(n)}{more})" for key, n in few
        ]
        others = len(held.amounts) - len(few) - bool(self.own)
        if held.is_cut:
            named.append("others")
        elif others > 0:
            rest = held.in_all - self.own - sum(n for _, n in few)
            named.append(f"{counted(others, 'other')} ({self._of(rest)})")
        if not named:
            return ""
        *first, last = named
        return f"; the rest is held by {', '.join(first)}{' and ' * bool(first)}{last}"


class _Ask(NamedTuple):
    """What members ask of one resource, and the nodes that they may use for it."""

    resource: str
    column: int
    amounts: Mapping[PodClass, int]
    """What one pod of each class that asks for it asks."""
    where: Mask
    is_open: Mask
    """Those of ``where`` that are not cordoned."""


def lack_of(
    gang: GangEntry,
    members: Members,
    demand: Demand,
    usable: Mapping[PodClass, Mask],
    room: Room,
    holdings: Holdings,
) -> Lack | None:
    """Return what the gang lacks most; None: no amounts are in the way.

    ``usable`` is bool[n] by class: nodes that it may use by their attributes, cordoned ones too.
    """
    own = _own(gang, room)
    empty = room.snapshot.allocatable - own
    whole = _too_few(members, demand, usable, empty)
    lacks = []
    for ask in _asks(demand, usable, room):
        used = _used(ask, room)
        lack = Lack(
            gang=gang.key,
            resource=ask.resource,
            needed=_least(demand, ask.amounts),
            size=int(room.snapshot.allocatable[ask.where, ask.column].sum()),
            in_use=int(used.sum()),
            own=int(own[ask.where, ask.column].sum()),
            free=_free(room, ask.column, ask.is_open),
            cordoned=_free(room, ask.column, ask.where & ~ask.is_open),
            held=Held(),
            members=whole,
            is_started=gang.started,
        )
        lacks.append((_rank(lack, ask, room), lack, ask.column, used))
    if not lacks:
        return None
    _, lack, column, used = max(lacks, key=lambda one: one[0])
    if lack.never or lack.members is not None:
        return lack
    is_open = {one: nodes & mask_of(one, room) for one, nodes in usable.items()}
    if lack.needed <= lack.free and _too_few(members, demand, is_open, room.free) is None:
        return None
    return replace(lack, held=holdings.of(column, used))


def _asks(demand: Demand, usable: Mapping[PodClass, Mask], room: Room) -> Iterable[_Ask]:
    """Yield what the members ask for, of what nodes list and where there are nodes for it."""
    by_name: dict[str, dict[PodClass, int]] = {}
    for pod_class, _ in demand.classes:
        for name, amount in pod_class.asked:
            by_name.setdefault(name, {})[pod_class] = amount
    for name, amounts in by_name.items():
        column = room.snapshot.table.resources.columns.get(name)
        where = np.any([usable[one] for one in amounts], axis=0)
        if column is not None and where.any():
            is_open = np.any([usable[one] & mask_of(one, room) for one in amounts], axis=0)
            yield _Ask(name, column, amounts, where, is_open)


def _rank(lack: Lack, ask: _Ask, room: Room) -> tuple[float, float, int, bool]:
    """Return a key that is larger for what is more in the way."""
    never = lack.needed / max(lack.size - lack.own, 1) if lack.never else 0.0
    short = lack.needed / lack.free if lack.free else np.inf
    pod_class, amount = min(ask.amounts.items(), key=lambda one: one[1])
    free = room.free[ask.is_open]
    nodes_short = int((free[:, ask.column] // amount <= slots_of(pod_class, free)).sum())
    return never, short if lack.needed > lack.free else 0.0, nodes_short, "/" in lack.resource


def _used(ask: _Ask, room: Room) -> Ints:
    """Return int64[n]: what pods use of the resource on each node that the members may use."""
    size, free = room.snapshot.allocatable[:, ask.column], room.snapshot.free[:, ask.column]
    return np.where(ask.where, size - np.clip(free, 0, size), 0)


def _free(room: Room, column: int, nodes: Mask) -> int:
    return int(np.maximum(room.free[nodes, column], 0).sum())


def _least(demand: Demand, amounts: Mapping[PodClass, int]) -> int:
    """Return the least that the pods which have to be placed ask for together."""
    left, least = demand.need or demand.pods, 0
    for amount, count in sorted((amounts.get(one, 0), count) for one, count in demand.classes):
        least += amount * min(count, left)
        left -= min(count, left)
    return least


def _own(gang: GangEntry, room: Room) -> Ints:
    """Return int64[n, r]: what the gang's members with a node hold there."""
    own = np.zeros_like(room.snapshot.allocatable)
    for entry in gang.members.values() if gang.bound + gang.assumed else ():
        if entry.row >= 0:
            for column, amount in entry.pod_class.demands:
                own[entry.row, column] += amount
    return own


def _too_few(
    members: Members, demand: Demand, nodes: Mapping[PodClass, Mask], free: Ints
) -> tuple[int, int, str] | None:
    """Return the first class of which the nodes hold too few, by resources; as ``Lack.members``.

    ``nodes`` is bool[n] by class, ``free`` int64[n, r].
    """
    spare = demand.pods - (demand.need or demand.pods)
    for pod_class, count in demand.classes:
        hold, needed = int(slots_of(pod_class, free[nodes[pod_class]]).sum()), count - spare
        if hold < needed:
            return needed, hold, min(entry.pod.name for entry in members[pod_class])
    return None
