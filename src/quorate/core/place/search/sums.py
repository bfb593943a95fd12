"""Sums and minima that ``place.search.bounds`` looks at. Called by it."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.place.search.capacities import MANY
from quorate.core.place.search.state import State
from quorate.core.place.search.values import Sums


def poured(counts: list[int], pods: int, highest: int) -> int:
    """Return the minimum after so many pods went into the emptiest domains; at most ``highest``."""
    for index, count in enumerate(counts):
        if count >= highest:
            break
        above = counts[index + 1] if index + 1 < len(counts) else MANY
        rise = min(above - count, pods // (index + 1))
        if rise < above - count:
            return min(highest, count + rise)
        pods -= rise * (index + 1)
    return highest


def minded(state: State, level: int) -> int:
    """Return the classes whose presence in a domain of the topology lets others in, or not."""
    minded = 0
    for apart, pull in zip(state.ties.apart[level], state.ties.pulls, strict=True):
        minded |= apart
        if pull is not None and any(at == level for _, at, _ in pull.terms):
            minded |= pull.by
    return minded


def sum_of(rows: Iterable[Sums]) -> Sums:
    """Add up column by column."""
    return tuple(map(sum, zip(*rows, strict=True)))


def lacking(slots: list[int], left: list[int]) -> list[int]:
    """Return the classes that have fewer slots than pods left."""
    return [i for i, (n, count) in enumerate(zip(slots, left, strict=True)) if n < count]
