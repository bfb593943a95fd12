"""Lists of conditions in a status: changes ours and leaves what others wrote.

A merge patch replaces a list, so it is always sent whole. Called by ``volcano`` and ``native``.
"""

from __future__ import annotations

from quorate.core.words.plain_text import plain
from quorate.dialects.common.fields import JsonObject, format_time


def present(status: JsonObject) -> list[JsonObject]:
    """Return the conditions of a status; whatever is no condition is dropped."""
    found = status.get("conditions")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def find(conditions: list[JsonObject], kind: str) -> JsonObject | None:
    """Return the condition of this type."""
    return next((item for item in conditions if item.get("type") == kind), None)


def put(
    conditions: list[JsonObject], kind: str, state: str, now_s: float, **said: str | int
) -> list[JsonObject]:
    """Return the list with this condition in its old place, or at the end.

    What is ``said`` is made plain. ``lastTransitionTime`` moves only when the status flips; unknown
    fields of the old one stay.
    """
    old = find(conditions, kind)
    plainly = {key: plain(it) if isinstance(it, str) else it for key, it in said.items()}
    new: JsonObject = {**(old or {"type": kind}), "status": state, **plainly}
    if old is None or old.get("status") != state or not old.get("lastTransitionTime"):
        new["lastTransitionTime"] = format_time(now_s)
    if old is None:
        return [*conditions, new]
    return [new if item is old else item for item in conditions]
