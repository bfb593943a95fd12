"""Which waiting pods are promised room on which node (``status.nominatedNodeName``).

Owned by ``state.cluster``. A nominated pod holds its room against pods of lower or equal priority
until it is placed, on that node or on another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.core.state.gangs import GangEntry, PodEntry


class Nominations:
    """Pods of ours that wait and are nominated, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodEntry]] = {}

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._by_node)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the nodes to which a pod is nominated."""
        return iter(self._by_node)

    def on(self, node: str) -> list[PodEntry]:
        """Return the pods that are nominated to the node."""
        return list(self._by_node.get(node, {}).values())

    def has(self, gang: GangEntry) -> bool:
        """Whether a member of the gang is nominated."""
        return any(e.gang is gang for there in self._by_node.values() for e in there.values())

    def add(self, entry: PodEntry) -> None:
        """Count a waiting pod at the node of its nomination, if it has one."""
        if entry.nominated:
            self._by_node.setdefault(entry.nominated, {})[entry.pod.uid] = entry

    def discard(self, entry: PodEntry) -> str:
        """Stop counting a pod; return the node on which it was counted, or ""."""
        there = self._by_node.get(entry.nominated)
        if there is None or there.pop(entry.pod.uid, None) is None:
            return ""
        if not there:
            del self._by_node[entry.nominated]
        return entry.nominated
