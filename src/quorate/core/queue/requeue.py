"""Which blocked gangs a change of room could help. Nothing else wakes them: no timer, no flush."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorate.core.model import GangKey
from quorate.core.state.encoding import PodClass

_Need = tuple[PodClass, int | None]


class Blocked:
    """Gangs that did not fit, by the pod classes of which more would have to fit.

    Asking whether a change helps costs one question for each distinct class, however many gangs
    of that class wait.
    """

    def __init__(self) -> None:
        self._classes_of: dict[GangKey, tuple[_Need, ...]] = {}
        self._by_class: dict[_Need, dict[GangKey, None]] = {}

    def __iter__(self) -> Iterator[GangKey]:
        """Iterate over the blocked gangs, the longest blocked first."""
        return iter(self._classes_of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang is blocked."""
        return key in self._classes_of

    def __len__(self) -> int:
        """Return how many gangs are blocked."""
        return len(self._classes_of)

    def add(self, key: GangKey, classes: Iterable[PodClass], priority: int | None = None) -> None:
        """Block a gang until a class of its fits somewhere where it did not.

        ``priority`` is set if pods of lower priority may have to make room for it.
        """
        self.discard(key)
        self._classes_of[key] = tuple((pod_class, priority) for pod_class in classes)
        for need in self._classes_of[key]:
            self._by_class.setdefault(need, {})[key] = None

    def discard(self, key: GangKey) -> None:
        """Forget a gang, blocked or not."""
        for need in self._classes_of.pop(key, ()):
            gangs = self._by_class[need]
            gangs.pop(key, None)
            if not gangs:
                del self._by_class[need]

    def woken_by(self, could_help: Callable[[PodClass, int | None], bool]) -> set[GangKey]:
        """Return the gangs with a class that a change ``could_help``."""
        woken: set[GangKey] = set()
        for need, gangs in self._by_class.items():
            if could_help(*need):
                woken.update(gangs)
        return woken
