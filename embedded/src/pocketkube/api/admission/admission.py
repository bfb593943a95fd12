"""What is refused before an object is looked at, for the state of its namespace."""

from __future__ import annotations

from pocketkube import errors
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Surroundings
from pocketkube.schema.resource import Resource

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
