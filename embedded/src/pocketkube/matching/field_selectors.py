"""Field selectors: ``metadata.name=a,spec.nodeName!=b``.

In: query strings, and how a kind finds its fields. Out: predicates over objects. Source:
k8s.io/apimachinery ``pkg/fields`` of 1.36, and answers of a real API server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pocketkube.causes import shown
from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Object, name_of, namespace_of

Getter = Callable[[Object], str]
_OF_ALL: Mapping[str, Getter] = {"metadata.name": name_of, "metadata.namespace": namespace_of}
_PART = re.compile(r"(?:\\.|[^,\\]|\\$)+", re.DOTALL)
_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)


class FieldTerm(NamedTuple):
    """One condition; ``equal`` is False for ``!=``."""

    field: str
    value: str
    equal: bool = True


class FieldSelector:
    """All its terms together; without any it matches everything."""

    __slots__ = ("_checks", "terms")

    def __init__(self, terms: tuple[FieldTerm, ...], getters: Mapping[str, Getter]) -> None:
        self.terms = terms
        self._checks = tuple((getters[term.field], term.value, term.equal) for term in terms)

    def matches(self, obj: Object) -> bool:
        """Tell whether the object is selected."""
        return all((get(obj) == value) is equal for get, value, equal in self._checks)

    def exact(self, field: str) -> str | None:
        """Return the value that a field must have; None when it may have several."""
        found = (term.value for term in self.terms if term.field == field and term.equal)
        return next(found, None)

    @property
    def empty(self) -> bool:
        """Tell whether it selects everything."""
        return not self.terms


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> tuple[FieldTerm, ...]:
    """Read ``a=b,c!=d``; a backslash makes the comma and = ordinary. Raises ApiError (400)."""
    found = []
    for part in sorted(_PART.findall(text)):
        match = _TERM.fullmatch(part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        term = FieldTerm(match[1], _unescaped(match[3]), match[2] != "!=")
        if term.field or term.value:  # a lone operator asks for nothing, as upstream
            found.append(term)
    return tuple(found)


def _unescaped(value: str) -> str:
    def plain(match: re.Match[str]) -> str:
        text = match[0]
        if text in (",", "="):
            why = f"unescaped character in value: {ord(text)}"
            raise bad_request(f"invalid field selector: {why}")
        if text[1:] not in ("\\", ",", "="):
            raise bad_request(f"invalid field selector: invalid escape sequence: {text}")
        return text[1:]

    return re.sub(r"\\.?|[,=]", plain, value, flags=re.DOTALL)


def field_selector(
    text: str, selectable: Mapping[str, Getter], kind: str, *, namespaced: bool = True
) -> FieldSelector:
    """Read the field selector of a request for one kind.

    ``selectable`` names the kind's fields besides metadata.name and metadata.namespace. Raises
    ApiError (400) for text that cannot be read and for fields that cannot be selected by.
    """
    terms = parse_fields(text)
    getters = {**_OF_ALL, **selectable}
    if not namespaced:
        del getters["metadata.namespace"]
    for term in terms:
        if term.field not in getters:
            raise _unsupported(term.field, selectable, kind)
    return FieldSelector(terms, getters)


def _unsupported(field: str, selectable: Mapping[str, Getter], kind: str) -> ApiError:
    """Kinds without fields of their own share one sentence; the others have three, as upstream."""
    if not selectable:
        known = 'only "metadata.name", "metadata.namespace"'
        return bad_request(f"{shown(field)} is not a known field selector: {known}")
    if kind == "Job":
        return bad_request(f"field label {shown(field)} not supported for Job")
    if kind == "ResourceSlice":
        what = "resource.k8s.io/v1, Kind=ResourceSlice"
        return bad_request(f"field label not supported for {what}: {field}")
    return bad_request(f"field label not supported: {field}")
