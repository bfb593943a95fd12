"""The status that a kubelet gives to a pod, at each turn of the pod's life.

In: a pod as a plain object. Out: the same object with another status. Called by ``agents``, inside
``api.amend``. Source: k8s.io/kubernetes ``pkg/kubelet/kubelet_pods.go``, ``status/generate.go`` and
``status/status_manager.go`` of 1.36. A pod that ended is never changed again: ``has_ended``.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from pocketkube.objects import Object

_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The conditions of a kubelet, in its order; others in a pod's status are left alone."""

_KILLED = 137  # 128 + SIGKILL


class Place(NamedTuple):
    """Where a pod runs, as its status says it."""

    host_ip: str
    pod_ip: str


def has_ended(pod: Object) -> bool:
    """Whether the pod is Succeeded or Failed: no kubelet changes that."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def restarts(pod: Object) -> int:
    """Return how often the pod's first container was restarted."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount") or 0)


def set_running(pod: Object, place: Place, now: str) -> None:
    """Say that all containers run, and all init containers are over."""
    status = _status(pod)
    spec = pod["spec"]
    count = restarts(pod)
    status["phase"] = "Running"
    status.setdefault("startTime", now)
    status["hostIP"] = place.host_ip
    status["hostIPs"] = [{"ip": place.host_ip}]
    pod_ip = place.host_ip if spec.get("hostNetwork") else place.pod_ip
    status["podIP"] = pod_ip
    status["podIPs"] = [{"ip": pod_ip}]
    before = _by_name(status.get("containerStatuses"))
    status["containerStatuses"] = [
        _running(pod, one, count, before.get(one["name"]), now) for one in spec["containers"]
    ]
    if spec.get("initContainers") and not status.get("initContainerStatuses"):
        status["initContainerStatuses"] = [
            _running(pod, one, 0, None, now)
            if one.get("restartPolicy") == "Always"
            else _completed(pod, one, now)
            for one in spec["initContainers"]
        ]
    _set_conditions(pod, now, started=True, initialized=("True", ""), ready=("True", "", ""))


def set_ended(pod: Object, exit_code: int, now: str) -> None:
    """Say that all containers have exited with this code, for good."""
    status = _status(pod)
    succeeded = exit_code == 0
    status["phase"] = "Succeeded" if succeeded else "Failed"
    status.setdefault("startTime", now)
    _exit_containers(pod, exit_code, now)
    for sidecar in status.get("initContainerStatuses") or ():
        if "running" in sidecar["state"]:
            _exited(sidecar, 0, now)
    reason = "PodCompleted" if succeeded else "PodFailed"
    initialized = "PodCompleted" if succeeded else ""
    _set_conditions(
        pod, now, started=False, initialized=("True", initialized), ready=("False", reason, "")
    )


def set_killed(pod: Object, now: str) -> None:
    """Say that a pod that is being deleted was stopped before it was done."""
    set_ended(pod, _KILLED, now)


def set_restarted(pod: Object, exit_code: int, now: str) -> None:
    """Say that the containers have exited and run again."""
    status = _status(pod)
    _exit_containers(pod, exit_code, now)
    _count_restart(status)
    place = Place(status.get("hostIP", ""), status.get("podIP", ""))
    set_running(pod, place, now)


def set_waiting(pod: Object, exit_code: int, wait_s: float, now: str) -> None:
    """Say that the containers have exited, and that the kubelet waits before it restarts them."""
    status = _status(pod)
    _exit_containers(pod, exit_code, now)
    name = f"{pod['metadata']['name']}_{pod['metadata'].get('namespace', '')}"
    for one in status["containerStatuses"]:
        text = (
            f"back-off {_go_duration(wait_s)} restarting failed container={one['name']} pod={name}"
            f"({pod['metadata'].get('uid', '')})"
        )
        one["lastState"] = one["state"]
        one["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
    names = " ".join(one["name"] for one in status["containerStatuses"])
    unready = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    _set_conditions(pod, now, started=True, initialized=("True", ""), ready=unready)


def set_running_again(pod: Object, now: str) -> None:
    """Say that containers that waited run again."""
    status = _status(pod)
    _count_restart(status)
    set_running(pod, Place(status.get("hostIP", ""), status.get("podIP", "")), now)


def set_refused(pod: Object, reason: str, message: str, now: str) -> None:
    """Say that the kubelet refuses the pod. As in a real one, its own conditions go."""
    status = _status(pod)
    kept = [one for one in status.get("conditions") or [] if one.get("type") not in _OURS]
    fields = ("qosClass", "observedGeneration", "resourceClaimStatuses", "nominatedNodeName")
    pod["status"] = {key: status[key] for key in fields if key in status}
    if kept:
        pod["status"]["conditions"] = kept
    pod["status"].update(
        phase="Failed",
        reason=reason,
        message=f"Pod was rejected: {message}",
        startTime=now,
    )


def set_readiness(pod: Object, now: str) -> None:
    """Decide anew whether a running pod is ready, after somebody changed its readiness gates."""
    _set_conditions(pod, now, started=True, initialized=("True", ""), ready=("True", "", ""))


def _status(pod: Object) -> dict[str, Any]:
    status: dict[str, Any] | None = pod.get("status")
    if status is None:
        status = pod["status"] = {}
    generation = pod["metadata"].get("generation")
    if generation:
        status["observedGeneration"] = generation
    return status


def _by_name(statuses: list[dict[str, Any]] | None) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in statuses or ()}


