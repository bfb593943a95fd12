"""Labels and annotations that look like a gang's name and that nobody reads.

A pod with one of them would start alone, silently, where its author meant a gang. In: a pod that
names no gang. Out: one sentence with the remedy, or ``""``. Called by ``dialects.resolve``.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.core.words.plain_text import plain
from quorate.dialects import labels, sigs, volcano, x_k8s
from quorate.dialects.base import PodFacts

_X_K8S = f"{x_k8s.NAMED_BY}: {{}}"
_SIGS = f"{sigs.NAMED_BY}: {{}}"
_VOLCANO = f"{volcano.NAMED_BY}: {{}}"
_LABELS = f"{labels.NAMED_BY}: {{}} together with label {labels.MIN_LABEL}"

_KNOWN = {
    # An essay on secondary schedulers, and the prose of scheduler-plugins' KEP-2, spread these.
    ("label", "pod-group.scheduling.x-k8s.io"): _X_K8S,
    ("label", "pod-group.scheduling.x-k8s.io/name"): _LABELS,
    ("label", "scheduling.sigs.k8s.io/pod-group"): _SIGS,
    ("label", "scheduling.volcano.sh/group-name"): _VOLCANO,
    ("annotation", "scheduling.volcano.sh/group-name"): _VOLCANO,
    ("label", volcano.ANNOTATION): _VOLCANO,
    ("annotation", x_k8s.LABEL): _X_K8S,
    ("annotation", sigs.LABEL): _SIGS,
    ("annotation", labels.NAME_LABEL): _LABELS,
}
_READ = {
    ("label", labels.NAME_LABEL),
    ("label", labels.MIN_LABEL),
    ("label", sigs.LABEL),
    ("label", x_k8s.LABEL),
    ("annotation", volcano.ANNOTATION),
}
_OTHERS = ("koordinator.sh", "kueue.x-k8s.io", "run.ai", "kai.scheduler", "yunikorn.apache.org")
"""Domains of schedulers with gangs of their own: their names are meant for them."""


def find(facts: PodFacts) -> str:
    """Return what is wrong and what to write instead; ``""`` for the pod that means no gang."""
    return _find_in("label", facts.labels) or _find_in("annotation", facts.annotations)


def _find_in(place: str, pairs: Mapping[str, str]) -> str:
    suspects = [key for key in pairs if "group" in key.lower()]
    for key in sorted(suspects):  # sorted: the same pod, the same sentence
        remedy = _remedy(place, key)
        if remedy and pairs[key]:
            use = remedy.format(plain(pairs[key], 253))
            return f"{place} {key} is read by no scheduler; use {use}"
    return ""


def _remedy(place: str, key: str) -> str:
    known = _KNOWN.get((place, key))
    if known or (place, key) in _READ:
        return known or ""
    domain = key.partition("/")[0].lower()
    bare = "".join(letter for letter in key.lower() if letter.isalnum())
    named_like_a_gang = "podgroup" in bare or "groupname" in bare
    if not named_like_a_gang or "scheduling" not in domain.split(".") or domain.endswith(_OTHERS):
        return ""
    if "minavailable" in bare or "minmember" in bare:
        return ""
    if "sigs" in bare:
        return _LABELS if bare.endswith("name") else _SIGS
    return _VOLCANO if "volcano" in bare or bare.endswith("k8siogroupname") else _X_K8S
