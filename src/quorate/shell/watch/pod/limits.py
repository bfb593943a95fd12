"""Bounds on the size of one pod, and how a pod above them is cut.

In: decoded parts of a pod. Out: the parts within the bounds of ``core.model.policy``, and the first
field above a bound. Called by ``decoding``. A waiting pod of ours above a bound is held, and the
field is in its reason. Any other pod counts without the part above the bound; its requests always
count in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from quorate.core.model import (
    PodSelector,
    PodSpec,
    PodTerm,
    PreferredTerm,
    SelectorTerm,
    SpreadConstraint,
    WeightedPodTerm,
    policy,
)

T = TypeVar("T")
_Part = SelectorTerm | PreferredTerm | PodTerm | WeightedPodTerm | SpreadConstraint
P = TypeVar("P", bound=_Part)
_NODES = "spec.nodeSelector and affinity.nodeAffinity"
_PODS = "spec.affinity.podAffinity and podAntiAffinity"
_SPREAD = "spec.topologySpreadConstraints"


def bounded(spec: PodSpec) -> tuple[PodSpec, str]:
    """Return the spec within all bounds, and the first field above one; "" where none is."""
    said = next(_above(spec), "")
    return (_cut(spec), said) if said else (spec, "")


def bounded_uses(uses: tuple[T, ...], field: str, most: int) -> tuple[tuple[T, ...], str]:
    """Return at most ``most`` of a pod's claims, and the defect text if there are more."""
    return uses[:most], _too_many(field, len(uses), "claims", most)


def _too_many(field: str, count: int, what: str, most: int) -> str:
    return f"{field}: {count} {what} are too many, {most} are the most" if count > most else ""


def _above(spec: PodSpec) -> Iterator[str]:
    """Yield each field that is above its bound."""
    on_nodes: tuple[_Part, ...] = (*(spec.required_terms or ()), *spec.preferred_terms)
    near: tuple[_Part, ...] = (*spec.anti_affinity, *spec.affinity, *spec.preferred_affinity)
    resources, most = "spec.containers.resources", policy.EXPRESSIONS_PER_POD_MAX
    named = len(spec.node_selector)
    counts = [
        ("spec.containers", spec.containers, "containers", policy.CONTAINERS_PER_POD_MAX),
        (resources, len(spec.requests), "resources", policy.RESOURCES_PER_POD_MAX),
        ("spec.containers.ports", len(spec.host_ports), "host ports", policy.PORTS_PER_POD_MAX),
        ("spec.tolerations", len(spec.tolerations), "tolerations", policy.TOLERATIONS_PER_POD_MAX),
        (_NODES, len(on_nodes), "terms", most),
        (_PODS, len(near), "terms", policy.POD_TERMS_PER_POD_MAX),
        (_SPREAD, len(spec.spread), "constraints", policy.SPREADS_PER_POD_MAX),
    ]
    parts: tuple[tuple[str, tuple[_Part, ...]], ...] = (
        (_NODES, on_nodes),
        (_PODS, near),
        (_SPREAD, spec.spread),
    )
    for field, written in parts:
        sizes = [_size(one) for one in written]
        expressions = sum(size for size, _ in sizes) + (named if field == _NODES else 0)
        counts.append((field, expressions, "expressions", most))
        counts.append((field, sum(n for _, n in sizes), "values", policy.VALUES_PER_POD_MAX))
    for one in counts:
        if said := _too_many(*one):
            yield said


def _cut(spec: PodSpec) -> PodSpec:
    """Return the spec without what is above a bound; requests are never cut."""
    selector = spec.node_selector[: policy.EXPRESSIONS_PER_POD_MAX]
    on_nodes = _Left(policy.EXPRESSIONS_PER_POD_MAX, len(selector))
    near = _Left(policy.POD_TERMS_PER_POD_MAX)
    required = spec.required_terms
    return msgspec.structs.replace(
        spec,
        node_selector=selector,
        required_terms=on_nodes.take(required) if required is not None else None,
        preferred_terms=on_nodes.take(spec.preferred_terms),
        tolerations=spec.tolerations[: policy.TOLERATIONS_PER_POD_MAX],
        host_ports=spec.host_ports[: policy.PORTS_PER_POD_MAX],
        anti_affinity=near.take(spec.anti_affinity),
        affinity=near.take(spec.affinity),
        preferred_affinity=near.take(spec.preferred_affinity),
        spread=_Left(policy.SPREADS_PER_POD_MAX).take(spec.spread),
    )


class _Left:
    """The rest of a pod's bounds while its terms are taken one by one."""

    def __init__(self, items: int, expressions: int = 0) -> None:
        self._items = items - expressions
        self._expressions = policy.EXPRESSIONS_PER_POD_MAX - expressions
        self._values = policy.VALUES_PER_POD_MAX

    def take(self, written: Iterable[P]) -> tuple[P, ...]:
        """Return the terms before the first one above a bound; after that no term is taken."""
        kept = []
        for one in written:
            expressions, values = _size(one)
            self._items -= 1
            self._expressions -= expressions
            self._values -= values
            if min(self._items, self._expressions, self._values) < 0:
                break
            kept.append(one)
        return tuple(kept)


def _size(one: _Part) -> tuple[int, int]:
    """Return the number of a term's expressions, and the number of all their values."""
    match one:
        case SelectorTerm():
            written = (*one.expressions, *one.fields)
            return len(written), sum(len(each.values) for each in written)
        case PreferredTerm() | WeightedPodTerm():
            return _size(one.term)
        case PodTerm() | SpreadConstraint():
            return _size_of(one.selector)


def _size_of(selector: PodSelector) -> tuple[int, int]:
    both = [one for one in (selector.labels, selector.namespace_selector) if one is not None]
    written = [each for one in both for each in one.requirements]
    namespaces = len(selector.namespaces) if len(selector.namespaces) > 1 else 0
    return len(written), namespaces + sum(len(each.values) for each in written)
