"""What a kubelet writes about a node.

In: a node as a plain object. Out: the same object with another status. Called by ``agents``.
Source: k8s.io/kubernetes ``pkg/kubelet/nodestatus/setters.go`` of 1.36. Taints are not its own.
"""

from __future__ import annotations

from typing import Any

from pocketkube.objects import Object

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
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kernelVersion": "",
        "osImage": "",
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
