"""PersistentVolumes, their claims and StorageClasses.

Source: kubernetes ``pkg/apis/core`` and ``pkg/apis/storage`` of 1.36, and the admission plugin
StorageObjectInUseProtection. The sources of volumes are not checked.
"""

from __future__ import annotations

from typing import Any

from pocketkube.causes import forbidden, immutable, one_of, required, unsupported
from pocketkube.errors import Cause
from pocketkube.names import dns_subdomain, invalid_text
from pocketkube.objects import Object, add_finalizer, rfc3339
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import set_default, spec_of, text_of
from pocketkube.schema.quantities import canonical_list, nano_units

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def default_claim(claim: Object) -> None:
    """Set the defaults of a claim, or of a StatefulSet's template of one, in place."""
    spec = spec_of(claim)
    set_default(spec, "volumeMode", "Filesystem")
    set_default(spec, "resources", {})
    for field in ("requests", "limits"):
        canonical_list(spec["resources"].get(field) or {})


def _prepare_claim(obj: Object, around: Surroundings) -> None:
    add_finalizer(obj, "kubernetes.io/pvc-protection")
    obj["status"] = {"phase": "Pending"}
    if obj["spec"].get("storageClassName") is None:
        classes = around.find_all("storageclasses.storage.k8s.io")
        default = next((one for one in classes if _is_default(one)), None)
        if default is not None:
            obj["spec"]["storageClassName"] = default["metadata"]["name"]


def _is_default(storage_class: Object) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


def _mode_causes(spec: dict[str, Any], why: str) -> list[Cause]:
    modes = spec.get("accessModes") or []
    causes = [] if modes else [required("spec.accessModes", why)]
    return causes + [
        unsupported("spec.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    ]


def claim_causes(obj: Object) -> list[Cause]:
    """Check a PersistentVolumeClaim, or a template of one."""
    spec = obj["spec"]
    causes = _mode_causes(spec, "at least 1 access mode is required")
    if not (spec["resources"].get("requests") or {}).get("storage"):
        causes.append(required("spec.resources[storage]"))
    if spec.get("storageClassName"):
        causes += invalid_text("spec.storageClassName", spec["storageClassName"], dns_subdomain)
    return causes + one_of("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)


_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)


def _claim_update_causes(obj: Object, old: Object) -> list[Cause]:
    new, before = dict(obj["spec"]), dict(old["spec"])
    new.pop("volumeAttributesClassName", None)
    before.pop("volumeAttributesClassName", None)
    if not before.get("volumeName"):
        new.pop("volumeName", None)
    status = old.get("status") or {}
    size, was = _requested(new), _requested(before)
    if status.get("phase") == "Bound":
        new["resources"] = before["resources"] = None
    causes = [] if new == before else [forbidden("spec", _CLAIM_FIXED)]
    has = nano_units((status.get("capacity") or {}).get("storage", "0"))
    if size < was and size <= has:
        why = "field can not be less than status.capacity"
        causes.append(forbidden("spec.resources.requests.storage", why))
    return causes


def _requested(spec: dict[str, Any]) -> int:
    return nano_units((spec["resources"].get("requests") or {}).get("storage", "0"))


def _default_phase(obj: Object, _old: Object) -> None:
    status = obj.setdefault("status", {})
    set_default(status, "phase", "Pending")


def _default_volume(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain")
    set_default(spec, "volumeMode", "Filesystem")
    canonical_list(spec.get("capacity") or {})
    if spec.get("hostPath") is not None:
        set_default(spec["hostPath"], "type", "")


def _prepare_volume(obj: Object, around: Surroundings) -> None:
    add_finalizer(obj, "kubernetes.io/pv-protection")
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(around.now_s())}


def _volume_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _mode_causes(spec, "")
    capacity = spec.get("capacity")
    if not capacity:
        causes.append(required("spec.capacity"))
    if not capacity or set(capacity) != {"storage"}:
        causes.append(unsupported("spec.capacity", capacity, ("storage",)))
    if not spec.keys() - _NOT_SOURCES:
        causes.append(required("spec", "must specify a volume type"))
    return causes


def _default_class(obj: Object) -> None:
    set_default(obj, "reclaimPolicy", "Delete")
    set_default(obj, "volumeBindingMode", "Immediate")


def _class_causes(obj: Object) -> list[Cause]:
    causes = [] if obj.get("provisioner") else [required("provisioner")]
    causes += one_of("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    return causes + one_of("volumeBindingMode", obj["volumeBindingMode"], modes)


_CLASS_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def _class_update_causes(obj: Object, old: Object) -> list[Cause]:
    return [
        cause
        for field in _CLASS_FIXED
        for cause in immutable(field, obj.get(field), old.get(field))
    ]


CLAIMS = Rules(
    defaults=default_claim,
    prepare_create=_prepare_claim,
    prepare_status=_default_phase,
    validate=claim_causes,
    validate_update=_claim_update_causes,
    selectable={"name": text_of("metadata", "name")},
)
VOLUMES = Rules(
    defaults=_default_volume,
    prepare_create=_prepare_volume,
    prepare_status=_default_phase,
    validate=_volume_causes,
    selectable={"name": text_of("metadata", "name")},
)
STORAGE_CLASSES = Rules(
    defaults=_default_class, validate=_class_causes, validate_update=_class_update_causes
)
