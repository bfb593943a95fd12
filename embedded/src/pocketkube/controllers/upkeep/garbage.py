"""Owner references: what is left when owners go. In the background, in the foreground, orphaned.

In: events of every bucket, kept as who owns whom, by UID. Source:
``pkg/controller/garbagecollector`` of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Shared
from pocketkube.errors import ApiError
from pocketkube.objects import Object, drop_finalizer, drop_owners
from pocketkube.store.store import Entry, Event

_IGNORED = frozenset({"events", "events.events.k8s.io"})
_FOREGROUND = "foregroundDeletion"
_ORPHAN = "orphan"
_TELLING = (b'"ownerReferences"', b'"finalizers"', b'"deletionTimestamp"')


class _Item(NamedTuple):
    """What is known of one object."""

    bucket: str
    namespace: str
    name: str
    owners: tuple[str, ...]  # UIDs
    blocking: tuple[str, ...]  # UIDs of owners that may not go before it


class GarbageCollector(Controller):
    """Deletes dependents whose owners are gone; lets owners go when their dependents are."""

    everything = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._items: dict[str, _Item] = {}
        self._dependents: dict[str, set[str]] = {}

    def on_event(self, event: Event) -> None:
        """Note who owns whom; enqueue what may have to go."""
        if event.bucket in _IGNORED:
            return
        if event.type == "MODIFIED" and not _tells(event.entry) and not _tells(event.before):
            return
        metadata = event.object["metadata"]
        uid = metadata["uid"]
        if event.type == "DELETED":
            self._forget(uid)
            return
        owners = metadata.get("ownerReferences") or ()
        known = self._items.get(uid)
        owner_uids = tuple(owner["uid"] for owner in owners)
        if known is None or known.owners != owner_uids:
            self._link(uid, known.owners if known else (), owner_uids)
        blocking = tuple(o["uid"] for o in owners if o.get("blockOwnerDeletion"))
        place = (event.bucket, event.entry.namespace, event.entry.name)
        self._items[uid] = _Item(*place, owner_uids, blocking)
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" in metadata and (_FOREGROUND in finalizers or _ORPHAN in finalizers):
            self.enqueue(uid)
        elif known is None or known.owners != owner_uids:
            if not all(self._may_own(owner, event.entry.namespace) for owner in owner_uids):
                self.enqueue(uid)
            if known is not None:
                self._enqueue_all(known.owners)  # they may wait for this one no longer

    def _may_own(self, owner: str, namespace: str) -> bool:
        """Tell whether an owner is there, in the same namespace or in none."""
        known = self._items.get(owner)
        return known is not None and known.namespace in ("", namespace)

    def _link(self, uid: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        for owner in before:
            self._unlink(owner, uid)
        for owner in after:
            self._dependents.setdefault(owner, set()).add(uid)

    def _unlink(self, owner: str, uid: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.discard(uid)
            if not dependents:
                del self._dependents[owner]

    def _forget(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        if item is not None:
            for owner in item.owners:
                self._unlink(owner, uid)
            self._enqueue_all(item.owners)
        self._enqueue_all(self._dependents.get(uid, ()))

    def _enqueue_all(self, uids: Any) -> None:
        for uid in uids:
            self.enqueue(uid)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Look whether one object has to go, or may."""
        item = self._items.get(key)
        found = self._read(key, item)
        if item is None or found is None:
            return
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" in metadata:
            if _ORPHAN in finalizers:
                yield from self._orphan(key, item)
            elif _FOREGROUND in finalizers:
                yield from self._wait_for_dependents(key, item)
            return
        if item.owners:
            self._look_at_owners(key, item, found)

    def _read(self, uid: str, item: _Item | None) -> Object | None:
        found = self.api.find(item.bucket, item.namespace, item.name) if item else None
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def _orphan(self, uid: str, item: _Item) -> Iterator[None]:
        for dependent in list(self._dependents.get(uid, ())):
            self._drop_owners(self._items[dependent], {uid})
            yield
        self._drop_finalizer(item, _ORPHAN)

    def _wait_for_dependents(self, uid: str, item: _Item) -> Iterator[None]:
        """Delete the dependents; when none of them blocks, let the owner go."""
        waits = False
        for dependent in list(self._dependents.get(uid, ())):
            known = self._items.get(dependent)
            found = self._read(dependent, known)
            if known is None or found is None:
                continue
            waits = waits or uid in known.blocking
            if "deletionTimestamp" not in found["metadata"]:
                self._look_at_owners(dependent, known, found)
                yield
        if not waits or not any(
            uid in self._items[d].blocking for d in self._dependents.get(uid, ())
        ):
            self._drop_finalizer(item, _FOREGROUND)

    def _look_at_owners(self, uid: str, item: _Item, found: Object) -> None:
        """Delete an object if no owner holds it; drop references to owners that are gone."""
        solid, waiting, gone = [], [], []
        for owner in item.owners:
            if not self._may_own(owner, item.namespace):
                gone.append(owner)
            elif self._waits_for_dependents(owner, self._items[owner]):
                waiting.append(owner)
            else:
                solid.append(owner)
        if solid:
            if gone or waiting:
                self._drop_owners(item, {*gone, *waiting})
            return
        finalizers = found["metadata"].get("finalizers") or ()
        if _ORPHAN in finalizers:
            self._delete(uid, item, "Orphan")
        elif _FOREGROUND in finalizers or (waiting and self._dependents.get(uid)):
            self._delete(uid, item, "Foreground")
        else:
            self._delete(uid, item, "Background")

    def _waits_for_dependents(self, uid: str, item: _Item) -> bool:
        entry = self.api.store.get(item.bucket, item.namespace, item.name)
        if entry is None or b'"foregroundDeletion"' not in entry.raw:
            return False
        metadata = entry.object["metadata"]
        return (
            metadata["uid"] == uid
            and "deletionTimestamp" in metadata
            and _FOREGROUND in (metadata.get("finalizers") or ())
        )

    def _delete(self, uid: str, item: _Item, propagation: Any) -> None:
        resource = self.api.registry.preferred(item.bucket)
        if resource is None or "delete" not in resource.verbs:
            return
        with contextlib.suppress(ApiError):
            deleting = Deleting(propagation=propagation, uid=uid)
            self.api.delete(resource, item.namespace, item.name, deleting)

    def _drop_owners(self, item: _Item, uids: set[str]) -> None:
        place = (item.bucket, item.namespace, item.name)
        self.api.amend(*place, lambda found: drop_owners(found, uids))

    def _drop_finalizer(self, item: _Item, finalizer: str) -> None:
        place = (item.bucket, item.namespace, item.name)
        self.api.amend(*place, lambda found: drop_finalizer(found, finalizer))


def _tells(entry: Entry | None) -> bool:
    return entry is not None and any(word in entry.raw for word in _TELLING)
