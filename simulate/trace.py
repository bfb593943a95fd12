"""The trace of a run, line by line: requests, plans, writes and the scheduler's own log.

Turned on for one seed by ``--trace``; it never changes the run.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from pocketkube.store.store import Event
from quorate.core.model.plan import Plan
from quorate.shell.kube.errors import ApiError
from simulate.cluster.network import Link
from simulate.cluster.server import Request

_LEFT_OUT = ("leases.coordination.k8s.io",)


class Trace:
    """Writes lines through ``say``, each with the virtual time in front."""

    def __init__(self, now_s: Callable[[], float], say: Callable[[str], object]) -> None:
        self._now_s = now_s
        self._say = say

    def line(self, text: str) -> None:
        """Write one line."""
        self._say(f"{self._now_s():9.4f}  {text}")

    def on_sent(self, link: Link, request: Request, blow: str) -> None:
        """A replica sends a request, to which ``blow`` will happen."""
        if not request.is_lease or blow:
            fate = f"  ({blow})" if blow else ""
            self.line(f"{link.name} -> {request.method} {request.path}{_target(request)}{fate}")

    def on_answered(self, link: Link, request: Request, error: ApiError | None) -> None:
        """A replica has its answer."""
        if error is not None:
            self.line(f"{link.name} <- {request.method} {request.path}: {error}")

    def plan(self, link: Link, plan: Plan) -> None:
        """A replica decided."""
        for gang in plan.gangs:
            binds = ", ".join(f"{bind.name}>{bind.node}" for bind in gang.binds)
            self.line(f"{link.name} plans {gang.key} {gang.attempt} of {gang.size}: {binds}")
        for eviction in plan.evictions:
            self.line(f"{link.name} evicts {eviction.name}: {eviction.message}")

        for one in plan.preemptions:
            victims = ", ".join(victim.name for victim in one.victims)
            self.line(f"{link.name} clears {one.node} of {victims} for {one.name}")

    def write(self, event: Event) -> None:
        """Something was written."""
        if event.bucket in _LEFT_OUT:
            return
        obj, entry = event.object, event.entry
        words = ""
        if event.bucket == "pods":
            status = obj.get("status") or {}
            going = " going" if "deletionTimestamp" in obj["metadata"] else ""
            reason = status.get("reason", "")
            node = obj["spec"].get("nodeName", "-")
            words = f"{node} {status.get('phase', '')} {reason}{going}"
        elif event.bucket == "nodes":
            cordon = " cordoned" if obj["spec"].get("unschedulable") else ""
            words = f"{(obj.get('status') or {}).get('allocatable')}{cordon}"
            words += f" {obj['metadata'].get('annotations') or ''}"
        elif event.bucket == "events":
            words = f"{obj.get('reason')}: {obj.get('note') or obj.get('message')}"
        elif event.bucket.startswith("podgroups"):
            words = f"{obj.get('spec')} {obj.get('status')}"
        self.line(f"    {entry.revision} {event.type} {event.bucket} {entry.name} {words}")

    def log(self, level: str, event: MutableMapping[str, Any]) -> None:
        """The scheduler logged something."""
        words = dict(event)
        what = words.pop("event", "")
        told = " ".join(f"{name}={value}" for name, value in words.items())
        self.line(f"  {level}: {what} {told}")


def _target(request: Request) -> str:
    if not request.is_bind:
        return ""
    return " to " + request.body.rpartition(b'"name":"')[2].partition(b'"')[0].decode()
