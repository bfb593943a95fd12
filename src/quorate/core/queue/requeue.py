"""Which blocked gangs a change of room could help. Nothing else wakes them: no timer, no flush."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorate.core.model import GangKey


class Blocked:
    """Gangs that did not fit, by the pod classes of which more would have to fit.

    Asking whether a change helps costs one question for each distinct class, however many gangs
    of that class wait.
    """

    def __init__(self) -> None:
        self._classes_of: dict[GangKey, tuple[int, ...]] = {}
        self._by_class: dict[int, dict[GangKey, None]] = {}

    def __iter__(self) -> Iterator[GangKey]:
        """Iterate over the blocked gangs, the longest blocked first."""
        return iter(self._classes_of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang is blocked."""
        return key in self._classes_of

    def __len__(self) -> int:
        """Return how many gangs are blocked."""
        return len(self._classes_of)

    def add(self, key: GangKey, class_ids: Iterable[int]) -> None:
        """Block a gang until a class of its fits somewhere where it did not."""
        self.discard(key)
        self._classes_of[key] = tuple(class_ids)
        for class_id in self._classes_of[key]:
            self._by_class.setdefault(class_id, {})[key] = None

    def discard(self, key: GangKey) -> None:
        """Forget a gang, blocked or not."""
        for class_id in self._classes_of.pop(key, ()):
            gangs = self._by_class[class_id]
            gangs.pop(key, None)
            if not gangs:
                del self._by_class[class_id]

    def woken_by(self, could_help: Callable[[int], bool]) -> set[GangKey]:
        """Return the gangs with a class (by id) that a change ``could_help``."""
        woken: set[GangKey] = set()
        for class_id, gangs in self._by_class.items():
            if could_help(class_id):
                woken.update(gangs)
        return woken
