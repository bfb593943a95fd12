"""PersistentVolumes, their claims and StorageClasses.

Source: kubernetes ``pkg/apis/core`` and ``pkg/apis/storage`` of 1.36, and the admission plugin
StorageObjectInUseProtection. The sources of volumes are not checked.
"""

from __future__ import annotations

from pocketkube.causes import forbidden, immutable, required
from pocketkube.errors import Cause
from pocketkube.objects import Object, add_finalizer, rfc3339
from pocketkube.registry.rules.common import Rules, Surroundings, set_default, spec_of, text_of
from pocketkube.schema.quantities import canonical_list


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


def claim_causes(obj: Object) -> list[Cause]:
    """Check a PersistentVolumeClaim, or a template of one."""
    spec = obj["spec"]
    causes = [] if spec.get("accessModes") else [required("spec.accessModes", _NO_MODE)]
    if not (spec["resources"].get("requests") or {}).get("storage"):
        causes.append(required("spec.resources[storage]"))
    return causes


_NO_MODE = "at least 1 access mode is required"
_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)


def _claim_update_causes(obj: Object, old: Object) -> list[Cause]:
    new, before = dict(obj["spec"]), dict(old["spec"])
    may_change = ["volumeAttributesClassName"]
    if not before.get("volumeName"):
        may_change.append("volumeName")
    if (old.get("status") or {}).get("phase") == "Bound":
        may_change.append("resources")
    for field in may_change:
        new.pop(field, None)
        before.pop(field, None)
    return [] if new == before else [forbidden("spec", _CLAIM_FIXED)]


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


def _volume_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = [
        required(f"spec.{name}") for name in ("accessModes", "capacity") if not spec.get(name)
    ]
    if not spec.keys() - _NOT_SOURCES:
        causes.append(required("spec", "must specify a volume type"))
    return causes


def _default_class(obj: Object) -> None:
    set_default(obj, "reclaimPolicy", "Delete")
    set_default(obj, "volumeBindingMode", "Immediate")


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
STORAGE_CLASSES = Rules(defaults=_default_class, validate_update=_class_update_causes)
