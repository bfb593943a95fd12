"""An index of selectors by namespace and one label, to find candidates that may match a pod.

Used by ``cluster.labels.matching``, which compares each candidate. A selector is listed in places:
(namespace, key, value), (namespace, key) or (namespace,). It has at most as many places as it lists
namespaces or values; a label set looks in the places of its labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from quorate.core.cluster.labels.label_sets import LabelSet
from quorate.core.model import LabelSelector, PodSelector

_Listed = TypeVar("_Listed", bound=Hashable)
_Place = tuple[str, ...]
_ANY = ""
"""Stands for the namespace of selectors that select namespaces by label."""


class SelectorIndex(Generic[_Listed]):
    """Things (numbers of selectors, or objects that have one), each listed by its selector."""

    def __init__(self) -> None:
        self._listed: dict[_Place, dict[_Listed, None]] = {}
        self._places: dict[_Listed, list[_Place]] = {}

    def __len__(self) -> int:
        """Return the number of things."""
        return len(self._places)

    def add(self, selector: PodSelector, one: _Listed) -> None:
        """List a thing that is not listed yet."""
        places = self._places[one] = self._places_for(selector)
        for place in places:
            self._listed.setdefault(place, {})[one] = None

    def remove(self, one: _Listed) -> None:
        """Forget a thing."""
        for place in self._places.pop(one):
            there = self._listed[place]
            del there[one]
            if not there:
                del self._listed[place]

    def candidates(self, label_set: LabelSet) -> Iterator[_Listed]:
        """Yield candidates, each once: all things whose selectors match the set, and others."""
        if not self._listed:
            return
        listed = self._listed
        for namespace in dict.fromkeys((label_set.namespace, _ANY)):
            yield from listed.get((namespace,), ())
            for key, value in label_set.by_key.items():
                yield from listed.get((namespace, key), ())
                yield from listed.get((namespace, key, value), ())

    def _places_for(self, selector: PodSelector) -> list[_Place]:
        """Return the places for one of the selector's labels: few places with few things.

        A requirement of a value is preferred to one of a key. Those of ``also`` count as well.
        """
        together = [one.labels for one in (selector, *selector.also)]
        labels = [one for one in together if one is not None]
        if len(labels) < len(together):
            return []  # it matches no pod
        is_any = selector.namespace_selector is not None
        namespaces = [_ANY] if is_any else list(dict.fromkeys(selector.namespaces))
        ways = _ways(namespaces, labels)
        if not ways:
            return [(name,) for name in namespaces]
        return ways[0] if len(ways) == 1 else min(ways, key=self._crowd)

    def _crowd(self, places: list[_Place]) -> int:
        return len(places) + sum(len(self._listed.get(place, ())) for place in places)


def _ways(namespaces: list[str], labels: list[LabelSelector]) -> list[list[_Place]]:
    """Return the possible lists of places, none longer than the selector's own lists.

    A requirement with several values and several namespaces is listed by its key alone.
    """
    wanted = [one for part in labels for one in part.requirements]
    by_value: list[list[_Place]] = [
        [(name, one.key, value) for name in namespaces for value in dict.fromkeys(one.values)]
        for one in wanted
        if one.operator == "In" and (len(namespaces) <= 1 or len(one.values) <= 1)
    ]
    if by_value:
        return by_value
    keys = [one.key for one in wanted if one.operator in ("In", "Exists")]
    return [[(name, key) for name in namespaces] for key in keys]
