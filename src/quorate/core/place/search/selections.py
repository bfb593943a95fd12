"""Which pods of a gang are tried, where more of them wait than it needs. Called by ``search``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def ways(counts: Sequence[int], need: int) -> Iterator[list[int]]:
    """Yield how many are taken of each, ``need`` in all: those with many of the first come first.

    All the ways there are, each in time that is linear in ``counts``.
    """
    if need > sum(counts):
        return
    taken = _filled(counts, need)
    while True:
        yield taken.copy()
        free = moved = 0
        for index in reversed(range(len(counts))):
            if taken[index] and free:  # one of these less, and one more of those behind
                break
            free += counts[index] - taken[index]
            moved += taken[index]
        else:
            return
        taken[index] -= 1
        taken[index + 1 :] = _filled(counts[index + 1 :], moved + 1)


def _filled(counts: Sequence[int], need: int) -> list[int]:
    taken = []
    for count in counts:
        taken.append(min(count, need))
        need -= taken[-1]
    return taken
