"""Nodes become ready, fail and recover, and their status says so.

In: versions of nodes. Out: ``Node`` records that ``pod_life`` reads, and writes through ``api``.
Called by ``agents``. Whatever is written comes back as news, until nothing is left to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pocketkube.agents.facts import NodeFacts, read_node
from pocketkube.agents.ground import Node, host_ip, number_of, pod_prefix
from pocketkube.agents.settings import AGENT, FAIL, Settings
from pocketkube.api.api import Api
from pocketkube.objects import Object, rfc3339

_HEALTHY = {
    "MemoryPressure": (
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}
_SILENT = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
_NOT_READY = ("False", "KubeletNotReady", "the node was told to fail")

SILENT_REASON = _SILENT[1]


def fill(node: Object, host_ip: str, version: str, now: str) -> None:
    """Give a new node what its kubelet would find out; what is there stays."""
    status = node.setdefault("status", {})
    name = node["metadata"]["name"]
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))
    elif "allocatable" in status:
        status["capacity"] = dict(status["allocatable"])
    if not any(one.get("type") == "InternalIP" for one in status.get("addresses") or ()):
        others = [one for one in status.get("addresses") or () if one.get("type") != "Hostname"]
        status["addresses"] = [
            {"type": "InternalIP", "address": host_ip},
            {"type": "Hostname", "address": name},
            *others,
        ]
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    info = status.setdefault("nodeInfo", {})
    for key, value in _node_info(node, version).items():
        info[key] = info.get(key) or value
    set_healthy(node, now)


def _node_info(node: Object, version: str) -> dict[str, str]:
    labels = node["metadata"].get("labels") or {}
    return {
        "containerRuntimeVersion": "pocketkube://0.1.0",
        "kubeletVersion": version,
        "kubeProxyVersion": version,
        "operatingSystem": labels.get("kubernetes.io/os", "linux"),
        "architecture": labels.get("kubernetes.io/arch", "amd64"),
    }


def set_healthy(node: Object, now: str) -> None:
    """Say that the node is ready and under no pressure."""
    for type_, says in _HEALTHY.items():
        _set_condition(node, type_, says, now, heartbeat=now)


def set_failed(node: Object, how: str, now: str) -> None:
    """Say that the node is silent or, if ``how`` is ``not-ready``, that it is not ready."""
    if how == "not-ready":
        _set_condition(node, "Ready", _NOT_READY, now, heartbeat=now)
        return
    for type_ in _HEALTHY:
        _set_condition(node, type_, _SILENT, now, heartbeat="")


def _set_condition(
    node: Object, type_: str, says: tuple[str, str, str], now: str, *, heartbeat: str
) -> None:
    conditions: list[dict[str, Any]] = node["status"].setdefault("conditions", [])
    found = next((one for one in conditions if one.get("type") == type_), None)
    if found is None:
        found = {"type": type_, "status": ""}
        conditions.append(found)
    before = found["status"]
    found["status"] = says[0]
    found["lastHeartbeatTime"] = heartbeat or found.get("lastHeartbeatTime", now)
    found["lastTransitionTime"] = found.get("lastTransitionTime", now) if before == says[0] else now
    found["reason"], found["message"] = says[1], says[2]


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
            self._write(node, lambda obj: fill(obj, address, version, now))
        recovers = node.failing or (is_new and ready and ready.reason == SILENT_REASON)
        if failing and failing != node.failing:
            self._write(node, lambda obj: set_failed(obj, failing, now))
        elif recovers and not failing:
            self._write(node, lambda obj: set_healthy(obj, now))
        node.failing = failing

    def _write(self, node: Node, change: Callable[[Object], None]) -> None:
        self._api.amend("nodes", "", node.facts.name, change, subresource="status")
