"""The document recorded from a real kube-apiserver: resources, shapes, bootstrap objects.

In: ``recorded.json.xz`` beside this module, written by ``python -m tools.openapi``. Out:
``Document``. Called by whoever has to know what a type looks like; everything is built once, and
only when it is asked for.
"""

from __future__ import annotations

import copy
import functools
import importlib.resources
import lzma
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pocketkube.errors import qualified
from pocketkube.objects import Object
from pocketkube.schema.building import ShapeBuilder
from pocketkube.schema.resource import Resource, Subresource
from pocketkube.schema.shape import Shape

GVK = "x-kubernetes-group-version-kind"
_FILE = "recorded.json.xz"
_NOT_SERVED = frozenset(
    {
        "limitranges",
        "localsubjectaccessreviews",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "podtemplates",
        "selfsubjectrulesreviews",
        "tokenreviews",
        "validatingwebhookconfigurations",
    }
)
"""Resources that the real server has and this one has not: nothing would act on them."""
_NO_SUBRESOURCES = frozenset({"approval", "ephemeralcontainers", "resize"})
"""Subresources, likewise."""


class Document:
    """What the real server says of itself. Share it: nobody may change what it gives."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        """Read a decoded recording; ``load`` is the way to the one that is shipped."""
        self.version: dict[str, Any] = recorded["version"]
        self.schemas: dict[str, dict[str, Any]] = recorded["schemas"]
        self.groups: list[dict[str, Any]] = recorded["groups"]
        for version in (version for group in self.groups for version in group["versions"]):
            served = [e for e in version["resources"] if e["resource"] not in _NOT_SERVED]
            version["resources"] = served
        self._columns: dict[str, list[dict[str, Any]]] = recorded["columns"]
        self._bootstrap: list[Object] = recorded["bootstrap"]
        self.go: dict[str, dict[str, Any]] = recorded["go"]
        self._builder = ShapeBuilder(self.schemas, self.go)
        self._resources: list[Resource] = []

    @classmethod
    @functools.lru_cache(maxsize=1)
    def load(cls) -> Document:
        """Return the shipped document, read once in this process."""
        packed = importlib.resources.files(__package__).joinpath(_FILE).read_bytes()
        return cls(msgspec.json.decode(lzma.decompress(packed)))

    @property
    def bootstrap(self) -> list[Object]:
        """A copy of what every new cluster holds: namespaces, priorities, RBAC, flow control."""
        return copy.deepcopy(self._bootstrap)

    def shape(self, name: str) -> Shape:
        """Return a shape by its name, such as io.k8s.api.core.v1.Pod. Raises KeyError."""
        return self._builder.named(name)

    def schema_name(self, group: str, version: str, kind: str) -> str:
        """Return the document's name of a kind; empty when it has none."""
        return self._names_by_kind.get((group, version, kind), "")

    def resources(self) -> list[Resource]:
        """Return every resource of the document; the preferred version of a group comes first."""
        if not self._resources:
            self._resources = list(self._built_resources())
        return list(self._resources)

    @functools.cached_property
    def _names_by_kind(self) -> dict[tuple[str, str, str], str]:
        return {
            (kind["group"], kind["version"], kind["kind"]): name
            for name, schema in self.schemas.items()
            for kind in schema.get(GVK, ())
        }

    def _built_resources(self) -> Iterator[Resource]:
        first_versions: dict[str, str] = {}
        for group in self.groups:
            for version in group["versions"]:
                for entry in version["resources"]:
                    bucket = qualified(entry["resource"], group["name"])
                    stored = first_versions.setdefault(bucket, version["version"])
                    yield self._resource(group["name"], version["version"], entry, stored)

    def _resource(
        self, group: str, version: str, entry: Mapping[str, Any], storage_version: str
    ) -> Resource:
        kind, plural = entry["responseKind"]["kind"], entry["resource"]
        root = f"/apis/{group}" if group else "/api"
        columns = self._columns.get(f"{root}/{version}/{plural}", [])
        return Resource(
            group=group,
            version=version,
            plural=plural,
            singular=entry["singularResource"],
            kind=kind,
            namespaced=entry["scope"] == "Namespaced",
            verbs=frozenset(entry["verbs"]),
            short_names=tuple(entry.get("shortNames", ())),
            categories=tuple(entry.get("categories", ())),
            subresources={
                sub["subresource"]: _subresource(group, version, sub)
                for sub in entry.get("subresources", ())
                if sub["subresource"] not in _NO_SUBRESOURCES
            },
            shape=self.shape(self._names_by_kind[group, version, kind]),
            # Both kinds of events are one: what is written as the one is read as the other.
            bucket="events" if kind == "Event" else qualified(plural, group),
            list_kind=f"{kind}List",
            storage_version=storage_version,
            columns=tuple({**column, "description": ""} for column in columns),
        )


def _subresource(group: str, version: str, entry: Mapping[str, Any]) -> Subresource:
    """A subresource that names no group and version has those of its resource."""
    kind = entry["responseKind"]
    own = bool(kind["version"])
    return Subresource(
        name=entry["subresource"],
        verbs=frozenset(entry["verbs"]),
        kind=kind["kind"],
        group=kind["group"] if own else group,
        version=kind["version"] if own else version,
    )
