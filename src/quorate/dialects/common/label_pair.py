"""Dialects without an object: a pod names its gang in one label and the gang's min in another.

In: the two keys. Out: a ``Dialect`` that reads them by the rule of scheduler-plugins v0.18.9: a min
of 0 or less, as Determined AI writes it, says that the pod belongs to no gang.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from quorate.core.model import GangKey, Membership
from quorate.dialects.base import INT32_MAX, Dialect, PodFacts, PodKey, resembles_none

_WHOLE = re.compile(r"[+-]?[0-9]{1,80}")
_ALONE = "the pod is scheduled on its own"


def label_pair(
    name: str,
    member_label: str,
    min_label: str,
    *,
    mistaken_keys: tuple[PodKey, ...] = (),
    likeness: Callable[[str], int] = resembles_none,
) -> Dialect:
    """Return the dialect ``name``, whose pods name gang and min in these two labels."""
    return Dialect(
        name=name,
        member_key=PodKey("label", member_label),
        membership=partial(_membership, name, member_label, min_label),
        min_key=PodKey("label", min_label),
        warning=partial(_warning, member_label, min_label),
        mistaken_keys=mistaken_keys,
        likeness=likeness,
    )


def _membership(
    dialect: str, member_label: str, min_label: str, facts: PodFacts
) -> Membership | None:
    """Return the gang of a pod that has both labels and a min of at least 1."""
    gang = facts.labels.get(member_label)
    if not gang:
        return None
    written = facts.labels.get(min_label, "")
    if not _WHOLE.fullmatch(written) or not 1 <= (min_count := int(written)) <= INT32_MAX:
        return None
    return Membership(GangKey(facts.namespace, dialect, gang), min_count)


def _warning(member_label: str, min_label: str, facts: PodFacts) -> str:
    """Say why a pod that has one of the labels is scheduled on its own, where that may surprise.

    A min of 0 or less is a plain way of saying "no gang", as Determined does: no warning.
    """
    gang, written = facts.labels.get(member_label), facts.labels.get(min_label)
    if gang is None and written is None:
        return ""
    number = int(written) if written and _WHOLE.fullmatch(written) else None
    if number is not None and number <= 0:
        return ""
    if number is not None and number > INT32_MAX:
        return f"label {min_label} is larger than {INT32_MAX}: {_ALONE}"
    if written and number is None:
        return f'label {min_label} is "{written[:63]}", which is not a whole number: {_ALONE}'
    if not gang:
        return f"label {min_label} has no label {member_label} beside it: {_ALONE}"
    lacks = f"label {member_label} has no label {min_label} beside it: {_ALONE}"
    return "" if written else lacks
