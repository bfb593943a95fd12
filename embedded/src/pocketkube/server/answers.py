"""From objects to the bytes of an answer: JSON, Table, metadata only, or YAML, as Accept asks.

Objects are stored as JSON, so a plain answer is those bytes and no work.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml
from aiohttp import web

from pocketkube import errors
from pocketkube.objects import Object
from pocketkube.registry.rules.events import from_storage
from pocketkube.schema.resource import Resource
from pocketkube.server.tables.tables import partial, table
from pocketkube.store.store import Entry

encode = msgspec.json.Encoder().encode
_META = "meta.k8s.io/v1"


class Form(enum.Enum):
    """How a client wants objects."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What Accept and the query ask for."""

    form: Form
    yaml: bool = False
    include_object: str = "Metadata"  # in the rows of a Table: Metadata, Object or None


def wanted_of(accept: str, include_object: str) -> Wanted:
    """Read the first media type in Accept that is served. Raises ApiError (406)."""
    for part in accept.split(",") if accept else ["*/*"]:
        media, *parameters = (piece.strip() for piece in part.split(";"))
        options = dict(p.partition("=")[::2] for p in parameters)
        if media in ("application/json", "*/*", "application/*"):
            asked = options.get("as", "")
            if asked == "Table" and options.get("v", "v1") == "v1":
                return Wanted(Form.TABLE, include_object=include_object or "Metadata")
            if asked.startswith("PartialObjectMetadata"):
                return Wanted(Form.METADATA)
            if not asked:
                return Wanted(Form.OBJECT)
        elif media == "application/yaml":
            return Wanted(Form.OBJECT, yaml=True)
    raise errors.ApiError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
    )


def is_stored_form(resource: Resource) -> bool:
    """Tell whether stored bytes of this resource can be sent as they are."""
    if resource.bucket == "events":
        return not resource.group
    return resource.version == (resource.storage_version or resource.version)


def outward(resource: Resource, entry: Entry) -> bytes:
    """Return an entry as JSON in the resource's version."""
    if is_stored_form(resource):
        return entry.raw
    return encode(from_storage(resource, entry.object))


def one(resource: Resource, obj: Object, wanted: Wanted, now_s: float) -> bytes:
    """Return one object as the client wants it."""
    if wanted.form is Form.TABLE:
        version = obj["metadata"].get("resourceVersion")
        about = {"resourceVersion": version} if version else {}
        return encode(_table(resource, [obj], wanted, now_s, about))
    if wanted.form is Form.METADATA:
        return encode(partial(obj))
    return encode(obj)


def scale(obj: Object, wanted: Wanted) -> bytes:
    """Return a Scale as the client wants it, but never as a Table."""
    return encode(partial(obj) if wanted.form is Form.METADATA else obj)


def many(
    resource: Resource,
    entries: Iterable[Entry],
    list_metadata: dict[str, Any],
    wanted: Wanted,
    now_s: float,
) -> bytes:
    """Return a list as the client wants it. Items of built-in kinds do not repeat their kind."""
    if wanted.form is Form.TABLE:
        objects = (from_storage(resource, entry.object) for entry in entries)
        return encode(_table(resource, objects, wanted, now_s, list_metadata))
    if wanted.form is Form.METADATA:
        items = [partial(from_storage(resource, entry.object)) for entry in entries]
        kind, api_version = "PartialObjectMetadataList", _META
        about = {"kind": kind, "apiVersion": api_version, "metadata": list_metadata}
        return encode({**about, "items": items or None})
    kind, api_version = resource.list_kind or f"{resource.kind}List", resource.api_version
    if resource.crd:  # as a real server writes it for custom resources only
        list_metadata = {"continue": "", **list_metadata}
    raws = (outward(resource, entry) for entry in entries)
    if not resource.crd:
        first = len(f'{{"apiVersion":"{api_version}","kind":"{resource.kind}",')
        raws = (b"{" + raw[first:] for raw in raws)  # stored objects begin with these two
    body = b",".join(raws)
    head = encode({"kind": kind, "apiVersion": api_version, "metadata": list_metadata})
    return head[:-1] + b',"items":[' + body + b"]}"


def watch_body(
    resource: Resource, obj: Object, wanted: Wanted, now_s: float, *, is_first: bool
) -> bytes:
    """Return the object of a watch event, for forms that are not the stored one.

    Of a stream of Tables only the first has columns.
    """
    if wanted.form is not Form.TABLE:
        return encode(partial(obj) if wanted.form is Form.METADATA else obj)
    version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
    found = _table(resource, [obj], wanted, now_s, version)
    return encode(found if is_first else {**found, "columnDefinitions": None})


def _table(
    resource: Resource,
    objects: Iterable[Object],
    wanted: Wanted,
    now_s: float,
    list_metadata: dict[str, Any],
) -> Object:
    return table(
        resource,
        objects,
        now_s=now_s,
        include_object=wanted.include_object,  # type: ignore[arg-type]  # as the client says
        list_metadata=list_metadata,
    )


def response(code: int, body: bytes, wanted: Wanted | None = None) -> web.Response:
    """Return an answer of JSON, or of YAML when that was asked for."""
    if wanted is not None and wanted.yaml:
        text = yaml.safe_dump(msgspec.json.decode(body), sort_keys=False)
        return web.Response(status=code, body=text.encode(), content_type="application/yaml")
    return web.Response(status=code, body=body, content_type="application/json")


def refusal(error: errors.ApiError) -> web.Response:
    """Return an error as its Status object."""
    answer = response(error.code, encode(error.status()))
    retry_after = error.details.get("retryAfterSeconds")
    if retry_after:
        answer.headers["Retry-After"] = str(retry_after)
    return answer


def success(details: dict[str, Any] | None = None, code: int = 200) -> web.Response:
    """Return the Status object of something that is done."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    status["status"] = "Success"
    if details:
        status["details"] = details
    if code == 201:
        status["code"] = 201
    return response(code, encode(status))
