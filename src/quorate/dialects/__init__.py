"""Ways of naming gangs: one file per dialect, pure, and the one place that chooses among them.

In: ``PodFacts``. Out: ``Resolution``. Called by ``shell.watch``; ``shell.report`` looks a dialect
up by the name in a gang's key. To add a dialect: one file, and one row in ``table``.
"""

from __future__ import annotations

import msgspec

from quorate.core.model import Meant, Membership
from quorate.core.model.reasons import Reason
from quorate.dialects import near_misses
from quorate.dialects.base import (
    Dialect,
    GangObject,
    Malformed,
    PodFacts,
    PodKey,
    Resource,
    StatusPatch,
    no_warning,
)
from quorate.dialects.common import hold_time, names
from quorate.dialects.table import (
    DIALECTS,
    WITH_QUEUES,
    asks_together,
    awaited_under,
    by_name,
    gathered_by,
    gathered_words,
)

_WARNINGS = tuple(one.warning for one in DIALECTS if one.warning is not no_warning)
_NAMED_ALONE = tuple(one.member_key for one in DIALECTS if one.min_key is None)
"""Keys that name a gang without another key beside them."""


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True):
    """The gang of a pod, and what its author should know.

    ``defect`` holds the pod back, with ``defect_reason`` (a value of ``Reason``); ``warning`` does
    not. ``note`` is the warning about a key that is not the current one. ``hold_s`` is how long
    room is reserved for the pod's replacement, where it says so. ``meant`` is the gang that a pod
    names in vain.
    """

    membership: Membership | None = None
    warning: str = ""
    note: str = ""
    defect: str = ""
    defect_reason: str = ""
    hold_s: float | None = None
    meant: Meant | None = None


ORDINARY = Resolution()


def resolve(facts: PodFacts) -> Resolution:
    """Return the pod's gang by the first dialect that it speaks.

    Called for each version of each pod, most of which name no gang: the common path is five
    look-ups and one scan of the keys.
    """
    found: Membership | None = None
    others: list[tuple[Dialect, Membership]] = []
    winner: Dialect | None = None
    for dialect in DIALECTS:
        named = dialect.membership(facts)
        if named is None:
            continue
        if winner is None:
            winner, found = dialect, named
        else:
            others.append((dialect, named))
    if winner is None or found is None:
        return _without_gang(facts)
    if wrong := names.wrong_with(winner, found.key.name):
        return Resolution(defect=wrong, defect_reason=Reason.GANG_NAME_INVALID.value)
    hold_s, warning = hold_time.read(facts.annotations)
    note = winner.spelling_note(facts) if winner.other_keys else ""
    if others:
        warning = _two_dialects(winner, found, others)
    return Resolution(found, warning=warning or note, note=note, hold_s=hold_s)


def _two_dialects(
    winner: Dialect, found: Membership, others: list[tuple[Dialect, Membership]]
) -> str:
    ignored = " and ".join(
        f'"{names.shown(named.key.name)}" by {other.member_key}' for other, named in others
    )
    return (
        f'the pod names several gangs: "{found.key.name}" by {winner.member_key}, which counts, '
        f"and {ignored}, which is ignored; remove one"
    )


def _without_gang(facts: PodFacts) -> Resolution:
    warning = _warning(facts)
    if found := near_misses.find(facts):
        return Resolution(
            None,
            warning,
            defect=f"{found.meant.words}; {found.remedy}",
            defect_reason=Reason.UNKNOWN_GANG_LABEL.value,
            meant=found.meant,
        )
    return Resolution(None, warning) if warning else ORDINARY


def _warning(facts: PodFacts) -> str:
    """Return what a dialect says of the pod, or that a key is empty; of several the first."""
    for warning in _WARNINGS:
        if said := warning(facts):
            return said
    for key in _NAMED_ALONE:
        if key.value(facts) == "":
            return f"{key} is empty: the pod is scheduled on its own"
    return ""


__all__ = [
    "DIALECTS",
    "WITH_QUEUES",
    "Dialect",
    "GangObject",
    "Malformed",
    "PodFacts",
    "PodKey",
    "Resolution",
    "Resource",
    "StatusPatch",
    "asks_together",
    "awaited_under",
    "by_name",
    "gathered_by",
    "gathered_words",
    "resolve",
]
