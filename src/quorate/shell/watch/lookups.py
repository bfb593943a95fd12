"""Objects that rules look up besides pods and nodes: to ``ObjectChanged`` and ``ObjectGone``.

Called by ``objects`` for each version of each of them. To add a kind: a decoder, and a row in
``LOOKUPS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from quorate.core.changes import AnyObject
from quorate.core.model import DeviceClass, Namespace, ResourceClaim, ResourceSlice
from quorate.dialects.base import Malformed, Resource
from quorate.dialects.fields import UNREADABLE
from quorate.shell.watch.devices import decode_claim, decode_class, decode_slice
from quorate.shell.watch.pod_wire import defect_text


class Lookup(NamedTuple):
    """One kind. ``decode`` raises ``Malformed``; ``struct`` is what it returns.

    The API of an ``optional`` kind need not be served.
    """

    resource: Resource
    struct: type[Struct]
    decode: Callable[[bytes], AnyObject]
    optional: bool = False


class _Metadata(Struct, gc=False):
    name: str
    labels: dict[str, str] | None = None


class _WireNamespace(Struct, gc=False):
    metadata: _Metadata


_NAMESPACE = msgspec.json.Decoder(_WireNamespace)


def _namespace(raw: bytes) -> Namespace:
    try:
        meta = _NAMESPACE.decode(raw).metadata
    except UNREADABLE as error:
        raise Malformed(defect_text(error).replace("the pod", "the namespace")) from error
    return Namespace(meta.name, tuple(sorted((meta.labels or {}).items())))


def _devices(plural: str, kind: str) -> Resource:
    return Resource("resource.k8s.io", "v1", plural, kind)


LOOKUPS: tuple[Lookup, ...] = (
    Lookup(Resource("", "v1", "namespaces", "Namespace"), Namespace, _namespace),
    Lookup(_devices("deviceclasses", "DeviceClass"), DeviceClass, decode_class, optional=True),
    Lookup(_devices("resourceslices", "ResourceSlice"), ResourceSlice, decode_slice, optional=True),
    Lookup(_devices("resourceclaims", "ResourceClaim"), ResourceClaim, decode_claim, optional=True),
)
