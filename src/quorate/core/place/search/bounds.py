"""When a state of ``place.search.joint`` cannot be completed: cheap bounds that are never too low.

What there is in a cell is added up from its kinds of nodes once and then follows each move, until
members change what others mean to it.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import accumulate
from operator import add, sub

from quorate.core.place.search.capacities import MANY, Fits, Shares
from quorate.core.place.search.state import Move, State, Undo
from quorate.core.place.search.sums import lacking, minded, poured, sum_of
from quorate.core.place.search.values import Ceiling, Cell, Inside, Kind, Outlook, Share, Sums, Work

_Context = tuple[int, ...]
"""What the shares of a cell depend on: the classes for which others may open domains, and those
present in each of its shared domains, as far as anybody minds them; -1: no domain."""


class Bounds:
    """Looks at states."""

    def __init__(self, state: State, fits: Fits, work: Work) -> None:
        self._state = state
        self._work = work
        self._classes = range(len(state.left))
        self._fits = fits
        self._shares_of = Shares(state, fits)
        ceilings = self._shares_of.ceilings
        self._ceilings: list[Ceiling] = ceilings
        self._has_local = any(meter.topology < 0 for meter in state.ties.meters)
        self._minded = [minded(state, level) for level in range(len(state.ties.shared))]
        self._cells_in: list[dict[int, list[Cell]]] = [{} for _ in state.ties.shared]
        for cell in state.cells:
            for level, code in enumerate(cell):
                self._cells_in[level].setdefault(code, []).append(cell)
        self._shares: dict[_Context, dict[Kind, Share]] = {}
        self._most: dict[tuple[_Context, int, int], tuple[int, ...]] = {}
        """By context, facts of the node and classes on it: see ``Shares.most``."""
        self._known: dict[tuple[int, _Context], Inside] = {}
        self.blamed: list[int] = []
        """Classes that lacked slots when the last state was given up."""

    def look(
        self, before: Outlook | None, made: tuple[Move, Undo] | None
    ) -> Generator[None, None, Outlook | None]:
        """Return what is left at most; None: the state cannot be completed. Yields between pieces.

        ``before`` is what was left before the move that was ``made``, if any was; None: not known.

        Each class is looked at as if the others were not there; each set of classes that all keep
        apart as needing a domain for each of its pods; the pods that one spread constraint limits
        as filling no domain above the highest minimum that can be; and pods that need others near
        them as going to no more new domains than there are others to come.
        """
        openers = self._openers()
        opens = sum((n > 0) << i for i, n in enumerate(openers))
        if before is None or before.opens != opens:
            found = yield from self._from_scratch(opens)
        elif made is None:
            found = before
        else:
            found = yield from self._after(before, *made)
        return self._judge(found, openers)

    def _openers(self) -> list[int]:
        """Return by class for how many domains at most members to come may open."""
        state = self._state
        self._work.done += len(self._classes)
        openers = [state.openers(i) for i in self._classes]
        if not state.is_rooting:
            return openers
        first = sum(1 << j for j in self._classes if state.left[j] and state.may_begin(j))
        return [
            n + bool(pull.by & first) if pull is not None else n
            for n, pull in zip(openers, state.ties.pulls, strict=True)
        ]

    # What there is

    def _from_scratch(self, opens: int) -> Generator[None, None, Outlook]:
        inside = {}
        for cell in self._state.cells:
            inside[cell] = yield from self._add_up(cell, opens)
        whole = sum_of(one.sums for one in inside.values())
        domains = [
            {code: sum_of(inside[cell].sums for cell in cells) for code, cells in some.items()}
            for some in self._cells_in
        ]
        self._work.done += 2 * len(inside) * (1 + len(domains))
        return Outlook(opens, inside, whole, domains, [], [], [], [])

    def _after(self, before: Outlook, move: Move, undo: Undo) -> Generator[None, None, Outlook]:
        inside, whole = before.inside.copy(), before.whole
        domains = [some.copy() for some in before.domains]
        self._work.done += 16 + len(inside) // 8
        present = (some[code] for some, code in zip(self._state.present, move.cell, strict=True))
        touched: dict[Cell, None] = {}
        for level, (now, then) in enumerate(zip(present, undo.masks, strict=True)):
            if (now ^ then) & self._minded[level]:
                touched |= dict.fromkeys(self._cells_in[level][move.cell[level]])
        for cell in touched or (move.cell,):
            was = inside[cell]
            if touched:
                inside[cell] = yield from self._add_up(cell, before.opens)
            else:
                inside[cell] = self._follow(was, move, before.opens)
            change = tuple(map(sub, inside[cell].sums, was.sums))
            whole = tuple(map(add, whole, change))
            for some, code in zip(domains, cell, strict=True):
                some[code] = tuple(map(add, some[code], change))
        return before._replace(inside=inside, whole=whole, domains=domains)

    def _context(self, cell: Cell, opens: int) -> _Context:
        minded = zip(self._state.present, cell, self._minded, strict=True)
        return opens, *(some[code] & mask if code >= 0 else -1 for some, code, mask in minded)

    def _add_up(self, cell: Cell, opens: int) -> Generator[None, None, Inside]:
        context = self._context(cell, opens)
        key = self._state.content(cell), context
        self._work.done += 2
        if key in self._known:
            return self._known[key]
        kinds = self._state.cells[cell]
        self._fits.learn(kind.free for kind in kinds)
        shares = self._shares.setdefault(context, {})
        sums: Sums = (0,) * self._shares_of.width
        for kind, count in kinds.items():
            if kind not in shares:
                shares[kind] = self._share(cell, kind, context)
                yield
            sums = tuple([a + count * b for a, b in zip(sums, shares[kind].sums, strict=True)])
        self._work.done += len(kinds) * (1 + len(sums) // 16)
        yield
        lowest: tuple[int, ...] = ()
        tallest: tuple[int, ...] = ()
        if self._has_local:
            self._work.done += len(kinds)
            lowest = tuple(map(min, zip(*(shares[kind].lowest for kind in kinds), strict=True)))
            tallest = tuple(map(max, zip(*(shares[kind].tallest for kind in kinds), strict=True)))
        found = self._known[key] = Inside(sums, lowest, tallest, shares, {})
        return found

    def _follow(self, before: Inside, move: Move, opens: int) -> Inside:
        """Return what is in a cell after a move that changes nothing but a node in it."""
        shares = before.shares
        if move.after not in shares:
            shares[move.after] = self._share(move.cell, move.after, self._context(move.cell, opens))
        lost, got = shares[move.kind], shares[move.after]
        sums = tuple(map(add, before.sums, map(sub, got.sums, lost.sums)))
        if not self._has_local:
            return Inside(sums, (), (), shares, {})
        tallest = tuple(map(max, before.tallest, got.tallest))  # one pod more is never less tall
        lowest = tuple(
            min(least, new)
            if old > least or new <= least
            else self._least(number, move.cell, shares)
            for number, (least, old, new) in enumerate(
                zip(before.lowest, lost.lowest, got.lowest, strict=True)
            )
        )
        return Inside(sums, lowest, tallest, shares, {})

    def _least(self, number: int, cell: Cell, shares: dict[Kind, Share]) -> int:
        kinds = self._state.cells[cell]
        self._work.done += len(kinds) // 4
        return min(shares[kind].lowest[number] for kind in kinds)

    def _share(self, cell: Cell, kind: Kind, context: _Context) -> Share:
        self._work.done += self._shares_of.work_of_one
        key = context, kind.static, kind.present
        if key not in self._most:
            self._work.done += 2 * len(self._classes)
            self._most[key] = self._shares_of.most(cell, kind, context[0])
        return self._shares_of.of(kind, self._most[key])

    # What it is good for

    def _judge(self, found: Outlook, openers: list[int]) -> Outlook | None:
        state, at = self._state, self._shares_of
        self._work.done += (
            16 + 3 * len(self._classes) + len(found.inside) // 4 * (1 + self._has_local)
        )
        slots = list(found.whole[: at.free])
        self.blamed = lacking(slots, state.left)
        if self.blamed or self._too_little(found.whole) or self._too_few_nodes(found):
            return None
        if self._too_many_alone(found.whole[at.alone :], openers):
            return None
        minima = [self._highest(number, found) for number in range(len(state.counts))]
        highest = [most for most, _ in minima]
        if self._too_high(highest, found):
            return None
        for level in range(len(found.domains)):
            at_most = self._in_domains(level, found, highest, openers)
            if at_most is None:
                return None
            self.blamed = lacking(at_most, state.left)
            if self.blamed:
                return None
            slots = list(map(min, slots, at_most))
        spare = list(map(sub, slots, state.left))
        scarce = [count / max(n, 1) for n, count in zip(slots, state.left, strict=True)]
        return found._replace(
            highest=highest, later=[less for _, less in minima], spare=spare, scarce=scarce
        )

    def _too_little(self, whole: Sums) -> bool:
        """Whether the pods that are left, or the large ones, ask for more than there is in sum."""
        state, at = self._state, self._shares_of
        for column, free in enumerate(whole[at.free : at.nodes]):
            asked = (n * demand[column] for n, demand in zip(state.left, state.demand, strict=True))
            if sum(asked) > free:
                return True
        number = at.large
        for sizes in at.sizes:
            left = list(accumulate(state.left[i] for i in sizes.order))
            for end in sizes.ends:
                if left[end - 1] > whole[number]:
                    self.blamed = sizes.order[:end]
                    return True
                number += 1
        return False

    def _too_few_nodes(self, found: Outlook) -> bool:
        """Whether classes that all keep apart have more pods than there are domains for them."""
        state, at = self._state, self._shares_of
        for number, (clique, level) in enumerate(state.ties.cliques):
            members = [i for i in self._classes if clique >> i & 1]
            left = sum(state.left[i] for i in members)
            nodes = found.whole[at.nodes + number]
            if level >= 0:
                used = [
                    code for code, sums in found.domains[level].items() if sums[at.nodes + number]
                ]
                nodes = left if any(code < 0 for code in used) else len(used)
            if nodes < left:
                self.blamed = members
                return True
        return False

    def _too_many_alone(self, alone: Sums, openers: list[int]) -> bool:
        """Whether more nodes wait for a pod that attracts others than such pods can come."""
        rooted = len(self._state.roots)
        pulls = self._state.ties.pulls
        return any(
            pull is not None and waiting > n + rooted
            for pull, waiting, n in zip(pulls, alone, openers, strict=True)
        )

    # Minima

    def _highest(self, number: int, found: Outlook) -> tuple[int, int]:
        """Return the highest that a meter's minimum can get.

        And if one of the pods to come does not add to it, because it goes where there are enough.
        """
        state, meter = self._state, self._state.ties.meters[number]
        if meter.topology < 0:
            lowest = [one.lowest[number] for one in found.inside.values()]
            return (min(meter.elsewhere, *lowest),) * 2
        highest, counts = meter.elsewhere, []
        who = [(i, left) for i, left in enumerate(state.left) if left and meter.by >> i & 1]
        domains = found.domains[meter.topology]
        self._work.done += len(domains) * (1 + len(who) // 4)
        for code, count in state.counts[number].items():
            if code in meter.in_minimum:
                counts.append(count)
                slots = domains.get(code)
                more = sum(min(slots[i], left) for i, left in who) if slots is not None else 0
                highest = min(highest, count + more)
        counts.sort()
        pods = sum(left for _, left in who)
        return poured(counts, pods, highest), poured(counts, max(pods - 1, 0), highest)

    def _top(self, ceiling: Ceiling, highest: list[int]) -> int:
        return ceiling.max_skew + (0 if ceiling.too_few else highest[ceiling.meter])

    def _too_high(self, highest: list[int], found: Outlook) -> bool:
        """Whether a domain holds more already than any minimum will allow."""
        state = self._state
        for number, ceiling in enumerate(self._ceilings):
            counter = state.ties.meters[ceiling.counter]
            top = self._top(ceiling, highest)
            if counter.topology < 0:
                if any(one.tallest[number] > top for one in found.inside.values()):
                    return True
                continue
            present = state.present[counter.topology]
            for code, count in state.counts[ceiling.counter].items():
                if count > top and present[code] & counter.by:
                    return True
        return False

    # Domains

    def _in_domains(
        self, level: int, found: Outlook, highest: list[int], openers: list[int]
    ) -> list[int] | None:
        """Return slots by class, looking at one topology; None: classes together lack slots."""
        ties, domains = self._state.ties, found.domains[level]
        caps: dict[int, dict[int, int]] = {
            i: {code: 1 for code in domains if code >= 0}
            for i in self._classes
            if ties.apart[level][i] >> i & 1
        }
        for ceiling in self._ceilings:
            if ties.meters[ceiling.counter].topology != level or not ceiling.itself:
                continue
            if not self._limit(ceiling, self._top(ceiling, highest), domains, caps):
                return None
        at_most = list(found.whole[: len(self._classes)])
        for i in self._classes:
            near = (
                [near for _, at, near in pull.terms if at == level]
                if (pull := ties.pulls[i])
                else []
            )
            if i not in caps and not near:
                continue
            cap = caps.get(i, {})
            here = {
                code: min(slots[i], cap.get(code, MANY))
                for code, slots in domains.items()
                if slots[i]
            }
            self._work.done += len(domains) // 4 * (1 + len(near))
            at_most[i] = sum(here.values())
            if near:
                at_most[i] = self._near(i, level, here, near[0], openers[i], domains)
        self.blamed = [i for i in self._classes if at_most[i] < 0]
        return None if self.blamed else at_most

    def _near(
        self,
        index: int,
        level: int,
        slots: dict[int, int],
        near: frozenset[int],
        openers: int,
        domains: dict[int, Sums],
    ) -> int:
        """Return how many slots a class has, if each member to come opens one domain for it.

        Below 0: pods wait for a pod near them in more domains than members can come to.
        """
        state, pull = self._state, self._state.ties.pulls[index]
        assert pull is not None, "a class without affinity is not asked about"
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

    def _limit(
        self,
        ceiling: Ceiling,
        top: int,
        domains: dict[int, Sums],
        caps: dict[int, dict[int, int]],
    ) -> bool:
        """Lower ``caps`` to what spread allows; whether it leaves room for all it limits."""
        state = self._state
        counts = state.counts[ceiling.counter]
        by = state.ties.meters[ceiling.counter].by
        members = [i for i in self._classes if by >> i & 1]
        self._work.done += len(domains) // 2 * (1 + len(members))
        room = 0
        for code, slots in domains.items():
            quota = max(top - counts.get(code, 0), 0)
            for i in members:
                cap = caps.setdefault(i, {})
                cap[code] = min(cap.get(code, MANY), quota)
            room += min(quota, sum(slots[i] for i in members))
        if room < sum(state.left[i] for i in members):
            self.blamed = members
            return False
        return True
