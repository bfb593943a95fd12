"""Labels and annotations that look like a gang's name and that nobody reads.

A pod with one of them would start alone, silently, where its author meant a gang. In: a pod that
names no gang, or the owner of such pods. Out: the gang that was meant, and what to write instead.
Called by ``dialects.resolve``, and where owners are read. See ADR 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from quorate.core.model import GangKey, Meant
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
_NAMING = {
    key: dialect
    for dialect in DIALECTS
    for key in (dialect.member_key, *dialect.other_keys)
    if key.place != "field"
} | _MISTAKEN
"""All keys that are a gang's name for sure, where they are read and where they are not."""
_MISTAKEN_KEYS = frozenset(key.key for key in _MISTAKEN)
_READ = frozenset(key for dialect in DIALECTS for key in dialect.keys)
_KOORDINATORS = "koordinator.sh"
_OTHERS = (_KOORDINATORS, "kueue.x-k8s.io", "run.ai", "kai.scheduler", "yunikorn.apache.org")
"""Domains of schedulers with gangs of their own: their names are meant for them."""


class Astray(NamedTuple):
    """A key that names a gang where nobody reads it, and what to write instead."""

    key: PodKey
    meant: Meant
    remedy: str


def find(facts: PodFacts) -> Astray | None:
    """Return where a pod of no gang names one in vain."""
    found = _suspect("label", facts.labels) or _suspect("annotation", facts.annotations)
    if found is None:
        return None
    key, dialect = found
    return _astray(key, dialect, key.value(facts) or "", facts.namespace)


def of_owner(
    owner: str, namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Astray | None:
    """Return where the owner of pods names the gang that the pods' template should.

    Only keys that are a gang's name for sure count: what merely looks like one is the owner's own
    business. ``owner`` is how a sentence names it.
    """
    facts = PodFacts(namespace, "", labels, annotations)
    for key, dialect in _NAMING.items():
        if name := key.value(facts):
            found = _astray(key, dialect, name, namespace, f" of {owner}")
            return found._replace(remedy=f"{found.remedy} in its pod template")
    return None


def is_of_another_scheduler(facts: PodFacts) -> bool:
    """Whether a pod names its gang as another scheduler reads it: right under its schedulerName."""
    found = find(facts)
    return found is not None and _is_koordinators(found.key)


def remedy(dialect: Dialect, name: str) -> str:
    """Return where pods have to name a gang: ``label KEY: NAME``, and what has to be beside it."""
    beside = f" together with {dialect.min_key}" if dialect.min_key else ""
    return f"{dialect.member_key}: {plain(name, 253)}{beside}"


def _astray(key: PodKey, dialect: Dialect, name: str, namespace: str, of: str = "") -> Astray:
    why = "Koordinator's, and quorate does not read it"
    if not _is_koordinators(key):
        why = "read by no scheduler"
    meant = Meant(GangKey(namespace, dialect.name, name), f"{key}{of} is {why}")
    return Astray(key, meant, f"use {remedy(dialect, name)}")


def _is_koordinators(key: PodKey) -> bool:
    return key.key.partition("/")[0].endswith(_KOORDINATORS)


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
