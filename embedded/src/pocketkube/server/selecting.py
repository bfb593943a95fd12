"""Which objects a list or watch asks for: label and field selectors of a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from multidict import MultiMapping

from pocketkube.errors import bad_request
from pocketkube.matching.selectors import LabelSelector, parse_labels
from pocketkube.objects import Object, name_of, namespace_of
from pocketkube.registry.rules import rules_of
from pocketkube.registry.rules.common import text_of
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Entry

Getter = Callable[[Object], str]
_OF_ALL: Mapping[str, Getter] = {"metadata.name": name_of, "metadata.namespace": namespace_of}
_TERM = re.compile(r"([^=!]+)(!=|==|=)([^=\\]*)")


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
    """Read ``a=b,c!=d``; no value has a comma or a backslash. Raises ApiError (400)."""
    terms = []
    for part in filter(None, text.split(",")):
        match = _TERM.fullmatch(part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append(FieldTerm(match[1], match[3], match[2] != "!="))
    return tuple(terms)


def field_selector(
    text: str, selectable: Mapping[str, Getter], *, namespaced: bool = True
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
            raise bad_request(f"field label not supported: {term.field}")
    return FieldSelector(terms, getters)


_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace (empty: all), and what labels and fields have to be; None: anything."""

    namespace: str
    labels: LabelSelector | None
    fields: FieldSelector | None
    name: str = ""  # of the one object that can be selected; empty: of any

    def takes(self, entry: Entry, obj: Callable[[], Object | None]) -> bool:
        """Tell whether an entry is selected; ``obj`` decodes it, if need be."""
        if self.namespace and entry.namespace != self.namespace:
            return False
        if self.name and entry.name != self.name:
            return False
        if self.labels is not None and not self.labels.matches(entry.labels):
            return False
        if self.fields is None:
            return True
        found = obj()
        return found is not None and self.fields.matches(found)

    @property
    def takes_all(self) -> bool:
        """Tell whether only the namespace counts."""
        return self.labels is None and self.fields is None and not self.name


def selection_of(resource: Resource, namespace: str, query: MultiMapping[str]) -> Selection:
    """Read ``labelSelector`` and ``fieldSelector``. Raises ApiError (400)."""
    text = query.get("labelSelector", "")
    labels = parse_labels(text) if text else None
    fields = field_selector(
        query.get("fieldSelector", ""),
        _selectable(resource),
        namespaced=_selects_namespace(resource),
    )
    name = fields.exact(_NAME) or ""
    only_name = bool(name) and len(fields.terms) == 1
    return Selection(namespace, labels, None if fields.empty or only_name else fields, name)


def _selectable(resource: Resource) -> dict[str, Getter]:
    found: dict[str, Getter] = dict(rules_of(resource).selectable)
    for field in resource.extras.get("selectableFields", ()):
        path = str(field.get("jsonPath", "")).lstrip(".")
        found[path] = text_of(path)
    return found


def _selects_namespace(resource: Resource) -> bool:
    """Tell whether metadata.namespace can be selected by, as it can for most kinds without one."""
    known = ("namespaces", "nodes", "persistentvolumes")
    return resource.namespaced or not (resource.crd or resource.bucket in known)
