"""A node's JSON to ``NodeChanged``. Called by ``objects`` for each version of each node.

Nodes post their status every few minutes at most, so this favours clear messages over speed.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from quorate.core.model import Node, Taint
from quorate.core.model.changes import NodeChanged
from quorate.core.model.quantity import QuantityError, is_node_resource, parse_amount
from quorate.dialects.base import Malformed
from quorate.dialects.common.fields import UNREADABLE
from quorate.shell.kube.objects import NamedMetadata, NamedObject
from quorate.shell.watch.pod.wire import defect_text


class _Taint(Struct, gc=False):
    key: str
    effect: str
    value: str | None = None


class _Spec(Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[_Taint] | None = None


class _Status(Struct, gc=False):
    allocatable: dict[str, str | int | float] | None = None
    declared_features: list[str] | None = field(default=None, name="declaredFeatures")


class _WireNode(Struct, gc=False):
    metadata: NamedMetadata
    spec: _Spec | None = None
    status: _Status | None = None


_DECODER = msgspec.json.Decoder(_WireNode)
_NAME = msgspec.json.Decoder(NamedObject)


def decode_node(raw: bytes) -> NodeChanged:
    """Return the node. One of which a field is wrong takes no pods, rather than wrong ones.

    Raises ``Malformed`` with the node's name, when that can be read, and the field.
    """
    try:
        wire = _DECODER.decode(raw)
    except UNREADABLE as error:
        raise Malformed(
            defect_text(error).replace("the pod", "the node"), name=_name(raw)
        ) from error
    name = wire.metadata.name
    if not name:
        raise Malformed("metadata.name is empty")
    spec = wire.spec or _Spec()
    return NodeChanged(
        Node(
            name=name,
            allocatable=_allocatable(name, wire.status),
            labels=tuple(sorted((wire.metadata.labels or {}).items())),
            taints=tuple(Taint(one.key, one.effect, one.value or "") for one in spec.taints or ()),
            unschedulable=bool(spec.unschedulable),
            declared_features=tuple(sorted((wire.status and wire.status.declared_features) or ())),
        )
    )


def _allocatable(name: str, status: _Status | None) -> tuple[tuple[str, int], ...]:
    amounts = []
    for resource, written in sorted(((status and status.allocatable) or {}).items()):
        if resource != "pods" and not is_node_resource(resource):
            continue
        try:
            amounts.append((resource, parse_amount(resource, str(written))))
        except QuantityError as error:
            raise Malformed(f"status.allocatable.{resource[:100]}: {error}", name=name) from error
    return tuple(amounts)


def _name(raw: bytes) -> str:
    try:
        return _NAME.decode(raw).metadata.name
    except UNREADABLE:
        return ""
