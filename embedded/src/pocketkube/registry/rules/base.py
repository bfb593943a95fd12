"""What a kind may say about its own objects; every hook works on plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pocketkube.errors import Cause
from pocketkube.objects import Object


class Surroundings(Protocol):
    """What a hook may look at besides the object."""

    def now_s(self) -> float:
        """Return the seconds since 1970."""

    def suffix(self) -> str:
        """Return five random letters, as generated names end."""

    def find(self, bucket: str, namespace: str, name: str) -> Object | None:
        """Return a stored object; buckets are named ``pods``, ``deployments.apps``."""

    def find_all(self, bucket: str, namespace: str = "") -> list[Object]:
        """Return the stored objects of a bucket, of one namespace or of all."""


def _nothing(*_: Any) -> None:
    return None


def _no_causes(*_: Any) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Hooks of one resource.

    On create, in this order: defaults, prepare_create, validate, validate_create. On update:
    defaults(new), prepare_update(new, old), validate(new), validate_update(new, old). On a write to
    ``status``: prepare_status(new, old). All change the new object in
    place. The prepare hooks may raise ApiError (403), as admission plugins do. What all kinds share
    (name, uid, resourceVersion, creationTimestamp, metadata checks, keeping status out of writes to
    the main resource and spec out of writes to the status) is done by ``api``, not here.
    """

    defaults: Callable[[Object], None] = _nothing
    prepare_create: Callable[[Object, Surroundings], None] = _nothing
    prepare_update: Callable[[Object, Object, Surroundings], None] = _nothing
    prepare_status: Callable[[Object, Object], None] = _nothing
    validate: Callable[[Object], list[Cause]] = _no_causes
    validate_create: Callable[[Object], list[Cause]] = _no_causes
    """Checks that only a create has, after those of ``validate``."""
    validate_update: Callable[[Object, Object], list[Cause]] = _no_causes
    has_generation: bool = False
    """metadata.generation is kept: 1 at first, one more with each change of the spec."""
    counts_annotations: bool = False
    """metadata.generation grows with changed annotations too, as it does for Deployments."""
    keeps_status: bool = False
    """A create may set the status, as it may for nodes; otherwise it is dropped."""
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """Field selectors besides metadata.name and metadata.namespace, such as spec.nodeName."""
    name_is: str = "dns-subdomain"
    """Form of metadata.name: dns-subdomain, dns-label, dns-1035-label, path-segment (RBAC)."""
