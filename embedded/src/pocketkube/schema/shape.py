"""What a JSON value has to look like: one class for the document's types and for CRDs' schemas."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketkube.errors import Cause


class Type(enum.StrEnum):
    """The JSON types, and Kubernetes' two mixed ones."""

    OBJECT = "object"  # fields by name
    MAP = "map"  # any key, one shape of value
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"  # a string or a number, such as 500m
    ANY = "any"


class Merge(enum.StrEnum):
    """How two writers' lists or maps come together (x-kubernetes-list-type, -map-type)."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"  # lists: items are known by ``keys``
    GRANULAR = "granular"  # objects and maps: by field


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Shape:
    """The structure of one value. Shapes may contain themselves, so compare by identity."""

    type: Type
    name: str = ""  #: the document's name of it, such as io.k8s.api.core.v1.Pod
    format: str = ""  #: int32, int64, date-time, byte, ...
    fields: Mapping[str, Shape] = field(default_factory=dict)  #: of an OBJECT
    drops: frozenset[str] = frozenset()  #: of an OBJECT: Go writes these only when not empty
    fills: Mapping[str, Any] = field(default_factory=dict)  #: what Go writes for fields not given
    item: Shape | None = None  #: of a MAP's values or a LIST's items; None: anything
    merge: Merge = Merge.ATOMIC  #: for server-side apply
    keys: tuple[str, ...] = ()  #: of a LIST with Merge.MAP
    patch_merge_key: str = ""  #: of a LIST, for strategic merge patches
    patch_strategies: frozenset[str] = frozenset()  #: merge, replace, retainKeys
    default: Any = None  #: of a CRD's field, or of the document's; None: none
    has_default: bool = False
    nullable: bool = False  #: null is kept (CRDs)
    preserve_unknown: bool = False  #: fields that are not named are kept (CRDs)
    embedded: bool = False  #: x-kubernetes-embedded-resource: has apiVersion, kind, metadata
    schema: Mapping[str, Any] | None = None  #: of a CRD: the openAPIV3Schema it was made from
    check: Callable[[Any], list[Cause]] | None = None
    """Of a CRD's kind as a whole: gives what is wrong with an object (``crd.causes``)."""
