"""Who asks for a write, and how: what a request's user, query and options say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. ``groups`` decide, by RBAC, what is allowed; system:masters may do all."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


SYSTEM = User("system:embedded", ("system:masters",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How to create, update or patch."""

    user: User = SYSTEM
    dry_run: bool = False
    field_validation: Literal["Strict", "Warn", "Ignore"] = "Ignore"
    warn: Callable[[str], None] = field(default=lambda _text: None)  # becomes a Warning header


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleting:
    """How to delete."""

    grace_period_s: int | None = None  # None: the object's own
    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    uid: str | None = None  # precondition
    resource_version: str | None = None  # precondition
    dry_run: bool = False


AS_USUAL = Deleting()
"""A deletion with the object's own grace."""

PatchType = Literal["json", "merge", "strategic", "apply"]


@dataclass(frozen=True, slots=True)
class Patch:
    """The body of a PATCH, by its media type."""

    type: PatchType
    body: Any


FROM_INSIDE = Writing()
"""A write by one of the cluster's own parts."""
