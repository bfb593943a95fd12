"""Subresources that write no more than a part: of the spec, or some conditions of the status.

In: an object as it is stored, and one as a client sent it. Out: the stored one with the part that
the subresource is for. Source: the strategies ``namespaceFinalizeStrategy``,
``podEphemeralContainersStrategy``, ``podResizeStrategy`` and ``csrApprovalStrategy`` of Kubernetes
1.36.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pocketkube.objects import Object

_PATHS = {
    "finalize": ("spec", "finalizers"),
    "ephemeralcontainers": ("spec", "ephemeralContainers"),
    "approval": ("status", "conditions"),
}
_RESIZED = ("resources", "resizePolicy")


def is_part(subresource: str) -> bool:
    """Tell whether a subresource writes such a part."""
    return subresource in _PATHS or subresource == "resize"


def with_part(subresource: str, old: Object, obj: Object) -> Object:
    """Return the old object with the part of the new one that the subresource is for."""
    result = copy.deepcopy(old)
    if subresource == "resize":
        for field in ("containers", "initContainers"):
            _resize((result.get("spec") or {}).get(field), (obj.get("spec") or {}).get(field))
        return result
    outer, field = _PATHS[subresource]
    _take(result.setdefault(outer, {}), obj.get(outer) or {}, field)
    return result


def _resize(old: list[Any] | None, new: list[Any] | None) -> None:
    """Take the resources of containers that both have, in place."""
    wanted = {container.get("name"): container for container in new or ()}
    for container in old or ():
        if container["name"] in wanted:
            for field in _RESIZED:
                _take(container, wanted[container["name"]], field)


def _take(target: dict[str, Any], source: Mapping[str, Any], field: str) -> None:
    if source.get(field):
        target[field] = source[field]
    else:
        target.pop(field, None)
