"""When a state of ``plan.search`` cannot be completed: cheap bounds that are never too low."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.plan.search_facts import Ceiling, Cell, Domains, Inside, Kind, Outlook
from quorate.core.plan.search_state import State

_MANY = 2**40


class Bounds:
    """Keeps what it found of each cell: most cells are as they were a step ago."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[object, Inside] = {}
        self._sizes = [
            (column, size, [i for i, demand in enumerate(state.demand) if demand[column] >= size])
            for column in range(len(state.ties.columns))
            for size in sorted({demand[column] for demand in state.demand if demand[column]})
        ]
        """Classes that ask for at least as much of a column."""
        ceilings = (one for some in state.ties.ceilings for one in some)
        self._ceilings: list[Ceiling] = list(dict.fromkeys(ceilings))
        self.looked_at = 0
        """How many kinds of nodes have been looked at."""
        self.blamed: list[int] = []
        """Classes that lacked slots when the last state was given up."""

    def look(self) -> Outlook | None:
        """Return what is left at most; None: the state cannot be completed.

        Each class is looked at as if the others were not there; each set of classes that all keep
        apart as needing a domain for each of its pods; the pods that one spread constraint limits
        as filling no domain above the highest minimum that can be; and pods that need others near
        them as going to no more new domains than there are others to come.
        """
        state = self._state
        self.looked_at += len(state.cells)
        openers = [state.openers(i) for i in range(len(state.left))]
        if state.is_rooting:
            openers = [
                n + any(state.may_begin(j) for j in range(len(openers)) if pull.by >> j & 1)
                if pull is not None
                else n
                for n, pull in zip(openers, state.ties.pulls, strict=True)
            ]
        opens = sum((n > 0) << i for i, n in enumerate(openers))
        inside = {cell: self._inside(cell, opens) for cell in state.cells}
        slots = _sums(cell.slots for cell in inside.values())
        self.blamed = _lacking(slots, state.left)
        if self.blamed:
            return None
        found = list(inside.values())
        if self._too_little(found) or self._too_few_nodes(inside) or self._alone(found, openers):
            return None
        domains = [self._by_domain(level, inside) for level in range(len(state.ties.shared))]
        highest = [self._highest(number, found, domains) for number in range(len(state.counts))]
        if self._too_high(highest, found):
            return None
        for level, some in enumerate(domains):
            at_most = self._in_domains(level, some, highest, openers)
            if at_most is None:
                return None
            self.blamed = _lacking(at_most, state.left)
            if self.blamed:
                return None
            slots = [min(pair) for pair in zip(slots, at_most, strict=True)]
        spare = [n - count for n, count in zip(slots, state.left, strict=True)]
        scarce = [count / max(n, 1) for n, count in zip(slots, state.left, strict=True)]
        return Outlook(spare, highest, inside, domains, scarce)

    def _inside(self, cell: Cell, opens: int) -> Inside:
        state = self._state
        presents = tuple(some[code] for some, code in zip(state.present, cell, strict=True))
        key = state.signatures[cell], presents, opens, tuple(code >= 0 for code in cell)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(cell, opens)
        return found

    def _by_domain(self, level: int, inside: dict[Cell, Inside]) -> Domains:
        domains: Domains = {}
        for cell, found in inside.items():
            here = domains.get(cell[level])
            if here is None:
                domains[cell[level]] = list(found.slots)
            else:
                for i, n in enumerate(found.slots):
                    here[i] += n
        return domains

    # One cell

    def _look(self, cell: Cell, opens: int) -> Inside:
        state, ties = self._state, self._state.ties
        slots = [0] * len(state.left)
        free = [0] * len(ties.columns)
        nodes = [0] * len(ties.cliques)
        large = [0] * len(self._sizes)
        lowest = [_MANY] * len(ties.meters)
        tallest = [0] * len(self._ceilings)
        alone = [0] * len(slots)
        kinds: list[list[Kind]] = [[] for _ in slots]
        for kind, count in state.cells[cell].items():
            takes = self._takes(cell, kind, opens)
            self._look_at_meters(kind, takes, lowest, tallest)
            if kind.present:
                self._look_at_pulls(kind, count, alone)
            if not any(takes):
                continue
            for i, n in enumerate(takes):
                if n:
                    slots[i] += count * n
                    kinds[i].append(kind)
            free = [total + count * f for total, f in zip(free, kind.free, strict=True)]
            for number, (column, size, members) in enumerate(self._sizes):
                most = min(kind.free[column] // size, sum(takes[i] for i in members))
                large[number] += count * most
            apart = ties.statics[kind.static].apart
            for number, (clique, level) in enumerate(ties.cliques):
                members = [i for i in range(len(slots)) if clique >> i & 1]
                if any(takes[i] for i in members):
                    keeps = level >= 0 or all(apart[i] & clique == clique for i in members)
                    nodes[number] += count if keeps else _MANY
        return Inside(
            tuple(slots),
            tuple(free),
            tuple(nodes),
            tuple(large),
            tuple(lowest),
            tuple(tallest),
            tuple(alone),
            tuple(map(tuple, kinds)),
        )

    def _takes(self, cell: Cell, kind: Kind, opens: int) -> list[int]:
        """Return how many pods of each class one node of the kind takes at most."""
        state = self._state
        static = state.ties.statics[kind.static]
        self.looked_at += 1
        takes = []
        for i, demand in enumerate(state.demand):
            most = 0
            may = opens >> i & 1 or state.is_near(i, cell, kind, static)
            if may and state.has_room(i, cell, kind, static):
                each = (f // d for f, d in zip(kind.free, demand, strict=True) if d)
                most = 1 if static.apart[i] >> i & 1 else min(each, default=_MANY)
            takes.append(most)
        return takes

    def _look_at_meters(
        self, kind: Kind, takes: list[int], lowest: list[int], tallest: list[int]
    ) -> None:
        ties = self._state.ties
        if not kind.meters:
            return
        static = ties.statics[kind.static]
        for number, meter in enumerate(ties.meters):
            if meter.topology < 0 and static.in_minimum >> number & 1:
                more = 0
                if static.counted >> number & 1:
                    more = sum(n for i, n in enumerate(takes) if meter.by >> i & 1)
                lowest[number] = min(lowest[number], kind.meters[meter.place] + more)
        for number, ceiling in enumerate(self._ceilings):
            counter = ties.meters[ceiling.counter]
            if counter.topology < 0 and kind.present & counter.by:
                tallest[number] = max(tallest[number], kind.meters[counter.place])

    def _look_at_pulls(self, kind: Kind, count: int, alone: list[int]) -> None:
        ties = self._state.ties
        near = ties.statics[kind.static].near
        for i, pull in enumerate(ties.pulls):
            if pull is not None and kind.present >> i & 1:
                others = kind.present & pull.by & ~ties.shadowed[i]
                if any(
                    level < 0 and not others and not near >> number & 1
                    for number, level, _ in pull.terms
                ):
                    alone[i] += count

    # Minima

    def _highest(self, number: int, found: list[Inside], domains: list[Domains]) -> int:
        """Return the highest that a meter's minimum can get."""
        state, meter = self._state, self._state.ties.meters[number]
        if meter.topology < 0:
            return min(meter.elsewhere, min((one.lowest[number] for one in found), default=_MANY))
        highest = meter.elsewhere
        who = [(i, left) for i, left in enumerate(state.left) if left and meter.by >> i & 1]
        counts = []
        for code, count in state.counts[number].items():
            if code not in meter.in_minimum:
                continue
            counts.append(count)
            slots = domains[meter.topology].get(code)
            if slots is not None:
                highest = min(highest, count + sum(min(slots[i], left) for i, left in who))
            else:
                highest = min(highest, count)
        counts.sort()
        pods = sum(left for _, left in who)
        for index, count in enumerate(counts):  # all that come, poured into the emptiest
            if count >= highest:
                break
            above = counts[index + 1] if index + 1 < len(counts) else _MANY
            rise = min(above - count, pods // (index + 1))
            if rise < above - count:
                return min(highest, count + rise)
            pods -= rise * (index + 1)
        return highest

    def _top(self, ceiling: Ceiling, highest: list[int]) -> int:
        return ceiling.max_skew + (0 if ceiling.too_few else highest[ceiling.meter])

    def _too_high(self, highest: list[int], found: list[Inside]) -> bool:
        """Whether a domain holds more already than any minimum will allow."""
        state = self._state
        for number, ceiling in enumerate(self._ceilings):
            counter = state.ties.meters[ceiling.counter]
            top = self._top(ceiling, highest)
            if counter.topology < 0:
                if any(one.tallest[number] > top for one in found):
                    return True
                continue
            present = state.present[counter.topology]
            for code, count in state.counts[ceiling.counter].items():
                if count > top and present[code] & counter.by:
                    return True
        return False

    # Domains

    def _in_domains(
        self, level: int, domains: Domains, highest: list[int], openers: list[int]
    ) -> list[int] | None:
        """Return slots by class, looking at one topology; None: classes together lack slots."""
        ties, classes = self._state.ties, range(len(self._state.left))
        caps: list[dict[int, int]] = [{} for _ in classes]
        for i in classes:
            if ties.apart[level][i] >> i & 1:
                caps[i] = {code: 1 for code in domains if code >= 0}
        for ceiling in self._ceilings:
            if ties.meters[ceiling.counter].topology != level:
                continue
            if not self._limit(ceiling, self._top(ceiling, highest), domains, caps):
                return None
        at_most = []
        for i in classes:
            cap = caps[i]
            here = {
                code: min(slots[i], cap.get(code, _MANY))
                for code, slots in domains.items()
                if slots[i]
            }
            at_most.append(self._near(i, level, here, openers[i], domains))
        self.blamed = [i for i in classes if at_most[i] < 0]
        return None if self.blamed else at_most

    def _near(
        self, index: int, level: int, slots: dict[int, int], openers: int, domains: Domains
    ) -> int:
        """Return how many slots a class has, if each member to come opens one domain for it.

        Below 0: pods wait for a pod near them in more domains than members can come to.
        """
        state, pull = self._state, self._state.ties.pulls[index]
        for _, at, near in pull.terms if pull is not None else ():
            if at != level or pull is None:
                continue
            mine = pull.by & ~state.ties.shadowed[index]
            by = [j for j, count in enumerate(state.left) if count and mine >> j & 1]
            rooted = {cell[level] for who, cell in state.roots if pull.by >> who & 1}
            open_slots, closed = 0, []
            for code, members in state.present[level].items():
                is_settled = members & mine or code in near or code in rooted
                if is_settled or members & (pull.by | 1 << index):
                    open_slots += slots.get(code, 0)
                elif code in slots and (state.is_rooting or any(domains[code][j] for j in by)):
                    closed.append(slots[code])
                if members >> index & 1 and not is_settled:
                    openers -= 1
                    if openers < 0 or not any(domains[code][j] for j in by):
                        return -1
            if len(closed) > openers:
                closed.sort(reverse=True)
            return open_slots + sum(closed[:openers])
        return sum(slots.values())

    def _limit(
        self, ceiling: Ceiling, top: int, domains: Domains, caps: list[dict[int, int]]
    ) -> bool:
        """Lower ``caps`` to what spread allows; whether it leaves room for all it limits."""
        state = self._state
        counts = state.counts[ceiling.counter]
        by = state.ties.meters[ceiling.counter].by
        if not ceiling.itself:
            return True
        members = [i for i in range(len(caps)) if by >> i & 1]
        room = 0
        for code, slots in domains.items():
            quota = max(top - counts.get(code, 0), 0)
            for i in members:
                cap = caps[i]
                cap[code] = min(cap.get(code, _MANY), quota)
            room += min(quota, sum(slots[i] for i in members))
        if room < sum(state.left[i] for i in members):
            self.blamed = members
            return False
        return True

    def _alone(self, found: list[Inside], openers: list[int]) -> bool:
        """Whether more nodes wait for a pod that attracts others than such pods can come."""
        rooted = len(self._state.roots)
        return any(
            sum(one.alone[i] for one in found) > n + rooted
            for i, n in enumerate(openers)
            if self._state.ties.pulls[i] is not None
        )

    def _too_few_nodes(self, inside: dict[Cell, Inside]) -> bool:
        """Whether classes that all keep apart have more pods than there are domains for them."""
        state = self._state
        for number, (clique, level) in enumerate(state.ties.cliques):
            left = sum(count for i, count in enumerate(state.left) if clique >> i & 1)
            nodes, used = 0, set()
            for cell, found in inside.items():
                if not found.nodes[number]:
                    continue
                if level >= 0 and cell[level] >= 0:
                    used.add(cell[level])
                else:
                    nodes += found.nodes[number] if level < 0 else left
            if nodes + len(used) < left:
                self.blamed = [i for i in range(len(state.left)) if clique >> i & 1]
                return True
        return False

    def _too_little(self, inside: list[Inside]) -> bool:
        """Whether the pods that are left, or the large ones, ask for more than there is in sum."""
        state = self._state
        free = _sums(cell.free for cell in inside)
        asked = [
            sum(n * demand[column] for n, demand in zip(state.left, state.demand, strict=True))
            for column in range(len(free))
        ]
        if _lacks(free, asked):
            return True
        large = _sums(cell.large for cell in inside)
        for (_, _, members), n in zip(self._sizes, large, strict=True):
            if sum(state.left[i] for i in members) > n:
                self.blamed = members
                return True
        return False


def _sums(rows: Iterable[tuple[int, ...]]) -> list[int]:
    return [sum(one) for one in zip(*rows, strict=True)]


def _lacks(has: list[int], needs: list[int]) -> bool:
    return any(n < need for n, need in zip(has, needs, strict=True))


def _lacking(slots: list[int], left: list[int]) -> list[int]:
    return [i for i, (n, count) in enumerate(zip(slots, left, strict=True)) if n < count]
