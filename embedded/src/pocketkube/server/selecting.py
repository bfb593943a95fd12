"""Which objects a list or watch asks for: label and field selectors of a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from multidict import MultiMapping

from pocketkube.matching.field_selectors import FieldSelector, Getter, field_selector
from pocketkube.matching.selectors import LabelSelector, parse_labels
from pocketkube.objects import Object
from pocketkube.registry.rules import rules_of
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Entry

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
        resource.kind,
        namespaced=_selects_namespace(resource),
    )
    name = fields.exact(_NAME) or ""
    only_name = bool(name) and len(fields.terms) == 1
    return Selection(namespace, labels, None if fields.empty or only_name else fields, name)


def _selectable(resource: Resource) -> dict[str, Getter]:
    found: dict[str, Getter] = dict(rules_of(resource).selectable)
    for field in resource.extras.get("selectableFields", ()):
        path = str(field.get("jsonPath", "")).lstrip(".")
        found[path] = _getter(path)
    return found


def _getter(path: str) -> Getter:
    parts = path.split(".")

    def value_of(obj: Object) -> str:
        found: Any = obj
        for part in parts:
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, bool):
            return str(found).lower()
        return "" if found is None else str(found)

    return value_of


def _selects_namespace(resource: Resource) -> bool:
    """Tell whether metadata.namespace can be selected by, as it can for most kinds without one."""
    known = ("namespaces", "nodes", "persistentvolumes")
    return resource.namespaced or not (resource.crd or resource.bucket in known)
