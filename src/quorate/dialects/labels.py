"""Labels only: a pod names its gang and the gang's min itself; there is no object.

The rule of scheduler-plugins v0.18.9, used by CoreWeave's ``coscheduler`` and by
Determined AI, which writes min "0" on a task that is no gang.
"""

from __future__ import annotations

import re

from quorate.core.model import GangKey, GangSpec, Membership
from quorate.core.model.reasons import GangView
from quorate.dialects.base import INT32_MAX, Malformed, PodFacts, Resource

NAME = "labels"
RESOURCE: Resource | None = None
NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MIN_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
NAMED_BY = f"label {NAME_LABEL}"

_WHOLE = re.compile(r"[+-]?[0-9]{1,80}")


def membership(facts: PodFacts) -> Membership | None:
    """Return the gang of a pod that has both labels and a min of at least 1."""
    name = facts.labels.get(NAME_LABEL)
    if not name:
        return None
    written = facts.labels.get(MIN_LABEL, "")
    if not _WHOLE.fullmatch(written):
        return None
    min_count = int(written)
    if not 1 <= min_count <= INT32_MAX:
        return None
    return Membership(GangKey(facts.namespace, NAME, name), min_count)


def warning(facts: PodFacts) -> str:
    """Say why a pod that has one of the labels is scheduled on its own, where that may surprise.

    A min of 0 or less is a plain way of saying "no gang", as Determined does: no warning.
    """
    name, written = facts.labels.get(NAME_LABEL), facts.labels.get(MIN_LABEL)
    alone = "the pod is scheduled on its own"
    if name is None and written is None:
        return ""
    number = int(written) if written and _WHOLE.fullmatch(written) else None
    if number is not None and number <= 0:
        return ""
    if number is not None and number > INT32_MAX:
        return f"label {MIN_LABEL} is larger than {INT32_MAX}: {alone}"
    if written and number is None:
        return f'label {MIN_LABEL} is "{written[:63]}", which is not a whole number: {alone}'
    if not name:
        return f"label {MIN_LABEL} has no label {NAME_LABEL} beside it: {alone}"
    return f"label {NAME_LABEL} has no label {MIN_LABEL} beside it: {alone}" if not written else ""


def decode(raw: bytes) -> GangSpec:
    """Refuse: this dialect has no objects."""
    raise Malformed(f"dialect {NAME} has no objects, got {len(raw)} bytes")


def status(view: GangView, raw: bytes, now_s: float) -> None:
    """Return None: this dialect has no objects."""
    del view, raw, now_s
