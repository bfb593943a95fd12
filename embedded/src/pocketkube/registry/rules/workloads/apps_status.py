"""Checks of what controllers write to the status of workloads: counts that can be.

Source: kubernetes ``pkg/apis/apps/validation`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable

from pocketkube.causes import invalid, negative
from pocketkube.errors import Cause
from pocketkube.objects import Object

Check = Callable[[Object, Object], list[Cause]]

_OF_ALL = ("observedGeneration", "collisionCount")


def _counts(*names: str, parts: tuple[str, ...] = ()) -> Check:
    """Return a check: none of these below zero, no part above ``replicas``, and available ready."""

    def causes(obj: Object, _old: Object) -> list[Cause]:
        status = obj.get("status") or {}
        found = [c for name in (*names, *_OF_ALL) for c in _not_negative(status.get(name), name)]
        total = status.get("replicas") or 0
        found += [
            _too_many(part, status.get(part) or 0, "status.replicas")
            for part in parts
            if (status.get(part) or 0) > total
        ]
        available = status.get("availableReplicas") or 0
        if parts and available > (status.get("readyReplicas") or 0):
            found.append(_too_many("availableReplicas", available, "readyReplicas"))
        return found

    return causes


def _not_negative(value: int | None, name: str) -> list[Cause]:
    return negative(f"status.{name}", value)


def _too_many(part: str, value: int, most: str) -> Cause:
    return invalid(f"status.{part}", value, f"cannot be greater than {most}")


_PARTS = ("readyReplicas", "availableReplicas")

DEPLOYMENT = _counts(
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    parts=("updatedReplicas", *_PARTS),
)
REPLICA_SET = _counts(
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    parts=("fullyLabeledReplicas", *_PARTS),
)
STATEFUL_SET = _counts(
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    parts=("currentReplicas", "updatedReplicas", *_PARTS),
)
DAEMON_SET = _counts(
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
)
