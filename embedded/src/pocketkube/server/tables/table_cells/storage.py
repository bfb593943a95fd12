"""Volumes, claims and classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketkube.objects import Object, annotations_of, meta, name_of
from pocketkube.server.tables.table_cells.words import UNSET, Cells, age

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _modes(given: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (given or ()))


def _phase(obj: Object) -> str:
    if "deletionTimestamp" in meta(obj):
        return "Terminating"
    return str((obj.get("status") or {}).get("phase", ""))


def _class(obj: Object) -> str:
    spec = obj.get("spec") or {}
    return annotations_of(obj).get(_CLASS) or spec.get("storageClassName") or ""


def _volume(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        (obj.get("status") or {}).get("reason", ""),
        age(obj, now_s),
        spec.get("volumeMode", UNSET),
    ]


def _claim(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    status: Mapping[str, Any] = obj.get("status") or {}
    volume = spec.get("volumeName", "")
    return [
        name_of(obj),
        _phase(obj),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        _modes(status.get("accessModes")) if volume else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        age(obj, now_s),
        spec.get("volumeMode", UNSET),
    ]


def _storage_class(obj: Object, now_s: float) -> list[Any]:
    name = name_of(obj)
    if any(annotations_of(obj).get(key) == "true" for key in _DEFAULT):
        name += " (default)"
    return [
        name,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now_s),
    ]


def _attributes_class(obj: Object, now_s: float) -> list[Any]:
    return [name_of(obj), obj.get("driverName", ""), age(obj, now_s)]


def _attachment(obj: Object, now_s: float) -> list[Any]:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    attached = bool((obj.get("status") or {}).get("attached"))
    attacher, node = spec.get("attacher", ""), spec.get("nodeName", "")
    return [name_of(obj), attacher, volume, node, attached, age(obj, now_s)]


def _csi_node(obj: Object, now_s: float) -> list[Any]:
    drivers = (obj.get("spec") or {}).get("drivers") or []
    return [name_of(obj), len(drivers), age(obj, now_s)]


CELLS: Mapping[str, Cells] = {
    "csinodes.storage.k8s.io": _csi_node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "volumeattachments.storage.k8s.io": _attachment,
    "volumeattributesclasses.storage.k8s.io": _attributes_class,
}
