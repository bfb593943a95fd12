"""Nodes become ready, fail and recover.

In: versions of nodes. Out: ``Node`` records that ``pod_life`` reads, and writes through ``api``.
Called by ``agents``. Whatever is written comes back as news, until nothing is left to write.
"""

from __future__ import annotations

from collections.abc import Callable

from pocketkube.agents import node_status
from pocketkube.agents.facts import NodeFacts, read_node
from pocketkube.agents.ground import Node, host_ip, number_of, pod_prefix
from pocketkube.agents.settings import AGENT, FAIL, Settings
from pocketkube.api.api import Api
from pocketkube.objects import Object, rfc3339


class NodeLife:
    """All nodes by name, in ``nodes``."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self.nodes: dict[str, Node] = {}
        self._api = api
        self._settings = settings
        self._numbers: set[int] = set()
        self._last_number = 0

    def changed(self, name: str, raw: bytes | None) -> Node | None:
        """Take in a version of a node, None if it is gone; return it if its agent begins to act."""
        facts = None
        if raw is not None:
            try:
                facts = read_node(raw)
            except ValueError:
                facts = None  # nothing can be said of it: as if it were not there
        known = self.nodes.get(name)
        if known is not None and (facts is None or facts.uid != known.facts.uid):
            self._numbers.discard(known.number)
            del self.nodes[name]
            known = None
        if facts is None:
            return None
        acted = known is not None and known.acts
        if known is None:
            node = self.nodes[name] = self._met(facts)
        else:
            node = known
            node.facts = facts
        node.ours = facts.annotations.get(AGENT) != "none"
        if node.ours:
            self._tend(node, is_new=known is None)
        return node if node.acts and not acted else None

    def _met(self, facts: NodeFacts) -> Node:
        number = number_of(facts.host_ip)
        if not number or number in self._numbers:
            number = self._next_number()
        self._numbers.add(number)
        return Node(facts, number, pod_prefix(number, facts.pod_cidr))

    def _next_number(self) -> int:
        number = self._last_number + 1
        while number in self._numbers:
            number += 1
        self._last_number = number
        return number

    def _tend(self, node: Node, *, is_new: bool) -> None:
        """Write what the node lacks: a first status, what its annotation asks for."""
        facts, now = node.facts, rfc3339(self._api.now_s())
        told = facts.annotations.get(FAIL, "")
        failing = "" if told == "false" else told
        ready = facts.conditions.get("Ready")
        if ready is None:
            address, version = host_ip(node.number), self._settings.kubelet_version
            self._write(node, lambda obj: node_status.fill(obj, address, version, now))
        recovers = node.failing or (is_new and ready and ready.reason == node_status.SILENT_REASON)
        if failing and failing != node.failing:
            self._write(node, lambda obj: node_status.set_failed(obj, failing, now))
        elif recovers and not failing:
            self._write(node, lambda obj: node_status.set_healthy(obj, now))
        node.failing = failing

    def _write(self, node: Node, change: Callable[[Object], None]) -> None:
        self._api.amend("nodes", "", node.facts.name, change, subresource="status")
