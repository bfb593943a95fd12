"""The fields of a Lease, read with care. In: bytes of an answer. Out: facts, and bytes to write.

Called by ``elector``. Others may write our Lease, and a proxy may answer in the API server's place.
So reading raises nothing but ``ApiError``, and an odd value counts as the one that is safe: a
holder whose name is no text holds the Lease, an unusable duration counts as ours, what cannot be
a scheduler's name is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from quorate.shell.annotations import JOURNAL, SCHEDULER_NAMES
from quorate.shell.kube.errors import ServerError

Lease = dict[str, Any]
"""A Lease as JSON, with all its unknown fields, which are written back."""

_TRANSITIONS_MAX: Final = 2**31 - 1  # an int32 in the API
_NAME_CHARS_MAX: Final = 256
_SCHEDULERS_MAX: Final = 200
"""So many scheduler names are written and read: the API takes 256 KiB of annotations in all."""
_SCHEDULER_CHARS_MAX: Final = 253  # as our configuration has it
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError)


def decoded(body: bytes) -> Lease:
    """Return the Lease in an answer. Raises ServerError: there is none, or it has no version."""
    try:
        lease = msgspec.json.decode(body)
    except _UNREADABLE as error:
        raise ServerError(200, "Invalid", f"the answer is no Lease: {error}") from error
    if not isinstance(lease, dict) or not version_of(lease):
        raise ServerError(200, "Invalid", "the answer is no Lease: it has no resourceVersion")
    return lease


def encoded(lease: Lease) -> bytes:
    """Return the bytes to write. Raises ServerError: what others wrote there cannot be kept."""
    try:
        return msgspec.json.encode(lease)
    except _UNREADABLE as error:
        raise ServerError(200, "Invalid", f"the Lease cannot be written back: {error}") from error


def version_of(lease: Lease) -> str:
    """Return the resourceVersion; nothing if it has none."""
    version = _mapping(lease.get("metadata")).get("resourceVersion")
    return version if isinstance(version, str) else ""


def spec_of(lease: Lease) -> dict[str, Any]:
    """Return the spec; an empty one if it has none."""
    return _mapping(lease.get("spec"))


def holder_of(spec: dict[str, Any]) -> str:
    """Return the holder's name as one short line; "" if nobody holds it."""
    holder = spec.get("holderIdentity")
    if holder is None or holder == "":
        return ""
    if isinstance(holder, str) and holder.isprintable() and len(holder) <= _NAME_CHARS_MAX:
        return holder
    return ascii(holder)[:_NAME_CHARS_MAX]


def is_held_by(spec: dict[str, Any], identity: str) -> bool:
    """Tell whether this very process holds it."""
    return bool(identity) and spec.get("holderIdentity") == identity


def duration_s_of(spec: dict[str, Any], default_s: float) -> float:
    """Return how long the Lease lasts after a renewal, in seconds: finite and more than 0."""
    duration = spec.get("leaseDurationSeconds")
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        return default_s
    try:
        duration_s = float(duration)
    except OverflowError:
        return default_s
    return duration_s if math.isfinite(duration_s) and duration_s > 0.0 else default_s


def next_transition(spec: dict[str, Any]) -> int:
    """Return ``leaseTransitions`` for a new holder: from 1 to the API's largest."""
    before = spec.get("leaseTransitions")
    if isinstance(before, bool) or not isinstance(before, int):
        return 1
    return min(max(before, 0), _TRANSITIONS_MAX - 1) + 1


def journal_of(lease: Lease) -> str:
    """Return the journal of open attempts; "" if there is none, or it is no text."""
    return _annotation(lease, JOURNAL)


def with_journal(lease: Lease, journal: str) -> Lease:
    """Return the Lease with this journal; unchanged if the journal is empty."""
    return _with_annotation(lease, JOURNAL, journal) if journal else lease


def scheduler_names_of(lease: Lease) -> tuple[str, ...]:
    """Return the ``spec.schedulerName`` values that the holder owns; () if it does not say."""
    parts = (part.strip() for part in _annotation(lease, SCHEDULER_NAMES).split(","))
    names = (one for one in parts if 0 < len(one) <= _SCHEDULER_CHARS_MAX and one.isprintable())
    return tuple(islice(names, _SCHEDULERS_MAX))


def with_scheduler_names(lease: Lease, names: Sequence[str]) -> Lease:
    """Return the Lease with the ``spec.schedulerName`` values that its holder owns."""
    return _with_annotation(lease, SCHEDULER_NAMES, ",".join(names[:_SCHEDULERS_MAX]))


def _annotation(lease: Lease, key: str) -> str:
    value = _mapping(_mapping(lease.get("metadata")).get("annotations")).get(key)
    return value if isinstance(value, str) else ""


def _with_annotation(lease: Lease, key: str, value: str) -> Lease:
    metadata = _mapping(lease.get("metadata"))
    annotations = {**_mapping(metadata.get("annotations")), key: value}
    return {**lease, "metadata": {**metadata, "annotations": annotations}}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
