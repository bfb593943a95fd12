"""Protobuf's wire format, and the single values of Kubernetes' messages.

In: bytes. Out: what JSON would hold. Raises MalformedError, and never another error. Source:
protobuf.dev "Encoding"; k8s.io/apimachinery ``time_proto.go``, ``micro_time_proto.go``,
``quantity_proto.go`` and ``intstr`` of 1.36.
"""

from __future__ import annotations

import base64
import datetime
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - UTC, as is everything here
_AS_EXPONENT = 1e21  # from here on Go writes a float64 with an exponent
_CUT = "unexpected EOF"


class MalformedError(Exception):
    """These bytes are no message of this type."""


def wire_items(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Give number, wire type and value of each field. Raises MalformedError."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if not number:
            raise MalformedError("illegal tag 0")
        value, position = value_at(data, position, wire)
        yield number, wire, value


def value_at(data: bytes, position: int, wire: int) -> tuple[Any, int]:
    """Return the value of a wire type at a position, and where it ends. Raises MalformedError."""
    if wire == _VARINT:
        return _varint(data, position)
    if wire == _BYTES:
        length, position = _varint(data, position)
    elif wire == _FIXED64:
        length = 8
    elif wire == _FIXED32:
        length = 4
    else:
        raise MalformedError(f"illegal wireType {wire}")
    end = position + length
    if end > len(data):
        raise MalformedError(_CUT)
    return data[position:end], end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Read seven bits of each byte, the lowest first, as long as the eighth bit is set."""
    result = shift = 0
    try:
        while (byte := data[position]) >= 0x80:
            result |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift >= 64:
                raise MalformedError("integer overflow")
    except IndexError:
        raise MalformedError(_CUT) from None
    return (result | byte << shift) & 0xFFFF_FFFF_FFFF_FFFF, position + 1


def by_number(data: bytes, wires: Mapping[int, int]) -> dict[int, Any]:
    """Return the last value of each number in ``wires``, of those types. Raises MalformedError."""
    result: dict[int, Any] = {}
    for number, wire, value in wire_items(data):
        if number not in wires:
            continue
        if wires[number] != wire:
            raise MalformedError(f"wrong wireType = {wire} for field {number}")
        result[number] = value
    return result


def int64(value: int) -> int:
    """Read a varint as Go's int64."""
    return value - (1 << 64) if value >> 63 else value


def int32(value: int) -> int:
    """Read a varint as Go's int32, which looks at the lower half alone."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def double(data: bytes) -> int | float:
    """Read a float64, a whole one as an integer, as JSON of it would be read.

    JSON has none that is infinite or no number. Raises MalformedError.
    """
    value: float = struct.unpack("<d", data)[0]
    if not math.isfinite(value):
        raise MalformedError(f"unsupported value: {value}")
    return int(value) if value.is_integer() and abs(value) < _AS_EXPONENT else value


def text(data: bytes) -> str:
    """Read a string; what is no UTF-8 becomes U+FFFD, as Go writes it in JSON."""
    return data.decode(errors="replace")


def base64_text(data: bytes) -> str:
    """Read bytes, which JSON holds in base64."""
    return base64.b64encode(data).decode()


def raw_json(data: bytes) -> Any:
    """Read RawExtension, JSON or FieldsV1: JSON in the field 1. Raises MalformedError."""
    raw = by_number(data, {1: _BYTES}).get(1, b"")
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"a field holds no valid JSON: {error}") from None


def quantity(data: bytes) -> str:
    """Read a Quantity: string (1). Raises MalformedError."""
    return text(by_number(data, {1: _BYTES}).get(1, b"0"))


def int_or_string(data: bytes) -> int | str:
    """Read an IntOrString: type (1), intVal (2), strVal (3). Raises MalformedError."""
    found = by_number(data, {1: _VARINT, 2: _VARINT, 3: _BYTES})
    return text(found.get(3, b"")) if found.get(1) else int32(found.get(2, 0))


def time(data: bytes) -> str | None:
    """Read a Time: seconds (1), nanos (2), which do not count. Raises MalformedError.

    An empty message is Go's zero time, null in JSON.
    """
    seconds, _ = _timestamp(data)
    return _written(seconds, 0, "seconds") if data else None


def micro_time(data: bytes) -> str | None:
    """Read a MicroTime, as ``time`` but to the microsecond. Raises MalformedError."""
    seconds, nanoseconds = _timestamp(data)
    return _written(seconds, nanoseconds // 1000, "microseconds") if data else None


def _timestamp(data: bytes) -> tuple[int, int]:
    found = by_number(data, {1: _VARINT, 2: _VARINT})
    return int64(found.get(1, 0)), int32(found.get(2, 0))


def _written(seconds: int, microseconds: int, timespec: str) -> str:
    try:
        when = _EPOCH + datetime.timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError:
        raise MalformedError(f"no time: {seconds} seconds since 1970") from None
    return f"{when.isoformat(timespec=timespec)}Z"
