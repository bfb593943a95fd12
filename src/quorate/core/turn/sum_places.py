"""The sums of free resources that gangs with minResources wait for, each with a place in an array.

In: nodes and a column. Out: the place to watch, and the numbers at all places. Owned by ``waking``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model import policy
from quorate.core.place.min_resources import EVERY_NODE, Nodes
from quorate.core.room.room import Room


class SumPlaces:
    """Places of sums. A place that nobody watches is given to another sum."""

    __slots__ = ("_places", "_sums")

    def __init__(self) -> None:
        self._sums: list[tuple[Nodes, int]] = []
        self._places: dict[tuple[object, int], int] = {}

    def place_of(self, nodes: Nodes, column: int, watched: Callable[[], Collection[int]]) -> int:
        """Return the place of a sum; ``watched`` returns the places that somebody watches.

        Beyond ``policy.SUM_PLACES_MAX`` it is that of every node: its watcher is woken too often.
        """
        found = self._places.get((nodes.name, column))
        if found is not None:
            return found
        if len(self._sums) < policy.SUM_PLACES_MAX or nodes is EVERY_NODE:
            self._sums.append((nodes, column))
            return self._named(len(self._sums) - 1)
        unwatched = set(range(len(self._sums))).difference(watched())
        if not unwatched:
            return self.place_of(EVERY_NODE, column, watched)
        place = min(unwatched)
        before, of = self._sums[place]
        del self._places[before.name, of]
        self._sums[place] = nodes, column
        return self._named(place)

    def _named(self, place: int) -> int:
        nodes, column = self._sums[place]
        self._places[nodes.name, column] = place
        return place

    def numbers(self, room: Room, watched: Collection[int], grown: Collection[int]) -> Ints:
        """Return int64[places]: the sums in this room.

        They are 0 where nobody watches, and where none of the ``grown`` rows is among the nodes:
        what was too little is so still.
        """
        found, rows = np.zeros(len(self._sums), np.int64), sorted(grown)
        for place in watched:
            nodes, column = self._sums[place]
            if nodes.mask(room)[rows].any():
                found[place] = min(nodes.in_sum(room)[column], 2.0**62)
        return found
