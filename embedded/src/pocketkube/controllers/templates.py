"""From a pod template to a pod; owner references; hashes of templates; conditions. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from pocketkube.objects import Object
from pocketkube.store.store import decode

Condition = dict[str, Any]


def condition_of(conditions: list[Condition] | None, type_: str) -> Condition | None:
    """Return the condition of a type; None when there is none."""
    return next((c for c in conditions or [] if c["type"] == type_), None)


def is_true(conditions: list[Condition] | None, type_: str) -> bool:
    """Tell whether the condition of a type is True."""
    found = condition_of(conditions, type_)
    return found is not None and found["status"] == "True"


def with_condition(conditions: list[Condition] | None, new: Condition) -> list[Condition]:
    """Return the conditions with a new one in place of that of its type, at the end.

    Nothing changes when status and reason are the same; the time of the last transition stays when
    the status is. Source: SetDeploymentCondition and its like in ``pkg/controller``.
    """
    old = condition_of(conditions, new["type"])
    kept = list(conditions or [])
    if old is not None:
        if old["status"] == new["status"] and old.get("reason") == new.get("reason"):
            return kept
        if old["status"] == new["status"]:
            new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
        kept.remove(old)
    return [*kept, new]


_canonical = msgspec.json.Encoder(order="deterministic").encode
_HASH_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def owner_reference(owner: Object) -> dict[str, Any]:
    """Return the reference by which a controller owns what it makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def encoded_pod(template: Mapping[str, Any], owner: Object) -> bytes:
    """Return the pod that a template stands for, encoded: ``decode`` gives a new one each time."""
    given = template.get("metadata") or {}
    metadata = {
        key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)
    }
    metadata["generateName"] = f"{owner['metadata']['name']}-"
    metadata["ownerReferences"] = [owner_reference(owner)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return msgspec.json.encode(pod)


def pod_of(template: Mapping[str, Any], owner: Object) -> Object:
    """Return a new pod that a template stands for."""
    pod: Object = decode(encoded_pod(template, owner))
    return pod


def template_hash(template: Any) -> str:
    """Return a short name of a template, of letters that a label and a name may have.

    The alphabet is Kubernetes'; the hash is not: its input is how Go prints structs.
    """
    number = zlib.crc32(_canonical(template))
    return "".join(_HASH_LETTERS[ord(digit) % len(_HASH_LETTERS)] for digit in str(number))


def scaled_value(given: int | str | None, total: int, *, up: bool, otherwise: int | str) -> int:
    """Return an int-or-percentage as a number of pods: 25% of 3 is 1 when rounded up, else 0.

    Source: k8s.io/apimachinery ``pkg/util/intstr`` GetScaledValueFromIntOrPercent.
    """
    value = otherwise if given is None else given
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * total // 100) if up else percent * total // 100
