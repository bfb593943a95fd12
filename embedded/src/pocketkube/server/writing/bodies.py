"""From a request's body to objects and patches."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from pocketkube import errors
from pocketkube.api.writing import Patch, PatchType
from pocketkube.schema.binary import protobuf
from pocketkube.schema.document import Document

BODY_BYTES_MAX = 3 * 1024 * 1024
"""As a real API server's limit of a request."""

APPLY = "application/apply-patch+yaml"
PATCH_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    APPLY: "apply",
}
CUSTOM_PATCH_TYPES = [media for media, type_ in PATCH_TYPES.items() if type_ != "strategic"]
"""What is read for custom resources."""
_OBJECT_TYPES = ["application/json", "application/yaml", protobuf.CONTENT_TYPE]
_decode = msgspec.json.Decoder().decode


def object_of(raw: bytes, content_type: str) -> tuple[Any, bytes | None]:
    """Decode the body of a create or update; also give its JSON, when it was JSON.

    Raises ApiError (400, 415).
    """
    if content_type in ("application/json", "", "*/*", "application/octet-stream"):
        return decoded_json(raw), raw
    if content_type in ("application/yaml", "text/yaml", "application/x-yaml"):
        return _decoded_yaml(raw), None
    if content_type == protobuf.CONTENT_TYPE:
        return protobuf.decoded(raw, Document.load()), None
    raise errors.unsupported_media_type(_OBJECT_TYPES)


def patch_of(raw: bytes, content_type: str) -> Patch:
    """Decode the body of a PATCH. Raises ApiError (400, 415)."""
    type_ = patch_type_of(content_type)
    if type_ == "apply":
        return Patch("apply", _decoded_yaml(raw) if raw[:1] != b"{" else decoded_json(raw))
    return Patch(type_, decoded_json(raw))


def patch_type_of(content_type: str) -> PatchType:
    """Return which kind of patch a media type means. Raises ApiError (415)."""
    type_ = PATCH_TYPES.get(content_type)
    if type_ is None:
        raise errors.unsupported_media_type(list(PATCH_TYPES))
    return type_


def decoded_json(raw: bytes) -> Any:
    """Decode JSON. Raises ApiError (400)."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.bad_request(f"the body of the request is no valid JSON: {error}") from None


def _decoded_yaml(raw: bytes) -> Any:
    try:
        return yaml.safe_load(raw)  # libyaml's loader crashes on deeply nested text
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        text = " ".join(str(error).split())
        raise errors.bad_request(f"error converting YAML to JSON: {text}") from None
