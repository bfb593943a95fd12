"""The answer to an apply that would take fields from others. Source: apimachinery of 1.36."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from pocketkube.errors import ApiError, Cause
from pocketkube.patch.apply.field_paths import Path, text_of
from pocketkube.patch.apply.managed_fields import UPDATE, Manager


class Conflict(NamedTuple):
    """A field that another manager owns."""

    manager: Manager
    path: Path


def conflict_error(conflicts: Sequence[Conflict]) -> ApiError:
    """Return the 409 that names every field and its manager, by manager."""
    ordered = sorted(conflicts, key=lambda conflict: _identifier(conflict.manager))
    causes = [
        Cause("FieldManagerConflict", f"conflict with {_text(manager)}", text_of(path))
        for manager, path in ordered
    ]
    if len(ordered) == 1:
        text = f"{causes[0].message}: {causes[0].field}"
        message = f"Apply failed with 1 conflict: {text}"
    else:
        lines: list[str] = []
        for manager, group in groupby(ordered, key=lambda conflict: conflict.manager):
            lines.append(f"conflicts with {_text(manager)}:")
            lines += [f"- {text_of(conflict.path)}" for conflict in group]
        message = f"Apply failed with {len(ordered)} conflicts: " + "\n".join(lines)
    details = {"causes": [cause._asdict() for cause in causes]}
    return ApiError(409, "Conflict", message, details)


def _identifier(manager: Manager) -> str:
    """Return the text that upstream sorts managers by."""
    text = {"manager": manager.name, "operation": manager.operation}
    if manager.api_version:
        text["apiVersion"] = manager.api_version
    if manager.subresource:
        text["subresource"] = manager.subresource
    return json.dumps(text, separators=(",", ":"))


def _text(manager: Manager) -> str:
    text = json.dumps(manager.name)
    if manager.subresource:
        text += f" with subresource {json.dumps(manager.subresource)}"
    return f"{text} using {manager.api_version}" if manager.operation == UPDATE else text
