"""Pods: the STATUS that people know is made of phase, reasons, conditions and containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pocketkube.objects import Object, meta, name_of, parsed_time_s
from pocketkube.server.tables.words import NONE, age, condition, duration

Container = Mapping[str, Any]


class _State(NamedTuple):
    """What the containers of one list say."""

    reason: str
    ready: int
    restarts: int
    last_restart: str  # newest finishedAt, as text; "" when none restarted


def pod(obj: Object, now_s: float) -> list[Any]:
    """Return NAME READY STATUS RESTARTS AGE IP NODE, NOMINATED NODE and READINESS GATES."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    status: Mapping[str, Any] = obj.get("status") or {}
    conditions = status.get("conditions") or []
    reason = status.get("reason") or status.get("phase") or ""
    if any(
        one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated"
        for one in conditions
    ):
        reason = "SchedulingGated"
    sidecars = {
        one.get("name")
        for one in spec.get("initContainers") or []
        if one.get("restartPolicy") == "Always"
    }
    total = len(spec.get("containers") or []) + len(sidecars)
    start, sidecar = _initialised(status, spec, sidecars)
    ready = start.ready
    result = start
    if not start.reason or condition(conditions, "Initialized").get("status") == "True":
        main = _running(status, start.reason or reason)
        newest = max(sidecar.last_restart, main.last_restart)
        result = _State(main.reason, 0, sidecar.restarts + main.restarts, newest)
        ready += main.ready
    reason = result.reason or reason
    if "deletionTimestamp" in meta(obj):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    addresses = status.get("podIPs") or []
    return [
        name_of(obj),
        f"{ready}/{total}",
        reason,
        _restarts(result, now_s),
        age(obj, now_s),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, conditions),
    ]


def _initialised(
    status: Mapping[str, Any], spec: Mapping[str, Any], sidecars: set[Any]
) -> tuple[_State, _State]:
    """Return the state of all init containers up to the one that is not done, and of sidecars.

    The first has a reason only when initialisation is under way or failed.
    """
    reason, ready, restarts, sidecar_restarts = "", 0, 0, 0
    newest = sidecar_newest = ""
    count = len(spec.get("initContainers") or [])
    for i, one in enumerate(status.get("initContainerStatuses") or []):
        finished = _last_finished(one)
        restarts += one.get("restartCount", 0)
        newest = max(newest, finished)
        is_sidecar = one.get("name") in sidecars
        if is_sidecar:
            sidecar_restarts += one.get("restartCount", 0)
            sidecar_newest = max(sidecar_newest, finished)
        state = one.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and one.get("started"):
            ready += bool(one.get("ready"))
            continue
        waits_for = (state.get("waiting") or {}).get("reason", "")
        if ended is not None:
            reason = f"Init:{_ending(ended)}"
        elif waits_for and waits_for != "PodInitializing":
            reason = f"Init:{waits_for}"
        else:
            reason = f"Init:{i}/{count}"
        break
    return (
        _State(reason, ready, restarts, newest),
        _State("", 0, sidecar_restarts, sidecar_newest),
    )


def _running(status: Mapping[str, Any], reason: str) -> _State:
    """Return what the main containers say, the first one last: it has the last word."""
    ready = restarts = 0
    newest = error = ""
    for one in reversed(status.get("containerStatuses") or []):
        restarts += one.get("restartCount", 0)
        newest = max(newest, _last_finished(one))
        state = one.get("state") or {}
        ended = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif ended is not None:
            reason = _ending(ended)
            error = reason if ended.get("exitCode") else error
        elif one.get("ready") and state.get("running") is not None:
            ready += 1
    if reason == "Completed":
        if ready and condition(status.get("conditions"), "Ready").get("status") == "True":
            reason = "Running"
        elif error:
            reason = error
        elif ready:
            reason = "NotReady"
    return _State(reason, ready, restarts, newest)


def _ending(ended: Container) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _last_finished(one: Container) -> str:
    return ((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""


def _restarts(state: _State, now_s: float) -> str:
    if not state.restarts or not state.last_restart:
        return str(state.restarts)
    return f"{state.restarts} ({duration(now_s - parsed_time_s(state.last_restart))} ago)"


def _gates(spec: Mapping[str, Any], conditions: list[Mapping[str, Any]]) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    first = {one.get("type"): one.get("status") for one in reversed(conditions)}
    passed = sum(first.get(gate.get("conditionType")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"
