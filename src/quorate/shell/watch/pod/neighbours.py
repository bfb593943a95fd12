"""A pod's rules about other pods: affinity, anti-affinity and spread, as values of the core.

In: parts that ``wire`` decoded. Out: terms and constraints whose selectors name their namespaces.
Called by ``spec``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from quorate.core.model import (
    LabelSelector,
    PodSelector,
    PodTerm,
    Requirement,
    SpreadConstraint,
    WeightedPodTerm,
)
from quorate.shell.watch.pod import wire

_SPREADS = msgspec.json.Decoder(list[wire.Spread] | None)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def requirements(written: list[wire.Expression] | None) -> tuple[Requirement, ...]:
    """Return match expressions as they are written."""
    return tuple(
        Requirement(one.key, one.operator, tuple(one.values or ())) for one in written or ()
    )


def label_selector(written: wire.PodSelector, path: str) -> LabelSelector:
    """Return a label selector in a normal form: equal ones compare equal. Raises ``SpecError``."""
    found = [Requirement(key, "In", (v,)) for key, v in (written.match_labels or {}).items()]
    for index, one in enumerate(requirements(written.match_expressions)):
        where = f"{path}.matchExpressions[{index}]"
        if one.operator not in _OPERATORS:
            raise _unknown(f"{where}.operator", one.operator, _OPERATORS)
        if (one.operator in ("In", "NotIn")) != bool(one.values):
            raise wire.SpecError(f"{where}.values: {one.operator} with {len(one.values)} values")
        found.append(one)
    found.sort(key=lambda one: (one.key, one.operator, one.values))
    return LabelSelector(tuple(found))


def _unknown(path: str, written: str, known: tuple[str, ...]) -> wire.SpecError:
    return wire.SpecError(f"{path}: {written[:50]!r} is none of {', '.join(known)}")


def required_terms(
    written: wire.PodAffinity | None, kind: str, namespace: str
) -> tuple[PodTerm, ...]:
    """Return the required terms of ``podAffinity`` or ``podAntiAffinity``, as ``kind`` says.

    Raises ``SpecError``.
    """
    return tuple(
        _term(one, namespace, f"spec.affinity.{kind}.{_REQUIRED}[{index}]")
        for index, one in enumerate((written and written.required) or ())
    )


def preferred_terms(written: wire.Affinity, namespace: str) -> tuple[WeightedPodTerm, ...]:
    """Return the preferred terms, those of anti-affinity with negative weights."""
    terms = []
    kinds = (
        ("podAffinity", written.pod_affinity, 1),
        ("podAntiAffinity", written.pod_anti_affinity, -1),
    )
    for kind, affinity, sign in kinds:
        for index, one in enumerate((affinity and affinity.preferred) or ()):
            if one.weight:
                path = f"spec.affinity.{kind}.{_PREFERRED}[{index}].podAffinityTerm"
                term = _term(one.pod_affinity_term, namespace, path)
                terms.append(WeightedPodTerm(sign * one.weight, term))
    return tuple(terms)


def spread_constraints(
    raw: Raw, namespace: str, labels: Mapping[str, str]
) -> tuple[SpreadConstraint, ...]:
    """Return the constraints; ``labels`` are the pod's own. Raises ``SpecError``."""
    path = "spec.topologySpreadConstraints"
    if not wire.is_set(raw):
        return ()
    written = wire.decode_part(_SPREADS, raw, path) or ()
    return tuple(
        _spread(one, namespace, labels, f"{path}[{index}]") for index, one in enumerate(written)
    )


def _spread(
    one: wire.Spread, namespace: str, labels: Mapping[str, str], path: str
) -> SpreadConstraint:
    for name, value, known in (
        ("whenUnsatisfiable", one.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")),
        ("nodeAffinityPolicy", one.node_affinity_policy, ("Honor", "Ignore")),
        ("nodeTaintsPolicy", one.node_taints_policy, ("Honor", "Ignore")),
    ):
        if value and value not in known:
            raise _unknown(f"{path}.{name}", value, known)
    return SpreadConstraint(
        max_skew=one.max_skew,
        topology_key=one.topology_key,
        # Absent is DoNotSchedule, the field's default.
        hard=one.when_unsatisfiable != "ScheduleAnyway",
        selector=PodSelector((namespace,), _spread_selector(one, labels, path)),
        min_domains=one.min_domains or 1,
        honor_affinity=one.node_affinity_policy != "Ignore",
        honor_taints=one.node_taints_policy == "Honor",
    )


def _spread_selector(
    written: wire.Spread, labels: Mapping[str, str], path: str
) -> LabelSelector | None:
    """Return the selector, with the pod's own values of those matchLabelKeys that it has."""
    if written.label_selector is None:
        return None
    found = label_selector(written.label_selector, f"{path}.labelSelector")
    keys = [key for key in written.match_label_keys or () if key in labels]
    own = {Requirement(key, "In", (labels[key],)) for key in keys}
    if own <= set(found.requirements):  # the API server has merged them already
        return found
    both = {*found.requirements, *own}
    return LabelSelector(tuple(sorted(both, key=lambda one: (one.key, one.operator, one.values))))


def _term(written: wire.PodTerm, namespace: str, path: str) -> PodTerm:
    """Return a term. Without namespaces and namespaceSelector it matches in the pod's own one."""
    by_labels = written.namespace_selector
    namespaces = tuple(sorted(set(written.namespaces or ())))
    if not namespaces and by_labels is None:
        namespaces = (namespace,)
    selector = written.label_selector
    return PodTerm(
        PodSelector(
            namespaces=namespaces,
            labels=_selector(selector, f"{path}.labelSelector"),
            namespace_selector=_selector(by_labels, f"{path}.namespaceSelector"),
        ),
        written.topology_key,
    )


def _selector(written: wire.PodSelector | None, path: str) -> LabelSelector | None:
    return label_selector(written, path) if written is not None else None
