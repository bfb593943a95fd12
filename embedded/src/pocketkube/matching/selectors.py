"""Selectors: what a list, a watch or a controller wants of all objects, and a pod of a node.

In: query strings, and LabelSelector objects. Out: predicates over labels. Source of the syntax:
k8s.io/apimachinery ``pkg/labels`` of 1.36, and answers of a real API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pocketkube.causes import shown
from pocketkube.errors import ApiError, bad_request
from pocketkube.names import label_key, label_value

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether a toleration is for a taint: an empty effect or key is for any."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    same = toleration.get("value", "") == taint.get("value", "")
    return toleration.get("operator", "Equal") == "Equal" and bool(same)


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], effects: tuple[str, ...]
) -> bool:
    """Tell whether some taint with one of the effects is not tolerated."""
    known = list(tolerations)
    return any(
        taint.get("effect") in effects and not any(tolerates(t, taint) for t in known)
        for taint in taints
    )


def fits(pod_spec: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether the pod's nodeName, nodeSelector and required affinity allow the node."""
    wanted = pod_spec.get("nodeName")
    if wanted and wanted != node_name:
        return False
    selector = pod_spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = required.get("nodeSelectorTerms") or []
    return any(_matches_term(term, node_name, labels) for term in terms)


def _matches_term(term: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term matches nothing
    own = {"metadata.name": node_name}
    return all(requirement_of(one).matches(labels) for one in expressions) and all(
        requirement_of(one).matches(own) for one in fields
    )


Operator = Literal["=", "!=", "in", "notin", "exists", "!", "gt", "lt"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of labels; ``=`` and ``!=`` have one value."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Write it as a query has it."""
        values = ",".join(sorted(self.values))
        if self.operator in ("in", "notin"):
            return f"{self.key} {self.operator} ({values})"
        if self.operator in ("exists", "!"):
            return self.key if self.operator == "exists" else f"!{self.key}"
        return f"{self.key}{_SIGNS.get(self.operator, self.operator)}{values}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels fulfil it."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value in self.values
            case "!=" | "notin":  # also when there is no such label
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        number, bound = _int64(value or ""), _int64(next(iter(self.values), ""))
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound


_SIGNS = {"gt": ">", "lt": "<"}


def _int64(text: str) -> int | None:
    """Read an integer as strconv.ParseInt does; None when it is none, or has more than 64 bits."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class LabelSelector:
    """All its requirements together; without any it matches everything."""

    __slots__ = ("_equal", "_others", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(requirements)
        # Equality is what nearly all selectors ask for, so that it gets the shortest way.
        self._equal = tuple((r.key, *r.values) for r in self.requirements if r.operator == "=")
        self._others = tuple(r for r in self.requirements if r.operator != "=")

    def __str__(self) -> str:
        """Write it as a query has it, by key."""
        return ",".join(map(str, sorted(self.requirements, key=lambda one: one.key)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self._others)


EVERYTHING = LabelSelector()
NOTHING = LabelSelector([Requirement("nothing", "in")])
"""Matches no labels: what a LabelSelector that is null means."""


# Label selectors of query strings

_WORD = r"[^=!(),><\s]+"
_REQUIREMENT = re.compile(
    rf"""\s* (?: !\s*(?P<absent>{_WORD}) | (?P<key>{_WORD}) \s*
        (?: (?P<set>in|notin)\s*\((?P<values>[^()]*)\)
          | (?P<sign>==|!=|=|>|<)\s*(?P<value>{_WORD})? )?
    ) \s* (?P<comma>,|\Z)""",
    re.VERBOSE,
)
_OPERATORS: Mapping[str, Operator] = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "=",
    "!=": "!=",
    ">": "gt",
    "<": "lt",
}


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """Read ``a=b,c!=d,e in (x,y),!f,g notin (z),h,i>5``. Raises ApiError (400)."""
    found, at, comma = [], 0, ""
    while at < len(text.rstrip()) or comma == ",":
        match = _REQUIREMENT.match(text, at)
        if match is None:
            raise _unreadable(f"{shown(text[at:])} is none such as a=b, a in (b,c), a or !a")
        found.append(_requirement(match))
        at, comma = match.end(), match["comma"]
    found.sort(key=lambda requirement: requirement.key)
    return LabelSelector(found) if found else EVERYTHING


def _requirement(match: re.Match[str]) -> Requirement:
    key = match["absent"] or match["key"]
    faults = label_key(key)
    if faults:
        raise _unreadable(f"{shown(key)}: {'; '.join(faults)}")
    if match["absent"]:
        return Requirement(key, "!")
    word = match["set"] or match["sign"]
    if not word:
        return Requirement(key, "exists")
    given = match["values"].split(",") if match["set"] else [match["value"] or ""]
    values = frozenset(value.strip() for value in given)
    _check_values(key, _OPERATORS[word], sorted(values))
    return Requirement(key, _OPERATORS[word], values)


def _check_values(key: str, operator: Operator, values: list[str]) -> None:
    if operator in ("gt", "lt") and _int64(values[0]) is None:
        raise _unreadable(f"{key}: {shown(values[0])} is not an integer")
    for value in values:
        if label_value(value):
            raise _unreadable(f"{key}: {shown(value)}: {'; '.join(label_value(value))}")


def _unreadable(why: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {why}")


# LabelSelector objects

_OF_OBJECTS: Mapping[str, Operator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",  # of node selectors alone, as is Lt
    "Lt": "lt",
}


def selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Return the predicate of a LabelSelector object; null matches nothing, ``{}`` everything.

    Raises ValueError for an operator that there is not; ``label_selector_causes`` finds it before.
    """
    if selector is None:
        return NOTHING
    found = [
        Requirement(key, "=", frozenset([value]))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return LabelSelector([*found, *map(requirement_of, selector.get("matchExpressions") or ())])


def requirement_of(expression: Mapping[str, Any]) -> Requirement:
    """Return the condition of one item of ``matchExpressions``, of labels or of nodes.

    Raises ValueError for an operator that there is not.
    """
    key, word = expression.get("key", ""), expression.get("operator", "")
    return _requirement_of(key, word, tuple(expression.get("values") or ()))


@lru_cache(maxsize=4096)  # one template is held against all nodes
def _requirement_of(key: str, word: str, values: tuple[str, ...]) -> Requirement:
    operator = _OF_OBJECTS.get(word)
    if operator is None:
        raise ValueError(f"{shown(word)} is not a valid label selector operator")
    return Requirement(key, operator, frozenset(values))
