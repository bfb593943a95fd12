"""A pod template as the scheduler would see its pods, once the API server has taken them.

In: metadata and spec as written. Out: the core's ``Pod``, by the very decoder of the scheduler. The
one default that matters to room is filled in: limits are requests where no request is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from quorate.core.model import Pod, PodSpec
from quorate.core.model.reasons import Reason
from quorate.dialects import PodFacts
from quorate.dialects.base import Malformed
from quorate.lint.objects import Json, mapping
from quorate.shell.watch.pod.decoding import PodDecoder

_SCHEDULER = "lint"
_CONTAINERS = ("containers", "initContainers")


def read_pairs(value: object) -> dict[str, str]:
    """Return labels or annotations; a number or a boolean is read as the text that was meant."""
    return {str(key): as_text(one) for key, one in mapping(value).items() if is_scalar(one)}


def is_scalar(value: object) -> bool:
    """Whether a value is a text, a number or a boolean."""
    return isinstance(value, str | int | float)


def as_text(value: object) -> str:
    """Return a scalar as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def decoded(facts: PodFacts, spec: Json) -> Pod:
    """Return the pod; ``defect`` says what the API server or the scheduler would not take.

    Its scheduler is a name of our own, so that all its rules are read, whosever it is.
    """
    metadata = {"name": facts.name, "namespace": facts.namespace, "uid": "lint"}
    whole = {
        "metadata": {**metadata, "labels": _texts(facts.labels)},
        "spec": {**with_defaults(spec), "schedulerName": _SCHEDULER},
    }
    try:
        return PodDecoder(frozenset({_SCHEDULER})).decode(msgspec.json.encode(whole)).pod
    except (Malformed, msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        return Pod(
            uid="lint",
            namespace=facts.namespace,
            name=facts.name,
            scheduler=_SCHEDULER,
            spec=PodSpec(),
            defect=str(error),
            defect_reason=Reason.POD_INVALID.value,
        )


def with_defaults(spec: Json) -> Json:
    """Return the spec with the requests that the API server fills in from limits.

    Rule: SetDefaults_Pod of Kubernetes 1.36. A pod's own limits count where no container asks.
    """
    filled = dict(spec)
    asked: set[str] = set()
    for field in _CONTAINERS:
        containers = spec.get(field)
        if not isinstance(containers, list):
            continue
        filled[field] = [_container(one) if isinstance(one, dict) else one for one in containers]
        for one in filled[field]:
            resources = mapping(mapping(one).get("resources"))
            asked.update(mapping(resources.get("requests")))
    own = spec.get("resources")
    if isinstance(own, dict) and isinstance(own.get("limits"), dict):
        limits = {name: limit for name, limit in own["limits"].items() if name not in asked}
        filled["resources"] = {**own, "requests": {**limits, **mapping(own.get("requests"))}}
    return filled


def with_overhead(value: Any, overheads: Mapping[str, Json]) -> Any:
    """Return an object in which each pod spec has the overhead of its RuntimeClass, if known.

    ``overheads`` are those of the RuntimeClasses, by name: ``{}`` where one has none. A spec that
    names another class is left as it is. Rule: the admission plugin RuntimeClass of Kubernetes
    1.36, which refuses pods that say another overhead.
    """
    if isinstance(value, list):
        return [with_overhead(one, overheads) for one in value]
    if not isinstance(value, dict):
        return value
    filled = {key: with_overhead(one, overheads) for key, one in value.items()}
    name = value.get("runtimeClassName")
    if isinstance(name, str) and name in overheads and "containers" in value:
        filled["overhead"] = overheads[name]
    return filled


def _container(container: Json) -> Json:
    resources = container.get("resources")
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return container
    if not isinstance(resources.get("requests"), dict | None):
        return container
    requests = {**resources["limits"], **mapping(resources.get("requests"))}
    return {**container, "resources": {**resources, "requests": requests}}


def _texts(pairs: Mapping[str, str]) -> dict[str, str]:
    return dict(pairs)
