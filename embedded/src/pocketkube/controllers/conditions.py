"""Conditions of objects' statuses. Pure functions over lists."""

from __future__ import annotations

from typing import Any

Condition = dict[str, Any]


def condition_of(conditions: list[Condition] | None, type_: str) -> Condition | None:
    """Return the condition of a type; None when there is none."""
    return next((c for c in conditions or [] if c["type"] == type_), None)


def is_true(conditions: list[Condition] | None, type_: str) -> bool:
    """Tell whether the condition of a type is True."""
    found = condition_of(conditions, type_)
    return found is not None and found["status"] == "True"


def with_condition(conditions: list[Condition] | None, new: Condition) -> list[Condition]:
    """Return the conditions with a new one in place of that of its type, at the end.

    Nothing changes when status and reason are the same; the time of the last transition stays when
    the status is. Source: SetDeploymentCondition and its like in ``pkg/controller``.
    """
    old = condition_of(conditions, new["type"])
    kept = list(conditions or [])
    if old is not None:
        if old["status"] == new["status"] and old.get("reason") == new.get("reason"):
            return kept
        if old["status"] == new["status"]:
            new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
        kept.remove(old)
    return [*kept, new]
