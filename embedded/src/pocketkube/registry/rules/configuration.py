"""ConfigMaps, Secrets, service accounts, quotas, limit ranges and pod templates.

Source: kubernetes ``pkg/apis/core`` (defaults, validation) of 1.36.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pocketkube.causes import forbidden, immutable, invalid, too_long
from pocketkube.errors import Cause
from pocketkube.names import config_key, invalid_text
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import set_default, spec_of, text_of, with_status
from pocketkube.registry.rules.pods.pod_defaults import default_template
from pocketkube.registry.rules.pods.pod_spec import template_causes
from pocketkube.schema.quantities import canonical_list

_BYTES_MAX = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


def _keys_causes(obj: Object, *fields: str) -> list[Cause]:
    causes: list[Cause] = []
    size = 0
    for field in fields:
        for key, value in (obj.get(field) or {}).items():
            causes += invalid_text(f"{field}[{key}]", key, config_key)
            size += len(value.encode())
    if size > _BYTES_MAX:
        causes.append(too_long("", _BYTES_MAX))
    return causes


def _map_causes(obj: Object) -> list[Cause]:
    causes = _keys_causes(obj, "data", "binaryData")
    binary = obj.get("binaryData") or {}
    return causes + [
        invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in obj.get("data") or ()
        if key in binary
    ]


def _frozen_causes(obj: Object, old: Object, *fields: str) -> list[Cause]:
    if not old.get("immutable"):
        return []
    causes = [] if obj.get("immutable") else [forbidden("immutable", _FROZEN)]
    return causes + [
        forbidden(field, _FROZEN) for field in fields if obj.get(field) != old.get(field)
    ]


def _map_update_causes(obj: Object, old: Object) -> list[Cause]:
    return _frozen_causes(obj, old, "data", "binaryData")


def _default_secret(obj: Object) -> None:
    """Set the type, and put ``stringData``, which is only ever sent, into ``data``."""
    set_default(obj, "type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **coded}


def _secret_causes(obj: Object) -> list[Cause]:
    causes: list[Cause] = []
    data = obj.get("data") or {}
    size = 0
    for key, text in data.items():
        causes += invalid_text(f"data[{key}]", key, config_key)
        try:
            size += len(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            causes.append(invalid(f"data[{key}]", text, "must be base64"))
    if size > _BYTES_MAX:
        causes.append(too_long("data", _BYTES_MAX))
    return causes


def _secret_update_causes(obj: Object, old: Object) -> list[Cause]:
    causes = immutable("type", obj.get("type"), old.get("type"))
    return causes + _frozen_causes(obj, old, "data")


def _default_quota(obj: Object) -> None:
    canonical_list(spec_of(obj).get("hard") or {})


def _default_limits(obj: Object) -> None:
    """Complete the limits of containers: from max to default to defaultRequest, and from min."""
    for item in spec_of(obj).get("limits") or ():
        for field in ("max", "min", "default", "defaultRequest"):
            canonical_list(item.get(field) or {})
        if item.get("type") != "Container":
            continue
        limit: dict[str, Any] = {**(item.get("max") or {}), **(item.get("default") or {})}
        request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
        for field, value in (("default", limit), ("defaultRequest", request)):
            if value:
                item[field] = value


def _name_limits(obj: Object, _around: Surroundings) -> None:
    """Name limits that have no name after their UID; no other kind does that."""
    metadata = obj["metadata"]
    if not metadata.get("name"):
        metadata["name"] = metadata["uid"]


def _default_pod_template(obj: Object) -> None:
    set_default(obj, "template", {})
    default_template(obj["template"])


def _pod_template_causes(obj: Object) -> list[Cause]:
    return template_causes(obj["template"], "template")


CONFIG_MAPS = Rules(validate=_map_causes, validate_update=_map_update_causes)
SECRETS = Rules(
    defaults=_default_secret,
    validate=_secret_causes,
    validate_update=_secret_update_causes,
    selectable={"type": text_of("type")},
)
SERVICE_ACCOUNTS = Rules()
QUOTAS = Rules(defaults=_default_quota, prepare_create=with_status({}))
LIMIT_RANGES = Rules(defaults=_default_limits, prepare_create=_name_limits)
POD_TEMPLATES = Rules(
    defaults=_default_pod_template, validate=_pod_template_causes, has_generation=True
)
