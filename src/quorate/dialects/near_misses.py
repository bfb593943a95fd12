"""Labels and annotations that look like a gang's name and that nobody reads.

A pod with one of them would start alone, silently, where its author meant a gang. In: a pod that
names no gang. Out: one message with the hint, or ``""``. Called by ``dialects.resolve``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from quorate.core.words.plain_text import plain
from quorate.dialects.base import Dialect, PodFacts, PodKey
from quorate.dialects.table import DIALECTS


def _mistaken() -> dict[PodKey, Dialect]:
    """Return the keys that are known mistakes: each dialect's own, and right keys elsewhere."""
    swapped = {
        PodKey("annotation" if of.place == "label" else "label", of.key): dialect
        for dialect in DIALECTS
        for of in (dialect.member_key, *dialect.other_keys)
        if of.place != "field"
    }
    return swapped | {key: dialect for dialect in DIALECTS for key in dialect.mistaken_keys}


_MISTAKEN = _mistaken()
_MISTAKEN_KEYS = frozenset(key.key for key in _MISTAKEN)
_READ = frozenset(key for dialect in DIALECTS for key in dialect.keys)
_OTHERS = ("koordinator.sh", "kueue.x-k8s.io", "run.ai", "kai.scheduler", "yunikorn.apache.org")
"""Domains of schedulers with gangs of their own: their names are meant for them."""


class Meant(NamedTuple):
    """The gang that a key which nobody reads was meant to name, and that key."""

    key: PodKey
    dialect: str
    name: str


def meant_by_labels(labels: Mapping[str, str]) -> Meant | None:
    """Return the gang that the labels of a pod of no gang mean; None where they mean none."""
    found = _suspect("label", labels)
    if found is None:
        return None
    key, dialect = found
    return Meant(key, dialect.name, labels[key.key])


def find(facts: PodFacts) -> str:
    """Return what is wrong and what to write instead; ``""`` for the pod that means no gang."""
    return _find_in("label", facts.labels) or _find_in("annotation", facts.annotations)


def _find_in(place: Literal["label", "annotation"], pairs: Mapping[str, str]) -> str:
    found = _suspect(place, pairs)
    if found is None:
        return ""
    here, dialect = found
    beside = f" together with {dialect.min_key}" if dialect.min_key else ""
    use = f"{dialect.member_key}: {plain(pairs[here.key], 253)}{beside}"
    return f"{here} is read by no scheduler; use {use}"


def _suspect(
    place: Literal["label", "annotation"], pairs: Mapping[str, str]
) -> tuple[PodKey, Dialect] | None:
    """Return the first key that was meant for a dialect, and that dialect."""
    suspects = [key for key in pairs if "group" in key.lower() or key in _MISTAKEN_KEYS]
    for key in sorted(suspects):  # sorted: the same pod, the same message
        here = PodKey(place, key)
        dialect = _meant(here) if pairs[key] else None
        if dialect is not None:
            return here, dialect
    return None


def _meant(key: PodKey) -> Dialect | None:
    """Return the dialect that the author of an unknown key meant; None when it means no gang."""
    if key in _MISTAKEN or key in _READ:
        return _MISTAKEN.get(key)
    domain = key.key.partition("/")[0].lower()
    bare = "".join(letter for letter in key.key.lower() if letter.isalnum())
    named_like_a_gang = "podgroup" in bare or "groupname" in bare
    if not named_like_a_gang or "scheduling" not in domain.split(".") or domain.endswith(_OTHERS):
        return None
    if "minavailable" in bare or "minmember" in bare:
        return None
    return max(DIALECTS, key=lambda dialect: dialect.likeness(bare))
