"""From a pod template to a pod; owner references; hashes of templates. Pure functions."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from pocketkube.objects import Object
from pocketkube.store.store import decode

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


def encoded_pod(template: Mapping[str, Any], owner: Object, *, prefix: str = "") -> bytes:
    """Return the pod that a template stands for, encoded: ``decode`` gives a new one each time.

    ``prefix`` is its generateName; as it is, the owner's name and a dash.
    """
    given = template.get("metadata") or {}
    metadata = {
        key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)
    }
    metadata["generateName"] = prefix or f"{owner['metadata']['name']}-"
    metadata["ownerReferences"] = [owner_reference(owner)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return msgspec.json.encode(pod)


def pod_of(template: Mapping[str, Any], owner: Object) -> Object:
    """Return a new pod that a template stands for."""
    pod: Object = decode(encoded_pod(template, owner))
    return pod


def template_hash(template: Any, collisions: int = 0) -> str:
    """Return a short name of a template, of letters that a label and a name may have.

    The alphabet is Kubernetes'; the hash is not: its input is how Go prints structs.
    """
    number = zlib.crc32(_canonical(template) + (str(collisions).encode() if collisions else b""))
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
