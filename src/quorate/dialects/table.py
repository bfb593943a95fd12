"""The dialects, one row each. To add one: a file in this room, and a row here."""

from __future__ import annotations

from quorate.core.model import GangKey
from quorate.dialects import coscheduler, native, sigs, volcano, x_k8s
from quorate.dialects.base import Dialect

DIALECTS: tuple[Dialect, ...] = (
    coscheduler.DIALECT,
    x_k8s.DIALECT,
    sigs.DIALECT,
    volcano.DIALECT,
    native.DIALECT,
)
"""In the order in which they win when a pod names several gangs."""

WITH_QUEUES = frozenset(one.name for one in DIALECTS if one.object and one.object.has_queues)
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
