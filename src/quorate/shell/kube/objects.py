"""What objects of all kinds have in common, as the API writes it: to be decoded into.

Used by ``shell.watch``, ``commit`` and ``report``, which add what is of one kind; of a pod, what
several of them read is here. Fields that are left out of an object have their zero value here.
"""

from __future__ import annotations

from msgspec import Struct, field


class OwnerRef(Struct, gc=False, rename="camel"):
    """``metadata.ownerReferences[]``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Struct, gc=False, rename="camel", kw_only=True):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerRef] | None = None


class NamedMetadata(Metadata, gc=False, kw_only=True):
    """``metadata`` that is of no use without a name: decoding fails."""

    name: str


class Condition(Struct, gc=False):
    """``status.conditions[]``."""

    type: str = ""
    status: str = ""
    message: str = ""


class AnyObject(Struct, gc=False):
    """An object of which only the metadata matters."""

    metadata: Metadata = field(default_factory=Metadata)


class PodNode(Struct, gc=False, rename="camel"):
    """``spec`` of a pod, of which only its node matters."""

    node_name: str = ""


class PodObject(Struct, gc=False):
    """A pod as it is read once, by itself: which one it is, and where."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: PodNode = field(default_factory=PodNode)


class NamedObject(Struct, gc=False):
    """The same, of which the name is needed."""

    metadata: NamedMetadata
