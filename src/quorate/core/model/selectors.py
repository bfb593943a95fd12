"""What matches what: selectors of nodes and of pods, taints and what tolerates them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

_INT64_MAX = 2**63 - 1
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


def parse_int64(text: str) -> int | None:
    """Return what Go's ``strconv.ParseInt(text, 10, 64)`` returns; None where that is an error.

    A sign and ASCII digits, and nothing else: Python's ``int`` would also take ``1_6``, spaces and
    the digits of other scripts, and numbers of any size.
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    value = -int(match[2]) if match[1] == "-" else int(match[2])
    return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else None


class Requirement(msgspec.Struct, frozen=True):
    """One match expression (or match field) of a selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy it, by the four operators of metav1.LabelSelector."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case _:
                return value is None

    def holds_for_node(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy it, by the six operators of core/v1 NodeSelector."""
        if self.operator in ("Gt", "Lt"):
            return self.key in labels and self.beyond((labels[self.key],))[0]
        known = self.operator in ("In", "NotIn", "Exists", "DoesNotExist")
        return known and self.holds(labels)

    def beyond(self, values: Iterable[str]) -> list[bool]:
        """For each value of the label: whether it is more (Gt) or less (Lt) than the bound.

        Both are integers of 64 bits, and there is exactly one bound; anything else is False.
        """
        bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
        if bound is None:
            return [False for _ in values]
        is_more = self.operator == "Gt"
        numbers = map(parse_int64, values)
        return [n is not None and (n > bound if is_more else n < bound) for n in numbers]


class SelectorTerm(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node selector term: all expressions and all fields must match; an empty one never does."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether one node matches; over many nodes ``cluster.nodes.terms`` is faster."""
        if not (self.expressions or self.fields):
            return False
        named = {"metadata.name": name}
        return all(one.holds_for_node(labels) for one in self.expressions) and all(
            one.key in named and len(one.values) == 1 and one.holds(named) for one in self.fields
        )


class PreferredTerm(msgspec.Struct, frozen=True):
    """A preferred node selector term with its weight, 1 to 100."""

    weight: int
    term: SelectorTerm


class LabelSelector(msgspec.Struct, frozen=True, omit_defaults=True):
    """metav1.LabelSelector, with matchLabels as ``In``. An empty one matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy all requirements."""
        return all(requirement.holds(labels) for requirement in self.requirements)


class PodSelector(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pods by namespace and labels, as a term of pod affinity or a spread constraint has it.

    A pod's namespace must be one of ``namespaces`` (sorted), or bear labels that match
    ``namespace_selector``. ``labels`` None matches no pod. Pods must match ``also`` too.
    """

    namespaces: tuple[str, ...]
    labels: LabelSelector | None
    namespace_selector: LabelSelector | None = None
    also: tuple[PodSelector, ...] = ()

    @property
    def by_namespace_labels(self) -> bool:
        """Whether labels of namespaces decide whom it means; an empty selector means all."""
        return self.namespace_selector is not None and bool(self.namespace_selector.requirements)


class PodTerm(msgspec.Struct, frozen=True):
    """Pods, and the node label whose equal values mean "together with them"."""

    selector: PodSelector
    topology_key: str


def all_of(terms: tuple[PodTerm, ...]) -> PodSelector:
    """Return the selector of the pods that match every term (at least one)."""
    first, *rest = dict.fromkeys(term.selector for term in terms)
    return msgspec.structs.replace(first, also=tuple(rest)) if rest else first


class WeightedPodTerm(msgspec.Struct, frozen=True):
    """A preferred term: 1 to 100 for affinity, -1 to -100 for anti-affinity."""

    weight: int
    term: PodTerm


class SpreadConstraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """``spec.topologySpreadConstraints[]``; ``hard`` is DoNotSchedule.

    ``selector`` holds the pod's own values of matchLabelKeys already.
    """

    max_skew: int
    topology_key: str
    hard: bool
    selector: PodSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


class Taint(msgspec.Struct, frozen=True, omit_defaults=True):
    """``node.spec.taints[]``."""

    key: str
    effect: str
    value: str = ""


class Toleration(msgspec.Struct, frozen=True, omit_defaults=True):
    """``pod.spec.tolerations[]``. An empty key or effect matches any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations matches the taint (core/v1 ToleratesTaint).

    An empty effect or key matches any; ``Exists`` ignores the value. The alpha operators Lt and Gt
    match nothing.
    """
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (
            toleration.operator == "Exists"
            or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
        )
        for toleration in tolerations
    )
