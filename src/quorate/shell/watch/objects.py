"""Which objects are watched, and what their coming, changing and going means to the core.

In: nothing but configuration. Out: one ``WatchedKind`` for each path of the API server. Called by
the watchers, which know lists, streams and errors, and nothing of what is inside an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from quorate.core.model import GangKey
from quorate.core.model.changes import (
    AnyChange,
    GangChanged,
    GangGone,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    PodGone,
)
from quorate.dialects import DIALECTS, GangObject
from quorate.dialects.base import Malformed, Resource
from quorate.dialects.common.fields import UNREADABLE
from quorate.dialects.common.hold_time import with_hold_time
from quorate.shell.kube.paths import resource_path
from quorate.shell.watch.lookups import LOOKUPS, Lookup
from quorate.shell.watch.nodes import decode_node
from quorate.shell.watch.pod.decoding import PodDecoder
from quorate.shell.watch.pod.wire import defect_text

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node")


class Identity(Struct, gc=False):
    """The metadata that names an object."""

    name: str
    namespace: str = ""
    uid: str = ""

    @property
    def full_name(self) -> str:
        """Its name in its namespace."""
        return f"{self.namespace}/{self.name}"


class WatchedKind(NamedTuple):
    """One kind of object.

    ``changed`` turns an object into a change, or raises ``Malformed``; ``gone`` makes the change
    that says that one is deleted. ``unreadable`` turns that error into the change that takes the
    object out of the core's sight, or None when nobody knows which one it is. ``dialect`` is set
    for the objects of gangs, whose API may not be served.
    """

    resource: Resource
    path: str
    changed: Callable[[bytes], AnyChange]
    gone: Callable[[Identity], AnyChange]
    unreadable: Callable[[Malformed], AnyChange | None]
    dialect: str = ""
    optional: bool = False
    """Whether the API server need not serve it."""
    required: bool = False
    """Whether nothing can be decided without it."""
    struct: str = ""
    """The name of its struct in the core, of what rules look up."""


class _Named(Struct, gc=False):
    metadata: Identity


_NAMED = msgspec.json.Decoder(_Named)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OF_METADATA = (
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
)


def identity(raw: bytes) -> Identity:
    """Return who an object is. Raises ``Malformed``."""
    try:
        return _NAMED.decode(raw).metadata
    except UNREADABLE as error:
        raise Malformed(defect_text(error).replace("the pod", "the object")) from error


def for_status(raw: bytes) -> bytes:
    """Return what a dialect's status is made from: who the object is, its versions, its status.

    The rest may be as large as users like, and would be kept for each gang. ``raw`` is an object
    that its dialect could decode.
    """
    whole = _FIELDS.decode(raw)
    metadata = _FIELDS.decode(whole["metadata"])
    kept = {key: metadata[key] for key in _OF_METADATA if key in metadata}
    status = {"status": whole["status"]} if "status" in whole else {}
    return msgspec.json.encode({"metadata": kept, **status})


Kinds = dict[str, WatchedKind]
"""Kinds by the path at which they are listed and watched."""


def watched_kinds(owned: frozenset[str]) -> Kinds:
    """Return all that the scheduler watches, nodes before pods: these are counted on known nodes.

    ``owned`` are the scheduler names whose pods are ours.
    """
    lookups = [_lookup_kind(lookup) for lookup in LOOKUPS]
    return _by_path(lookups) | node_kinds() | gang_kinds(owned)


def node_kinds() -> Kinds:
    """Return the nodes."""
    path = _path(NODES)
    return _by_path(
        [WatchedKind(NODES, path, decode_node, _node_gone, _node_unreadable, required=True)]
    )


def gang_kinds(owned: frozenset[str], namespace: str | None = None) -> Kinds:
    """Return the pods and the objects of gangs, of one namespace or of all."""
    pods = WatchedKind(
        PODS,
        _path(PODS, namespace),
        PodDecoder(owned).news,
        _pod_gone,
        _pod_unreadable,
        required=True,
    )
    groups = [_gang_kind(one.name, one.object, namespace) for one in DIALECTS if one.object]
    return _by_path([pods, *groups])


def _by_path(kinds: list[WatchedKind]) -> Kinds:
    return {kind.path: kind for kind in kinds}


def _gang_kind(name: str, gang_object: GangObject, namespace: str | None) -> WatchedKind:
    resource, decode = gang_object.resource, gang_object.decode

    def changed(raw: bytes) -> AnyChange:
        return GangChanged(with_hold_time(decode(raw), raw))

    def gone(who: Identity) -> AnyChange:
        return GangGone(GangKey(who.namespace, name, who.name))

    def unreadable(error: Malformed) -> AnyChange | None:
        key = GangKey(error.namespace, name, error.name)
        return GangGone(key) if key.namespace and key.name else None

    return WatchedKind(resource, _path(resource, namespace), changed, gone, unreadable, name)


def _lookup_kind(lookup: Lookup) -> WatchedKind:
    kind = lookup.struct.__name__

    def changed(raw: bytes) -> AnyChange:
        return ObjectChanged(lookup.decode(raw))

    def gone(who: Identity) -> AnyChange:
        return ObjectGone(kind, who.namespace, who.name)

    def unreadable(error: Malformed) -> AnyChange | None:
        if not error.name:
            return None
        return ObjectGone(kind, error.namespace, error.name, defect=error.message)

    path = _path(lookup.resource)
    return WatchedKind(
        lookup.resource, path, changed, gone, unreadable, optional=lookup.optional, struct=kind
    )


def _node_gone(who: Identity) -> AnyChange:
    return NodeGone(who.name)


def _node_unreadable(error: Malformed) -> AnyChange | None:
    return NodeGone(error.name, defect=error.message) if error.name else None


def _pod_gone(who: Identity) -> AnyChange:
    return PodGone(who.uid)


def _pod_unreadable(error: Malformed) -> AnyChange | None:
    return PodGone(error.uid) if error.uid else None


def _path(resource: Resource, namespace: str | None = None) -> str:
    return resource_path(resource.group, resource.version, resource.plural, namespace)
