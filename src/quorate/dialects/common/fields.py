"""Reads fields of objects that anybody may have written: every error names its field and hint.

In: the JSON of one object. Out: typed values, or ``FieldError``, or ``Malformed`` for an object
whose identity cannot be read. Called by the dialects' ``decode`` and by ``shell.watch``.
Objects of gangs are few, so this favours clear messages over speed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import cast

import msgspec

from quorate.core.model import GangKey, GangSpec, Owner, policy
from quorate.core.model.quantity import QuantityError, is_node_resource, parse_amount
from quorate.core.words.plain_text import plain
from quorate.dialects.base import INT32_MAX, Malformed
from quorate.dialects.common import names

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that decoding foreign JSON can raise."""
JsonObject = dict[str, object]
_QUOTA_PREFIXES = ("requests.", "limits.", "count/")


class FieldError(ValueError):
    """A field that cannot be used; the text names it and says what to write instead."""


class Meta(msgspec.Struct, frozen=True):
    """The part of an object's metadata that dialects use."""

    namespace: str
    name: str
    uid: str
    created_s: float
    generation: int
    owner: Owner | None


def read_object(raw: bytes) -> tuple[Meta, JsonObject]:
    """Return metadata and the whole object.

    Raises ``Malformed``: not a JSON object, or without a readable namespace, name or uid.
    """
    try:
        whole = msgspec.json.decode(raw)
    except UNREADABLE as error:
        raise Malformed(f"not JSON: {error}") from error
    metadata = whole.get("metadata") if isinstance(whole, dict) else None
    if not isinstance(metadata, dict):
        raise Malformed("metadata is missing")
    known = {key: text(metadata, key) for key in ("namespace", "name", "uid")}
    for key in ("namespace", "name", "uid"):
        absent = key == "uid" and key not in metadata
        if not known[key] and not absent:
            raise Malformed(f"metadata.{key} cannot be read", **known)
    if not names.is_subdomain(known["name"]):
        raise Malformed(
            f'metadata.name "{names.shown(known["name"])}" is no object\'s name', **known
        )
    generation = metadata.get("generation")
    meta = Meta(
        **known,
        created_s=parse_time(text(metadata, "creationTimestamp")) or 0.0,
        generation=generation if type(generation) is int else 0,
        owner=_owner(metadata.get("ownerReferences")),
    )
    return meta, whole


def text(where: JsonObject, key: str) -> str:
    """Return a field that is a string, or ``""`` for anything else."""
    value = where.get(key)
    return value if isinstance(value, str) else ""


def mapping(where: JsonObject, key: str, path: str) -> JsonObject:
    """Return a field that is an object; an absent or null one is empty."""
    value = where.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FieldError(f"{path}: {shown(value)} is not an object; write fields below it")
    return cast(JsonObject, value)


def whole_number(where: JsonObject, key: str, path: str, *, least: int) -> int | None:
    """Return an int32 field of at least ``least``; None when it is absent (null is an error)."""
    if key not in where:
        return None
    value = where[key]
    if type(value) is not int:
        raise FieldError(f"{path}: {shown(value)} is not a whole number; write one such as 4")
    if value > INT32_MAX:
        raise FieldError(f"{path}: {shown(value)} is too large; at most {INT32_MAX} is allowed")
    if value < least:
        raise FieldError(f"{path}: {value} is too small; write {least} or more")
    return value


def resources(where: JsonObject, key: str, path: str) -> tuple[tuple[str, int], ...]:
    """Return a map of quantities in base units, sorted; names that no node has are left out.

    Volcano's controllers write the names of quotas beside the plain ones (``requests.cpu``,
    ``count/pods``): its scheduler skips them, and so does this.
    """
    amounts = []
    for name, value in sorted(mapping(where, key, path).items()):
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise FieldError(f"{path}.{name}: {shown(value)} is not a quantity; write one as 16Gi")
        try:
            amount = parse_amount(name, str(value))
        except QuantityError as error:
            raise FieldError(f"{path}.{name}: {error}; write one such as 2, 500m or 16Gi") from None
        counted = name == "pods" or is_node_resource(name)
        if amount and counted and not name.startswith(_QUOTA_PREFIXES):
            amounts.append((name, amount))
    if len(amounts) > (most := policy.RESOURCES_PER_POD_MAX):
        raise FieldError(f"{path}: {len(amounts)} resources are too many; write {most} at most")
    return tuple(amounts)


def invalid_gang(dialect: str, meta: Meta, defect: str) -> GangSpec:
    """Return a gang that exists and cannot be used; ``min_count`` says nothing then."""
    return GangSpec(
        key=GangKey(meta.namespace, dialect, meta.name),
        min_count=1,
        uid=meta.uid,
        created_s=meta.created_s,
        owner=meta.owner,
        defect=defect,
    )


def shown(value: object) -> str:
    """Return a foreign value short enough for a message."""
    if value is None:
        return "null"
    whole = f'"{plain(value[:60])}"' if isinstance(value, str) else plain(str(value))
    return whole if len(whole) <= 60 else f"{whole[:57]}..."


@lru_cache(maxsize=4096)
def parse_time(written: str) -> float | None:
    """Return an RFC3339 time as seconds since the epoch, or None when it is none."""
    try:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def format_time(now_s: float) -> str:
    """Return ``now_s`` as metav1.Time writes it, in whole seconds."""
    return datetime.fromtimestamp(int(now_s), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(now_s: float) -> str:
    """Return ``now_s`` as metav1.MicroTime writes it, as in Leases and Events."""
    return datetime.fromtimestamp(now_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _owner(references: object) -> Owner | None:
    """Return the controller, else the first owner."""
    found = [
        reference
        for reference in (references if isinstance(references, list) else ())
        if isinstance(reference, dict) and text(reference, "name") and text(reference, "kind")
    ]
    found.sort(key=lambda reference: reference.get("controller") is not True)
    if not found:
        return None
    return Owner(text(found[0], "apiVersion"), text(found[0], "kind"), text(found[0], "name"))
