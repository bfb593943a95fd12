"""What all kinds share: names, namespaces, fields that the server sets, preconditions, deletion.

Pure functions over objects; sources: k8s.io/apiserver ``pkg/registry/rest`` and
``generic/registry`` of 1.36.
"""

from __future__ import annotations

from typing import Any

from pocketkube import errors
from pocketkube.api.writing import Deleting
from pocketkube.errors import Cause
from pocketkube.objects import Object, annotations_of, parsed_time_s, rfc3339, same, take
from pocketkube.registry.rules.common import Rules, Surroundings
from pocketkube.schema.resource import Resource
from pocketkube.store.store import encode

_KEPT = frozenset({"default", "kube-public", "kube-system"})


def admit_create(finds: Surroundings, resource: Resource, namespace: str, obj: Object) -> None:
    """Refuse a create in a namespace that is not there (404) or that terminates (403).

    Source: the admission plugin NamespaceLifecycle.
    """
    if not resource.namespaced:
        return
    found = finds.find("namespaces", "", namespace)
    if found is None:
        raise errors.not_found("", "namespaces", namespace)
    if "deletionTimestamp" in found["metadata"]:
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        metadata = obj["metadata"]
        name = str(metadata.get("name") or metadata.get("generateName") or "")
        error = errors.forbidden(resource.group, resource.plural, name, why)
        cause = {
            "reason": "NamespaceTerminating",  # by which controllers know to try no more
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        error.details["causes"] = [cause]
        raise error


def admit_delete(resource: Resource, name: str) -> None:
    """Refuse to delete a namespace of the cluster's own (403). Source: as of ``admit_create``."""
    if resource.bucket == "namespaces" and name in _KEPT:
        raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")


_SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_KEPT_AS_GIVEN = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
"""Where there is none, an update keeps what it brings; the first two are refused then."""
_STAYS_WHEN_GIVEN = ("uid", "deletionGracePeriodSeconds")
_RBAC = "rbac.authorization.k8s.io"
CREATED_BY_UPDATE = frozenset(
    {"services", "endpoints", "events", "leases.coordination.k8s.io"}
    | {
        f"{prefix}{plural}.{_RBAC}"
        for prefix in ("", "cluster")
        for plural in ("roles", "rolebindings")
    }
)
"""Kinds of which an update creates what is not there (AllowCreateOnUpdate of their strategies)."""
_STATUS_LEAVES = {
    "deployments.apps": ("labels",),
    "pods": ("ownerReferences", "deletionTimestamp"),
}
_STATUS_LEAVES_METADATA = frozenset(
    {
        "certificatesigningrequests.certificates.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "podgroups.scheduling.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "resourceclaims.resource.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
_DEFAULT_POD_GRACE_S = 30
_ORPHANING = frozenset({"jobs.batch", "replicationcontrollers"})
"""Kinds whose dependents stay when the deletion does not say otherwise (their strategies)."""


def place(resource: Resource, namespace: str, obj: Object, *, name: str = "") -> None:
    """Give the object the namespace (and name) of the request. Raises ApiError (400)."""
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if name:
        _check_name(metadata, name)
    if resource.namespaced:
        given = metadata.get("namespace")
        if given and given != namespace:
            raise errors.bad_request(
                f"the namespace of the object ({given}) does not match the namespace on the "
                f"request ({namespace})"
            )
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


def _check_name(metadata: dict[str, Any], name: str) -> None:
    given = metadata.get("name")
    if not given:
        raise errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if given != name:
        raise errors.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def begin(resource: Resource, obj: Object, rules: Rules, *, uid: str, now_s: float) -> None:
    """Set what a new object gets from the server: name, UID, time, generation. In place."""
    metadata = obj["metadata"]
    for field in _SERVER_FIELDS:
        if field != "generation" or rules.has_generation:  # else it stays what the client said
            metadata.pop(field, None)
    metadata.pop("managedFields", None)  # nobody owns fields here
    metadata["uid"] = uid
    metadata["creationTimestamp"] = rfc3339(now_s)
    if rules.has_generation:
        metadata["generation"] = 1
    if "status" in resource.subresources and not rules.keeps_status:
        obj.pop("status", None)


def keep_server_fields(resource: Resource, old: Object, obj: Object) -> None:
    """Carry over what only the server sets, and the status, which has its own subresource."""
    _keep_metadata(old, obj)
    if "status" in resource.subresources:
        take(obj, old, "status")


def _keep_metadata(old: Object, obj: Object) -> None:
    kept, metadata = old["metadata"], obj["metadata"]
    for field in _SERVER_FIELDS:
        given = field in _STAYS_WHEN_GIVEN and metadata.get(field) not in (None, "")
        if field in kept and not given:
            metadata[field] = kept[field]
        elif field not in kept and field not in _KEPT_AS_GIVEN and not given:
            metadata.pop(field, None)
    if "generateName" in kept:
        metadata.setdefault("generateName", kept["generateName"])
    metadata.pop("managedFields", None)  # nobody owns fields here


def only_status(resource: Resource, old: Object, obj: Object) -> Object:
    """Return the old object with the status of the new one, and with the metadata that may change.

    Source: PrepareForUpdate of the strategies for ``status`` in Kubernetes 1.36. Kinds that are
    newer than that habit keep all their metadata (metav1.ResetObjectMetaForStatus).
    """
    result = dict(old)
    take(result, obj, "status")
    if resource.crd or resource.bucket in _STATUS_LEAVES_METADATA:
        result["metadata"] = dict(old["metadata"])
    else:
        result["metadata"] = dict(obj["metadata"])
        for field in _STATUS_LEAVES.get(resource.bucket, ()):
            take(result["metadata"], old["metadata"], field)
        _keep_metadata(old, result)
    take(result["metadata"], obj["metadata"], "resourceVersion")
    return result


def count_generation(rules: Rules, old: Object, obj: Object) -> None:
    """Add one to metadata.generation when more than metadata and status changed. In place."""
    if not rules.has_generation:
        return
    generation = old["metadata"].get("generation", 0)
    apart = ("metadata", "status")
    fields = (old.keys() | obj.keys()) - set(apart)
    deleting = "deletionTimestamp" in obj["metadata"] and "deletionTimestamp" not in old["metadata"]
    annotated = rules.counts_annotations and annotations_of(old) != annotations_of(obj)
    if deleting or annotated or any(_differ(old.get(one), obj.get(one)) for one in fields):
        generation += 1
    if generation:
        obj["metadata"]["generation"] = generation


def _differ(one: Any, other: Any) -> bool:
    """Tell whether two JSON values differ; bytes that are equal settle it without a walk."""
    return bool(one != other) or (encode(one) != encode(other) and not same(one, other))


def check_preconditions(
    resource: Resource, old: Object, obj: Object, *, is_patch: bool = False
) -> None:
    """Refuse an update of another version (409) or of another object of that name (409)."""
    name = old["metadata"]["name"]
    given = obj["metadata"].get("resourceVersion")
    if given and not given.isdigit():
        text = f'strconv.ParseUint: parsing "{given}": invalid syntax'
        raise errors.ApiError(500, "", text)
    if given and given not in ("0", old["metadata"]["resourceVersion"]):
        raise errors.conflict(resource.group, resource.plural, name, errors.MODIFIED)
    uid = obj["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"] and not is_patch:
        raise _wrong_uid(resource, name, uid, old["metadata"]["uid"])


def check_no_version(obj: Object) -> None:
    """Refuse (500, as etcd's client does) a new object with a resourceVersion, and drop it."""
    version = str(obj["metadata"].pop("resourceVersion", None) or "0")
    if version.isdigit() and int(version):
        text = "resourceVersion should not be set on objects to be created"
        raise errors.ApiError(500, "", text)


def check_absent(resource: Resource, obj: Object) -> None:
    """Refuse (409) an update that would create the object, but is meant for one that was there."""
    metadata = obj["metadata"]
    metadata.pop("resourceVersion", None)
    if metadata.get("uid"):
        raise _wrong_uid(resource, metadata["name"], metadata["uid"], "")


def check_deletion(resource: Resource, obj: Object, deleting: Deleting) -> None:
    """Refuse a deletion whose preconditions do not hold (409)."""
    metadata = obj["metadata"]
    for what, wanted, field in (
        ("UID", deleting.uid, "uid"),
        ("ResourceVersion", deleting.resource_version, "resourceVersion"),
    ):
        if wanted is not None and wanted != metadata[field]:
            why = (
                f"Precondition failed: {what} in precondition: {wanted}, "
                f"{what} in object meta: {metadata[field]}"
            )
            raise errors.conflict(resource.group, resource.plural, metadata["name"], why)


def _wrong_uid(resource: Resource, name: str, wanted: str, found: str) -> errors.ApiError:
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{resource.plural}/{name}, "
        "ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return errors.conflict(resource.group, resource.plural, name, why)


def marked_for_deletion(resource: Resource, obj: Object, deleting: Deleting, now_s: float) -> bool:
    """Mark the object as terminating, in place, and tell whether it waits for something then.

    Pods are marked even when they may go at once: a real server writes them once more before.
    """
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata and _namespace_waits(resource, obj):
        return True  # its deletion is asked for once, with the finalizers that it gets then
    grace_s = _grace_s(resource, obj, deleting)
    if resource.bucket != "events":  # nothing may depend on an Event
        _set_finalizers(resource.bucket, metadata, deleting)
    waits = grace_s > 0 or metadata.get("finalizers") or _namespace_waits(resource, obj)
    if not waits and resource.bucket != "pods":
        return False
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = rfc3339(now_s + grace_s)
        if resource.bucket != "namespaces":
            metadata["deletionGracePeriodSeconds"] = grace_s
        if "generation" in metadata:
            metadata["generation"] += 1
    elif grace_s < metadata.get("deletionGracePeriodSeconds", 0):
        earlier_s = metadata["deletionGracePeriodSeconds"] - grace_s
        ends_s = parsed_time_s(metadata["deletionTimestamp"])
        metadata["deletionTimestamp"] = rfc3339(ends_s - earlier_s)
        metadata["deletionGracePeriodSeconds"] = grace_s
    if resource.bucket == "namespaces":
        obj.setdefault("status", {})["phase"] = "Terminating"
    return bool(waits)


def may_go(obj: Object) -> bool:
    """Tell whether a terminating object waits for nothing any more."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds", 0) > 0:
        return False
    return not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))


def _grace_s(resource: Resource, obj: Object, deleting: Deleting) -> int:
    """Return the seconds a pod gets to end; 0 for whatever no kubelet has, and all other kinds."""
    if resource.bucket != "pods":
        return 0
    if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in (
        "Succeeded",
        "Failed",
    ):
        return 0
    own = obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_POD_GRACE_S)
    asked = deleting.grace_period_s
    grace_s: int = own if asked is None else asked
    return grace_s if grace_s >= 0 else 1


def _set_finalizers(bucket: str, metadata: dict[str, Any], deleting: Deleting) -> None:
    propagation = deleting.propagation or ("Orphan" if bucket in _ORPHANING else "")
    wanted = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(propagation)
    if not wanted and not deleting.propagation:
        return
    finalizers = [
        finalizer
        for finalizer in metadata.get("finalizers") or []
        if finalizer not in ("foregroundDeletion", "orphan")
    ]
    metadata["finalizers"] = [*finalizers, wanted] if wanted else finalizers
    if not metadata["finalizers"]:
        del metadata["finalizers"]


def _namespace_waits(resource: Resource, obj: Object) -> bool:
    return resource.bucket == "namespaces" and bool(obj.get("spec", {}).get("finalizers"))


def refuse(resource: Resource, obj: Object, causes: list[Cause]) -> None:
    """Raise ApiError (422) when there are causes; each is told once."""
    if causes:
        group = "" if resource.bucket == "events" else resource.group
        told = list(dict.fromkeys(causes))
        raise errors.invalid(group, resource.kind, obj["metadata"].get("name", ""), told)