def _container(pod: Object, spec: dict[str, Any], count: int) -> dict[str, Any]:
    image = spec.get("image", "")
    known = f"{pod['metadata'].get('uid', '')}/{spec['name']}/{count}".encode()
    return {
        "name": spec["name"],
        "state": {},
        "lastState": {},
        "ready": False,
        "restartCount": count,
        "image": image,
        "imageID": image,
        "containerID": f"pocketkube://{hashlib.blake2b(known, digest_size=32).hexdigest()}",
    }


def _running(
    pod: Object, spec: dict[str, Any], count: int, before: dict[str, Any] | None, now: str
) -> dict[str, Any]:
    status = _container(pod, spec, count)
    status["state"] = {"running": {"startedAt": now}}
    if before is not None:
        status["lastState"] = before.get("lastState") or {}
    return {**status, "ready": True, "started": True}


def _completed(pod: Object, spec: dict[str, Any], now: str) -> dict[str, Any]:
    status = _container(pod, spec, 0)
    status["state"] = {"terminated": _terminated(0, now, now, status["containerID"])}
    return {**status, "ready": True, "started": False}


def _terminated(exit_code: int, started: str | None, now: str, container: str) -> dict[str, Any]:
    return {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": started,
        "finishedAt": now,
        "containerID": container,
    }


def _exit_containers(pod: Object, exit_code: int, now: str) -> None:
    """Turn running containers into exited ones; those that never ran get a status as well."""
    status, spec = pod["status"], pod["spec"]
    known = _by_name(status.get("containerStatuses"))
    status["containerStatuses"] = [
        _exited(known.get(one["name"]) or _container(pod, one, 0), exit_code, now)
        for one in spec["containers"]
    ]


def _exited(one: dict[str, Any], exit_code: int, now: str) -> dict[str, Any]:
    running = one["state"].get("running") or {}
    if "terminated" not in one["state"]:
        one["state"] = {
            "terminated": _terminated(
                exit_code, running.get("startedAt") or now, now, one.get("containerID", "")
            )
        }
    one["ready"] = one["started"] = False
    return one


def _count_restart(status: dict[str, Any]) -> None:
    for one in status["containerStatuses"]:
        one["restartCount"] += 1
        if "terminated" in one["state"]:
            one["lastState"] = one["state"]


def _set_conditions(
    pod: Object,
    now: str,
    *,
    started: bool,
    initialized: tuple[str, str],
    ready: tuple[str, str, str],
) -> None:
    """Write the five conditions of a kubelet after those of others."""
    status = pod["status"]
    before = {one.get("type"): one for one in status.get("conditions") or ()}
    wanted = (
        ("True" if started else "False", "", ""),
        (*initialized, ""),
        ready if ready[0] != "True" else _gated(pod, before),
        ready,
        ("True", "", ""),
    )
    generation = pod["metadata"].get("generation")
    conditions = [one for type_, one in before.items() if type_ not in _OURS]
    for type_, (value, reason, message) in zip(_OURS, wanted, strict=True):
        old = before.get(type_)
        if type_ == "PodScheduled" and old is not None and old.get("status") == value:
            conditions.append(old)
            continue
        same = old is not None and old.get("status") == value
        one: dict[str, Any] = {"type": type_}
        if generation:
            one["observedGeneration"] = generation
        one["status"] = value
        one["lastProbeTime"] = None
        one["lastTransitionTime"] = old["lastTransitionTime"] if same and old else now
        if reason:
            one["reason"] = reason
        if message:
            one["message"] = message
        conditions.append(one)
    status["conditions"] = conditions


def _gated(pod: Object, conditions: dict[Any, dict[str, Any]]) -> tuple[str, str, str]:
    """Return what Ready is when all containers are: readiness gates have their say."""
    types = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    missing = [
        f'the status of pod readiness gate "{type_}" is not "True"'
        for type_ in types
        if conditions.get(type_, {}).get("status") != "True"
    ]
    if missing:
        return "False", "ReadinessGatesNotReady", ", ".join(missing)
    return "True", "", ""


def _go_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
