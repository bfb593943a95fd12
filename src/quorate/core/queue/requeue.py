"""Which blocked gangs a change of room could help. Nothing else wakes them: no timer, no flush."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorate.core.model import GangKey
from quorate.core.state.encoding import PodClass


class Blocked:
    """Gangs that did not fit, by the pod classes of which more would have to fit.

    Asking whether a change helps costs one question for each distinct class, however many gangs
    of that class wait.
    """

    def __init__(self) -> None:
        self._classes_of: dict[GangKey, tuple[PodClass, ...]] = {}
        self._by_class: dict[PodClass, dict[GangKey, None]] = {}

    def __iter__(self) -> Iterator[GangKey]:
        """Iterate over the blocked gangs, the longest blocked first."""
        return iter(self._classes_of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang is blocked."""
        return key in self._classes_of

    def __len__(self) -> int:
        """Return how many gangs are blocked."""
        return len(self._classes_of)

    def add(self, key: GangKey, classes: Iterable[PodClass]) -> None:
        """Block a gang until a class of its fits somewhere where it did not."""
        self.discard(key)
        self._classes_of[key] = tuple(classes)
        for pod_class in self._classes_of[key]:
            self._by_class.setdefault(pod_class, {})[key] = None

    def discard(self, key: GangKey) -> None:
        """Forget a gang, blocked or not."""
        for pod_class in self._classes_of.pop(key, ()):
            gangs = self._by_class[pod_class]
            gangs.pop(key, None)
            if not gangs:
                del self._by_class[pod_class]

    def woken_by(self, could_help: Callable[[PodClass], bool]) -> set[GangKey]:
        """Return the gangs with a class that a change ``could_help``."""
        woken: set[GangKey] = set()
        for pod_class, gangs in self._by_class.items():
            if could_help(pod_class):
                woken.update(gangs)
        return woken
