"""What gangs take of each Volcano queue, as the queue's status says it (``status.allocated``).

In: touched gangs. Out: amounts by queue. A gang is counted anew only after it was touched. Used by
``shell.report.volcano_queues``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.pods import SETTLED
from quorate.core.model import GangKey, Queue

_ROOT = "root"
"""The parent of each queue that names none."""
Amounts = tuple[tuple[str, int], ...]


class QueueAmounts:
    """The requests of members that have a node, and their number (``pods``), by queue.

    Those that have ended or are being deleted do not count (volcano pkg/scheduler/framework
    updateQueueStatus).
    """

    def __init__(self) -> None:
        self._touched: dict[GangKey, None] = {}
        self._of_gang: dict[GangKey, tuple[str, Counter[str]]] = {}
        self._of_queue: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def touch(self, keys: Iterable[GangKey]) -> None:
        """Have these gangs counted anew."""
        self._touched.update(dict.fromkeys(keys))

    def count(self, gangs: Mapping[GangKey, GangEntry], members_max: int) -> bool:
        """Count touched gangs, until so many members were looked at; return whether more wait."""
        members = 0
        while self._touched and members < members_max:
            key = next(iter(self._touched))
            del self._touched[key]
            gang = gangs.get(key)
            members += 1 + (len(gang.members) if gang is not None else 0)
            self._put(key, gang)
        return bool(self._touched)

    def by_queue(self, queues: Mapping[str, Queue]) -> dict[str, Amounts]:
        """Return what is taken of each queue, by itself and by those below it; sorted, no zeros."""
        taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for name, amounts in self._of_queue.items():
            for above in _line(name, queues):
                taken[above].update(amounts)
        return {name: tuple(sorted(taken[name].items())) for name in queues}

    def _put(self, key: GangKey, gang: GangEntry | None) -> None:
        queue, amounts = self._of_gang.pop(key, ("", Counter()))
        if amounts:
            self._of_queue[queue] -= amounts
            if not self._of_queue[queue]:
                del self._of_queue[queue]
        if gang is not None and gang.spec is not None and (amounts := _taken_by(gang)):
            self._of_gang[key] = gang.spec.queue, amounts
            self._of_queue[gang.spec.queue] += amounts


def _taken_by(gang: GangEntry) -> Counter[str]:
    taken: Counter[str] = Counter()
    for entry in gang.members.values():
        pod = entry.pod
        if entry.ours and entry.where in SETTLED and not (pod.finished or pod.terminating):
            taken.update(dict(pod.spec.requests))
            taken["pods"] += 1
    return +taken


def _line(name: str, queues: Mapping[str, Queue]) -> Iterator[str]:
    """Yield a queue and those above it; each once, also where parents go in a circle."""
    seen: set[str] = set()
    while name in queues and name not in seen:
        seen.add(name)
        yield name
        name = queues[name].parent or _ROOT
