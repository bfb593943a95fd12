"""Objects as Go clients send them: protobuf, application/vnd.kubernetes.protobuf.

In: a request's body. Out: the same object as JSON decodes it, or ApiError (400, 415). The numbers
of fields are recorded with the document; what they hold follows from its shapes. Source:
k8s.io/apimachinery ``pkg/runtime/serializer/protobuf`` and the ``generated.proto`` files of 1.36;
every field of every kind is compared with Go (``embedded/tests/unit/test_protobuf.py``).

Answers and watch events are never protobuf: clients that send it take JSON as well.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pocketkube import errors
from pocketkube.objects import Object
from pocketkube.schema.binary import protobuf_values as values
from pocketkube.schema.binary.protobuf_values import MalformedError, wire_items
from pocketkube.schema.document import Document
from pocketkube.schema.shape import Shape, Type

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_WITHOUT = "apiextensions.k8s.io"
"""Of this group clients send JSON: its schemas have forms of their own."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def decoded(raw: bytes, document: Document) -> Object:
    """Decode the body of a request.

    Raises ApiError: 400 for what is no protobuf of that kind, 415 for a kind that has none:
    definitions and custom resources.
    """
    if not raw.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise errors.bad_request(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    try:
        api_version, kind, content = _envelope(raw[len(MAGIC) :])
        name = _schema_name(document, api_version, kind)
        if not name:
            raise errors.unsupported_media_type(["application/json", "application/yaml"])
        fields = _messages(document).read(content, name)
    except (MalformedError, RecursionError) as error:
        raise errors.bad_request(f"the body of the request is no valid protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **fields}


def _envelope(data: bytes) -> tuple[str, str, bytes]:
    """Read ``runtime.Unknown``: typeMeta (1) with apiVersion (1) and kind (2), and raw (2)."""
    found = values.by_number(data, {1: _BYTES, 2: _BYTES})
    type_meta = values.by_number(found.get(1, b""), {1: _BYTES, 2: _BYTES})
    api_version, kind = values.text(type_meta.get(1, b"")), values.text(type_meta.get(2, b""))
    if not api_version or not kind:
        raise MalformedError(f"Object {'apiVersion' if kind else 'Kind'!r} is missing")
    return api_version, kind, found.get(2, b"")


def _schema_name(document: Document, api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if group == _WITHOUT:
        return ""
    return document.schema_name(group, version, kind)


class _Field(NamedTuple):
    """What a number of a message stands for."""

    name: str  # empty: an embedded struct, whose fields are fields of the object around it
    wire: int
    read: Callable[[Any], Any]
    many: Literal["", "list", "map"]
    drops: bool  # JSON has it only when it is not empty


@functools.lru_cache(maxsize=4)
def _messages(document: Document) -> _Messages:
    return _Messages(document)


class _Messages:
    """Reads messages by the document's name of their type; what that takes is built once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._tables: dict[str, dict[int, _Field]] = {}

    def read(self, data: bytes, name: str) -> Object:
        """Read one message. Raises MalformedError."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._table(name)
        return _read(data, table)

    def _table(self, name: str) -> dict[int, _Field]:
        """Build the table of a type; embedded structs are messages inside, with their own."""
        facts = self._document.go.get(name, {})
        shape, embedded = self._document.shape(name), facts.get("embedded", {})
        paths = sorted(set(embedded.values()))
        numbers = facts.get("numbers", [0] * (len(shape.fields) + len(paths)))
        tables: dict[str, dict[int, _Field]] = {path: {} for path in ("", *paths)}
        for field, number in zip([*sorted(shape.fields), *paths], numbers, strict=True):
            if field in shape.fields:
                drops = field in shape.drops
                made = self._field(field, shape.fields[field], drops=drops)
                tables[embedded.get(field, "")][number] = made
            else:
                read = functools.partial(_read, table=tables[field])
                tables[field.rpartition(".")[0]][number] = _Field("", _BYTES, read, "", False)
        for table in tables.values():
            table.pop(0, None)  # of no message: apiVersion and kind
        return tables[""]

    def _field(self, name: str, shape: Shape, *, drops: bool) -> _Field:
        if shape.type is Type.LIST and shape.item is not None:
            return _Field(name, *self._value(shape.item), "list", drops)
        if shape.type is Type.MAP and shape.item is not None:
            value = _Field("", *self._value(shape.item), "", False)
            return _Field(name, _BYTES, functools.partial(_entry, field=value), "map", drops)
        return _Field(name, *self._value(shape), "", drops)

    def _value(self, shape: Shape) -> tuple[int, Callable[[Any], Any]]:
        """Return the wire type and the reader of one value."""
        special = self._special(shape)
        if special is not None:
            return _BYTES, special
        match shape.type:
            case Type.OBJECT:
                return _BYTES, functools.partial(self.read, name=shape.name)
            case Type.INTEGER:
                return _VARINT, values.int32 if shape.format == "int32" else values.int64
            case Type.BOOLEAN:
                return _VARINT, bool
            case Type.NUMBER:
                return _FIXED64, values.double
            case Type.LIST if shape.item is not None:  # a type such as ExtraValue: items (1)
                items = self._field("items", shape.item, drops=False)._replace(many="list")
                return _BYTES, functools.partial(_items_of, table={1: items})
            case _:
                return _BYTES, values.base64_text if shape.format == "byte" else values.text

    @staticmethod
    def _special(shape: Shape) -> Callable[[bytes], Any] | None:
        """Return the reader of a type that is a message, but no object of fields in JSON."""
        if shape.type is Type.ANY:
            return values.raw_json
        if shape.type is Type.QUANTITY:
            return values.quantity
        if shape.type is Type.INT_OR_STRING:
            return values.int_or_string
        if shape.format == "date-time":
            return values.micro_time if shape.name.endswith("MicroTime") else values.time
        return None


def _read(data: bytes, table: dict[int, _Field]) -> Object:
    """Read a message into what JSON would hold; numbers that are not known are passed over."""
    result: Object = {}
    for number, wire, value in wire_items(data):
        field = table.get(number)
        if field is None:
            continue
        if wire != field.wire:
            raise MalformedError(f"wrong wireType = {wire} for field {field.name}")
        read = field.read(value)
        if not field.name:
            result.update(read)
        elif field.many == "list":
            result.setdefault(field.name, []).append(read)
        elif field.many == "map":
            result.setdefault(field.name, {}).update([read])
        elif read is not None and (read or not field.drops):
            result[field.name] = read
        else:
            result.pop(field.name, None)  # what is said last counts
    return result


def _entry(data: bytes, field: _Field) -> tuple[str, Any]:
    """Read one entry of a map: key (1), which is always a text, and value (2)."""
    found = values.by_number(data, {1: _BYTES, 2: field.wire})
    zero: Any = b"" if field.wire == _BYTES else struct.pack("<d", 0) if field.wire else 0
    return values.text(found.get(1, b"")), field.read(found.get(2, zero))


def _items_of(data: bytes, table: dict[int, _Field]) -> list[Any]:
    items: list[Any] = _read(data, table).get("items", [])
    return items
