"""The nominated pods: waiting pods with promised room on a node (``status.nominatedNodeName``).

Owned by ``cluster.priorities.precedence``; a cycle has a copy with its own promises. The room is
withheld from pods of lower or equal priority until the nominated pod is placed, on any node.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry


class Nominations:
    """Pods of ours that wait and are nominated, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodEntry]] = {}
        self._node_of: dict[str, str] = {}

    def copy(self) -> Nominations:
        """Return an independent copy."""
        other = Nominations()
        other._by_node = {node: dict(there) for node, there in self._by_node.items()}
        other._node_of = dict(self._node_of)
        return other

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._by_node)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the nodes to which a pod is nominated."""
        return iter(self._by_node)

    def on(self, node: str) -> list[PodEntry]:
        """Return the pods that are nominated to the node."""
        return list(self._by_node.get(node, {}).values())

    def node_of(self, uid: str) -> str:
        """Return the node to which a waiting pod is nominated, or ""."""
        return self._node_of.get(uid, "")

    def has(self, gang: GangEntry) -> bool:
        """Whether a member of the gang is nominated."""
        if len(gang.members) <= len(self._node_of):
            return any(uid in self._node_of for uid in gang.members)
        return any(uid in gang.members for uid in self._node_of)

    def add(self, entry: PodEntry, node: str) -> None:
        """Nominate a waiting pod to ``node``, in place of an earlier node; "": to none."""
        self.discard(entry)
        if node:
            self._by_node.setdefault(node, {})[entry.pod.uid] = entry
            self._node_of[entry.pod.uid] = node

    def discard(self, entry: PodEntry) -> str:
        """Remove a pod's nomination; return its node, or ""."""
        node = self._node_of.pop(entry.pod.uid, "")
        if node:
            there = self._by_node[node]
            del there[entry.pod.uid]
            if not there:
                del self._by_node[node]
        return node
