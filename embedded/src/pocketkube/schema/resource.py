"""One resource of the API: from the recorded document, or from a CRD."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketkube.schema.shape import Shape

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Order versions as Kubernetes does, the best last: v1alpha1, v1beta1, v1, v2.

    Names of another form come first, in the order against that of the alphabet.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return 0, 0, 0, "".join(chr(0x10FFFF - ord(letter)) for letter in version)
    stage = {None: 3, "beta": 2, "alpha": 1}[match[2]]
    return stage, int(match[1]), int(match[3] or 0), ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    """One subresource, such as ``status`` or ``binding``, of a resource."""

    name: str
    verbs: frozenset[str]  # get, patch, update, create
    kind: str  # of what it reads and writes, such as Scale
    group: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """One resource in one version. ``bucket`` is where its objects are stored, for all versions."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    shape: Shape
    bucket: str  # such as pods or deployments.apps
    list_kind: str = ""
    crd: str = ""  # name of the CustomResourceDefinition; empty for built-in resources
    storage_version: str = ""
    columns: tuple[Mapping[str, Any], ...] = ()  # columnDefinitions of its Table
    extras: Mapping[str, Any] = field(
        default_factory=dict
    )  # of CRDs: scale paths, selectableFields

    @property
    def api_version(self) -> str:
        """Return ``apps/v1``, or ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of the collection, or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")
