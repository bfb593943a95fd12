"""LimitRanges: what pods and claims get that ask for nothing, and what they may ask for at most.

Source: the admission plugin LimitRanger (``plugin/pkg/admission/limitranger``) of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pocketkube import errors
from pocketkube.api.admission.amounts import written
from pocketkube.objects import Object, name_of
from pocketkube.registry.rules.pods.pod_resources import nano_amounts
from pocketkube.schema.quantities import nano_units
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Store

_BUCKET = "limitranges"
_LIMITED = ("pods", "persistentvolumeclaims")


def limit(store: Store, resource: Resource, namespace: str, obj: Object) -> None:
    """Give a new object its namespace's defaults, in place.

    Raises ApiError (403): the object is out of the bounds of a LimitRange.
    """
    if resource.bucket not in _LIMITED or not store.count(_BUCKET):
        return
    limits = [
        one
        for entry in store.entries(_BUCKET, namespace)
        for one in entry.object["spec"].get("limits") or ()
    ]
    if resource.bucket == "pods":
        for one in limits:
            if one["type"] == "Container":
                _set_defaults(obj["spec"], one)
    whys = [why for one in limits for why in _problems(resource.bucket, obj, one)]
    if whys:
        text = whys[0] if len(whys) == 1 else f"[{', '.join(whys)}]"
        name = name_of(obj) or str(obj["metadata"].get("generateName", ""))
        raise errors.forbidden(resource.group, resource.plural, name, text)


def _set_defaults(spec: dict[str, Any], limits: Mapping[str, Any]) -> None:
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        resources = container.setdefault("resources", {})
        for field, defaults in (("limits", "default"), ("requests", "defaultRequest")):
            for name, amount in (limits.get(defaults) or {}).items():
                resources.setdefault(field, {}).setdefault(name, amount)


def _problems(bucket: str, obj: Object, limits: Mapping[str, Any]) -> Iterator[str]:
    type_ = limits["type"]
    spec = obj["spec"]
    if bucket == "persistentvolumeclaims":
        if type_ == "PersistentVolumeClaim":
            asked = {"storage": nano_units(spec["resources"]["requests"]["storage"])}
            yield from _bounds(type_, limits, asked, asked)
    elif type_ == "Pod":
        requests, most = (nano_amounts(spec, field) for field in ("requests", "limits"))
        yield from _bounds(type_, limits, requests, most)
    elif type_ == "Container":
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
            one = {"containers": [container]}
            requests, most = (nano_amounts(one, field) for field in ("requests", "limits"))
            yield from _bounds(type_, limits, requests, most)


def _bounds(
    type_: str,
    limits: Mapping[str, Any],
    requests: Mapping[str, int],
    most: Mapping[str, int],
) -> Iterator[str]:
    """Yield what is below ``min``, above ``max`` or too far between request and limit."""
    for name, bound in (limits.get("min") or {}).items():
        what = f"minimum {name} usage per {type_} is {bound}"
        if name not in requests:
            yield f"{what}.  No request is specified"
        elif requests[name] < nano_units(bound):
            yield f"{what}, but request is {written(name, requests[name])}"
    for name, bound in (limits.get("max") or {}).items():
        what = f"maximum {name} usage per {type_} is {bound}"
        if name not in most:
            yield f"{what}.  No limit is specified"
        elif most[name] > nano_units(bound):
            yield f"{what}, but limit is {written(name, most[name])}"
    for name, bound in (limits.get("maxLimitRequestRatio") or {}).items():
        ratio = nano_units(bound)
        if requests.get(name) and most.get(name, 0) * 10**9 > ratio * requests[name]:
            what = f"{name} max limit to request ratio per {type_} is {bound}"
            yield f"{what}, but provided ratio is {most[name] / requests[name]:f}"
