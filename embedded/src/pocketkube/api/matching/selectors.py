"""Selectors: what a list, a watch or a controller wants of all the objects.

In: query strings, and LabelSelector objects. Out: predicates over labels. Source of syntax and
messages: k8s.io/apimachinery ``pkg/labels`` of 1.36, and answers of a real API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pocketkube.causes import shown
from pocketkube.errors import ApiError, bad_request
from pocketkube.names import label_key, label_value

Operator = Literal["in", "notin", "exists", "!", "gt", "lt"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition; ``a=b`` is ``in`` with one value, ``a!=b`` is ``notin``."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Write it as a query has it."""
        values = sorted(self.values)
        if self.operator in ("in", "notin"):
            if self.operator == "in" and len(values) == 1:
                return f"{self.key}={values[0]}"
            return f"{self.key} {self.operator} ({','.join(values)})"
        if self.operator in ("exists", "!"):
            return self.key if self.operator == "exists" else f"!{self.key}"
        return f"{self.key}{self.operator}{''.join(values)}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels fulfil it."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":  # also when there is no such label
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        return _compares(value, self.operator, next(iter(self.values)))


def _compares(value: str | None, operator: Operator, bound: str) -> bool:
    number = None if value is None else _int64(value)
    if number is None:
        return False
    return number > int(bound) if operator == "gt" else number < int(bound)


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
        single = [r for r in self.requirements if r.operator == "in" and len(r.values) == 1]
        # Equality is what nearly all selectors ask for, so that it gets the shortest way.
        self._equal = tuple((r.key, next(iter(r.values))) for r in single)
        self._others = tuple(r for r in self.requirements if r not in single)

    def __str__(self) -> str:
        """Write it as a query has it, by key."""
        return ",".join(map(str, sorted(self.requirements, key=lambda one: one.key)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self._others)

    @property
    def empty(self) -> bool:
        """Tell whether it selects everything."""
        return not self.requirements


EVERYTHING = LabelSelector()
NOTHING = LabelSelector([Requirement("nothing", "in")])
"""Matches no labels: what a LabelSelector that is null means."""


# Label selectors of query strings

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>!=|==|[=!(),><])|(?P<word>[^=!(),>< \t\r\n\0]+)\0?)?")
_OPERATORS: Mapping[str, Operator] = {
    "in": "in",
    "notin": "notin",
    "=": "in",
    "==": "in",
    "!=": "notin",
    ">": "gt",
    "<": "lt",
}
_SYMBOLS = frozenset({"!=", "==", "=", "!", "(", ")", ",", ">", "<", ""})


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """Read ``a=b,c!=d,e in (x,y),!f,g notin (z),h,i>5``. Raises ApiError (400)."""
    if not text:
        return EVERYTHING
    parser = _Parser(_tokens(text))
    return LabelSelector(sorted(parser.selector(), key=lambda requirement: requirement.key))


def _tokens(text: str) -> list[str]:
    """Split into symbols and words; the last token is empty, and means the end."""
    found, at = [], 0
    while True:
        match = _TOKEN.match(text, at)
        token = (match["symbol"] or match["word"] or "") if match else ""
        found.append(token)
        if not match or not token:
            return found
        at = match.end()


class _Parser:
    """Recursive descent over the tokens; its sentences are those of the real server."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def selector(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            token = self._peek()
            if not token:
                return found
            if token in _SYMBOLS and token != "!":
                raise _unexpected(token, "!, identifier, or 'end of string'")
            found.append(self._requirement())
            token = self._next()
            if not token:
                return found
            if token != ",":
                raise _unexpected(token, "',' or 'end of string'")
            if self._peek() in _SYMBOLS - {"!"}:
                raise _unexpected(self._peek(), "identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._next()
        absent = key == "!"
        if absent:
            key = self._next()
        if key in _SYMBOLS:
            raise _in_requirement(_unexpected(key, "identifier"))
        faults = label_key(key)
        if faults:
            # The real server has no path here, and prints Go's nil.
            raise _in_requirement(bad_request(f"<nil>: {_bad(key, '; '.join(faults))}"))
        if absent:  # a ! and an operator together are left for the caller to stumble upon
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        word = self._next()
        if word not in _OPERATORS:
            raise _in_requirement(_unexpected(word, "in, notin, =, ==, !=, gt, lt"))
        operator = _OPERATORS[word]
        values = self._values() if word in ("in", "notin") else {self._value()}
        _check_values(key, operator, sorted(values))
        return Requirement(key, operator, frozenset(values))

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._next()
        if token in _SYMBOLS:
            raise _in_requirement(_unexpected(token, "identifier"))
        return token

    def _values(self) -> set[str]:
        token = self._next()
        if token != "(":
            # No comma before "expected" in this one sentence of the real server.
            raise _in_requirement(bad_request(f"found '{token}' expected: '('"))
        first = self._peek()
        if first == ")":
            self._next()
            return {""}
        if first in _SYMBOLS - {","}:
            raise _in_requirement(_unexpected(first, "',', ')' or identifier"))
        return self._inside_parentheses()

    def _inside_parentheses(self) -> set[str]:
        values: set[str] = set()
        while True:
            token = self._next()
            after = self._peek()
            if token == ",":
                if not values or after in (")", ","):
                    values.add("")
                if after == ")":
                    break
            elif token in _SYMBOLS:
                raise _in_requirement(_unexpected(token, "',', or identifier"))
            else:
                values.add(token)
                if after == ")":
                    break
                if after != ",":
                    raise _in_requirement(_unexpected(after, "',' or ')'"))
        self._next()
        return values


def _check_values(key: str, operator: Operator, values: list[str]) -> None:
    faults = []
    if operator in ("gt", "lt") and _int64(values[0]) is None:
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        faults.append(f"values[0]: {_bad(values[0], why)}")
    for i, value in enumerate(values):
        wrong = label_value(value)
        if wrong:
            faults.append(f"values[{i}][{key}]: {_bad(value, '; '.join(wrong))}")
    if faults:
        text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise _in_requirement(bad_request(text))


def _bad(value: str, why: str) -> str:
    return f"Invalid value: {shown(value)}: {why}"


def _unexpected(token: str, expected: str) -> ApiError:
    return bad_request(f"found '{token}', expected: {expected}")


def _in_requirement(error: ApiError) -> ApiError:
    return bad_request(f"unable to parse requirement: {error.message}")


# LabelSelector objects

_OF_OBJECTS: Mapping[str, Operator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}


def selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Return the predicate of a LabelSelector object; null matches nothing, ``{}`` everything.

    Raises ValueError for an operator that there is not; ``selector_causes`` finds it before.
    """
    if selector is None:
        return NOTHING
    found = [
        Requirement(key, "in", frozenset([value]))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or []:
        operator = _OF_OBJECTS.get(expression.get("operator", ""))
        if operator is None:
            word = shown(expression.get("operator", ""))
            raise ValueError(f"{word} is not a valid label selector operator")
        values = frozenset(expression.get("values") or ())
        found.append(Requirement(expression.get("key", ""), operator, values))
    return LabelSelector(found)
