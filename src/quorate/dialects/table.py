"""The dialects, one row each, and what is asked of all. To add one: a file here, and a row."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.core.model import GangKey
from quorate.dialects import coscheduler, native, sigs, volcano, x_k8s
from quorate.dialects.base import INT32_MAX, Dialect, Gathering

DIALECTS: tuple[Dialect, ...] = (
    coscheduler.DIALECT,
    x_k8s.DIALECT,
    sigs.DIALECT,
    volcano.DIALECT,
    native.DIALECT,
)
"""In the order in which they win when a pod names several gangs."""

WITH_QUEUES = frozenset(one.name for one in DIALECTS if one.object and one.object.has_queues)
_GATHERED_UNDER = {
    one.object.awaited_under: one.name for one in DIALECTS if one.object and one.object.gathering
}
_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


def by_name(name: str) -> Dialect | None:
    """Return the dialect that a gang's key names; None for ``"pod"``, a pod of no gang."""
    return _BY_NAME.get(name)


def awaited_under(key: GangKey) -> str:
    """Return the scheduler name under which clients wait for the object's status before any pod.

    ``""`` where nobody waits for it.
    """
    dialect = by_name(key.dialect)
    return dialect.object.awaited_under if dialect is not None and dialect.object else ""


def gathered_by(scheduler: str) -> str:
    """Return the dialect that may give a gang to a pod of this schedulerName later, "" for none."""
    return _GATHERED_UNDER.get(scheduler, "")


def asks_together(annotations: Mapping[str, str]) -> tuple[Gathering, int] | None:
    """Return how many pods an owner wants to start together, above 1, and how that comes about.

    A number that cannot be read is 1, as in Volcano (getMinMemberFromUpperRes of its
    pg_controller_handler.go).
    """
    for dialect in DIALECTS:
        how = dialect.object.gathering if dialect.object else None
        written = annotations.get(how.annotation, "") if how else ""
        is_number = written.isdecimal() and len(written) <= len(str(INT32_MAX))
        if how and is_number and 1 < int(written) <= INT32_MAX:
            return how, int(written)
    return None


def gathered_words(owner: str, annotations: Mapping[str, str]) -> tuple[str, str]:
    """Say what an owner's pods wait for whose gang others have yet to name to them, and a hint.

    "" where nobody will. ``owner`` is how a sentence names it.
    """
    asked = asks_together(annotations)
    if asked is None:
        return "", ""
    how, count = asked
    return (
        f"annotation {how.annotation} of {owner} asks for {count} pods to start together, and "
        f"{how.by} have not named their gang to this one",
        f"see that {how.by} run, or remove the annotation",
    )
