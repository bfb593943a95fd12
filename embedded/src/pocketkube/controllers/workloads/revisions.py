"""ControllerRevisions: the history of a StatefulSet's or DaemonSet's template.

Source: ``pkg/controller/history`` of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.api.api import Api
from pocketkube.api.writing import Deleting
from pocketkube.controllers.templates import owner_reference, template_hash
from pocketkube.errors import ApiError
from pocketkube.objects import Object, controller_of

BUCKET = "controllerrevisions.apps"


def history_of(api: Api, owner: Object) -> list[Object]:
    """Return the revisions that an object owns, oldest first."""
    prefix = f"{owner['metadata']['name']}-"
    uid = owner["metadata"]["uid"]
    found = [
        entry.object
        for entry in api.store.entries(BUCKET, owner["metadata"]["namespace"])
        if entry.name.startswith(prefix)
    ]
    owned = [revision for revision in found if (controller_of(revision) or {}).get("uid") == uid]
    return sorted(owned, key=lambda revision: int(revision["revision"]))


def newest(
    api: Api,
    owner: Object,
    history: list[Object],
    hash_label: str,
    annotations: dict[str, str] | None = None,
) -> Object:
    """Return the revision of the owner's present template; made, or made the newest, if need be.

    Raises ApiError.
    """
    template = owner["spec"]["template"]
    hash_ = template_hash(template)
    name = f"{owner['metadata']['name']}-{hash_}"
    number = max((int(r["revision"]) for r in history), default=0) + 1
    found = next((r for r in history if r["metadata"]["name"] == name), None)
    if found is None:
        labels = (template.get("metadata") or {}).get("labels") or {}
        metadata: dict[str, Any] = {
            "name": name,
            "labels": {**labels, hash_label: hash_},
            "ownerReferences": [owner_reference(owner)],
        }
        if annotations:
            metadata["annotations"] = annotations
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": {"spec": {"template": {"$patch": "replace", **template}}},
            "revision": number,
        }
        resource = api.registry.named("apps/v1", "controllerrevisions")
        made = api.create(resource, owner["metadata"]["namespace"], revision)
        history.append(made)
        return made
    if int(found["revision"]) < number - 1:

        def renumber(revision: Object) -> None:
            revision["revision"] = number

        api.amend(BUCKET, owner["metadata"]["namespace"], name, renumber)
        found["revision"] = number
    return found


def forget_old(api: Api, owner: Object, history: list[Object], used: set[str]) -> None:
    """Delete the oldest revisions that no pod is of, beyond spec.revisionHistoryLimit."""
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    unused = [r for r in history if r["metadata"]["name"] not in used]
    resource = api.registry.named("apps/v1", "controllerrevisions")
    for revision in unused[: max(0, len(unused) - limit)]:
        metadata = revision["metadata"]
        with contextlib.suppress(ApiError):
            deleting = Deleting(propagation="Background", uid=metadata["uid"])
            api.delete(resource, metadata["namespace"], metadata["name"], deleting)


def template_of(revision: Object) -> Object:
    """Return the template that a revision remembers."""
    template = dict(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template
