"""The API as calls: what HTTP handlers, controllers and node agents use alike.

In: resources, names, plain objects. Out: plain objects (copies that the caller owns), or ApiError.
The order of a write: metadata, defaults, what the server sets, checks, storage; then what waited
for the write to be over (``later``).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Literal

from pocketkube import errors
from pocketkube.api import lifecycle
from pocketkube.api.admission import quotas
from pocketkube.api.admission.policies import Policies, Write
from pocketkube.api.checking import completed, custom_causes
from pocketkube.api.lifecycle import admit_create, admit_delete
from pocketkube.api.patching import patched
from pocketkube.api.scale import scaled
from pocketkube.api.writing import AS_USUAL, FROM_INSIDE, Deleting, Patch, Writing
from pocketkube.names import generated
from pocketkube.objects import Object
from pocketkube.registry.metadata import metadata_causes, metadata_update_causes
from pocketkube.registry.resources import Registry
from pocketkube.registry.rules import rules_of
from pocketkube.registry.rules.events import from_storage, to_storage
from pocketkube.schema.resource import Resource
from pocketkube.store.store import Store, same

_NAME_TRIES = 8  # as upstream
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words


class Api:
    """All verbs. Every method is synchronous and atomic: one thread calls them."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        now_s: Callable[[], float],
        chance: random.Random,
    ) -> None:
        self.store = store
        self.registry = registry
        self._now_s = now_s
        self._chance = chance
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = False
        self._policies = Policies(store)

    # What rules and controllers look at

    def now_s(self) -> float:
        """Return the seconds since 1970."""
        return self._now_s()

    def suffix(self) -> str:
        """Return five random letters for a generated name."""
        return "".join(self._chance.choices(_SUFFIX_LETTERS, k=5))

    def uid(self) -> str:
        """Return a new random UID (RFC 4122, version 4)."""
        text = f"{self._chance.getrandbits(128):032x}"
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def find(self, bucket: str, namespace: str, name: str) -> Object | None:
        """Return one object by its bucket (pods, deployments.apps); None when there is none."""
        entry = self.store.get(bucket, namespace, name)
        return None if entry is None else entry.object

    def find_all(self, bucket: str, namespace: str = "") -> list[Object]:
        """Return all objects of a bucket, of one namespace or of all."""
        return [entry.object for entry in self.store.entries(bucket, namespace or None)]

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return one object. Raises ApiError (404)."""
        return from_storage(resource, self._stored(resource, namespace, name))

    def later(self, action: Callable[[], None]) -> None:
        """Run ``action`` when the write that is under way is over, or now."""
        self._waiting.append(action)
        self._run_waiting()

    # Writes

    def create(
        self, resource: Resource, namespace: str, obj: Object, how: Writing = FROM_INSIDE
    ) -> Object:
        """Create an object; return it as it is stored. Raises ApiError (400, 403, 409, 422)."""
        rules = rules_of(resource)
        lifecycle.place(resource, namespace, obj)
        lifecycle.begin(resource, obj, rules, uid=self.uid(), now_s=self._now_s())
        admit_create(self, resource, namespace, obj)
        self._name(resource, obj)
        rules.defaults(obj)
        rules.prepare_create(obj, self)
        causes = metadata_causes(obj, resource, rules.name_is)
        causes += rules.validate(obj) + rules.validate_create(obj)
        causes += custom_causes(obj, resource)
        lifecycle.refuse(resource, obj, causes)
        name = obj["metadata"].get("name", "")
        key = (obj["metadata"].get("namespace", ""), name)
        if not how.dry_run:
            lifecycle.check_no_version(obj)
        there = self.find(resource.bucket, *key)
        if there is not None:
            deleting = "deletionTimestamp" in there["metadata"]
            base = bool(obj["metadata"].get("generateName"))
            what = (resource.group, resource.plural, name)
            raise errors.already_exists(*what, deleting=deleting, generated=base)
        self.admit("CREATE", resource, key, obj, None, how)
        quotas.charge(self.store, resource, obj, dry_run=how.dry_run)
        return self._put(resource, completed(obj, resource), how)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        obj: Object,
        how: Writing = FROM_INSIDE,
        *,
        subresource: str = "",
    ) -> Object:
        """Replace an object, or its status or scale; some kinds are created by it, too.

        Raises ApiError (400, 404, 409, 422).
        """
        lifecycle.place(resource, namespace, obj, name=name)
        may_create = resource.bucket in lifecycle.CREATED_BY_UPDATE
        if may_create and self.store.get(resource.bucket, namespace, name) is None:
            lifecycle.check_absent(resource, obj)
            if not subresource:
                return self.create(resource, namespace, obj, how)
        old = self.get(resource, namespace, name)
        if subresource == "scale":
            lifecycle.check_preconditions(resource, old, obj)
            obj, subresource = scaled(resource, old, obj), ""
        lifecycle.check_preconditions(resource, old, obj)
        return self._replace(resource, old, obj, how, subresource)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Patch,
        how: Writing = FROM_INSIDE,
        *,
        subresource: str = "",
    ) -> Object:
        """Patch an object; an apply patch may create it. Raises ApiError."""
        stored = self.store.get(resource.bucket, namespace, name)
        if stored is None and (patch.type != "apply" or subresource):
            raise errors.not_found(resource.group, resource.plural, name)
        old = None if stored is None else from_storage(resource, stored.object)
        about = {"subresource": subresource, "namespace": namespace, "name": name}
        obj = patched(resource, old, patch, how, **about)
        if old is None:
            obj["metadata"].pop("resourceVersion", None)
            return self.create(resource, namespace, obj, how)
        if subresource == "scale":
            subresource = ""
        lifecycle.place(resource, namespace, obj, name=name)
        lifecycle.check_preconditions(resource, old, obj, is_patch=True)
        return self._replace(resource, old, obj, how, subresource)

    def amend(
        self,
        bucket: str,
        namespace: str,
        name: str,
        change: Callable[[Object], object],
        *,
        subresource: str = "",
    ) -> Object | None:
        """Let ``change`` alter the newest version in place, and store it; None when it is gone.

        Nothing is written when nothing changed. For controllers and agents: no conflict can happen,
        and what they write is taken as valid.
        """
        entry = self.store.get(bucket, namespace, name)
        resource = self.registry.preferred(bucket)
        if entry is None or resource is None:
            return None
        obj = entry.object
        change(obj)
        rules = rules_of(resource)
        if rules.has_generation and not subresource:
            lifecycle.count_generation(rules, entry.object, obj)
        return self._put(resource, obj, FROM_INSIDE)

    def delete(
        self, resource: Resource, namespace: str, name: str, deleting: Deleting = AS_USUAL
    ) -> Object:
        """Delete, gracefully where the kind has grace (pods on nodes), or mark for finalizers.

        Returns the object as it was last. Raises ApiError (404, 409).
        """
        admit_delete(resource, name)
        obj = self._stored(resource, namespace, name)
        lifecycle.check_deletion(resource, obj, deleting)
        self.admit("DELETE", resource, (namespace, name), None, obj, FROM_INSIDE)
        waits = lifecycle.marked_for_deletion(resource, obj, deleting, self._now_s())
        if deleting.dry_run:
            return obj
        if waits:
            return self._put(resource, obj, FROM_INSIDE)
        if "deletionTimestamp" in obj["metadata"]:  # watchers see it before it is gone
            self.store.put(resource.bucket, obj)
        return self._remove(resource, namespace, name)

    def admit(
        self,
        operation: Literal["CREATE", "UPDATE", "DELETE"],
        resource: Resource,
        key: tuple[str, str],  # namespace and name
        obj: Object | None,
        old: Object | None,
        how: Writing,
        *,
        subresource: str = "",
    ) -> None:
        """Ask admission policies. Raises ApiError, of the kind that the policy says."""
        if not self._policies.any:
            return
        self._policies.check(Write(operation, resource, subresource, *key, obj, old, how.user))

    # Inside

    def _stored(self, resource: Resource, namespace: str, name: str) -> Object:
        entry = self.store.get(resource.bucket, namespace, name)
        if entry is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return entry.object

    def _name(self, resource: Resource, obj: Object) -> None:
        """Generate a name where a base was given for it; one that is taken is drawn again."""
        metadata = obj["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return
        for _ in range(_NAME_TRIES):
            metadata["name"] = generated(metadata["generateName"], self.suffix())
            namespace = metadata.get("namespace", "")
            if self.store.get(resource.bucket, namespace, metadata["name"]) is None:
                return

    def _replace(
        self,
        resource: Resource,
        old: Object,
        obj: Object,
        how: Writing,
        subresource: str,
    ) -> Object:
        rules = rules_of(resource)
        if subresource == "status":
            obj = lifecycle.only_status(resource, old, obj)
            rules.prepare_status(obj, old)
            causes = metadata_update_causes(obj, old, resource, rules.name_is)
            causes += custom_causes(obj, resource)
        elif subresource == "finalize":
            lifecycle.keep_server_fields(resource, old, obj)
            rules.defaults(obj)
            causes = metadata_update_causes(obj, old, resource, rules.name_is)
            causes += rules.validate(obj)
        elif subresource:  # such as proxy and binding
            raise errors.method_not_allowed(resource.group, resource.plural, "update")
        else:
            lifecycle.keep_server_fields(resource, old, obj)
            rules.defaults(obj)
            rules.prepare_update(obj, old, self)
            lifecycle.count_generation(rules, old, obj)
            causes = [
                *metadata_update_causes(obj, old, resource, rules.name_is),
                *rules.validate(obj),
                *rules.validate_update(obj, old),
                *custom_causes(obj, resource),
            ]
        lifecycle.refuse(resource, old, causes)
        key = (old["metadata"].get("namespace", ""), old["metadata"]["name"])
        self.admit("UPDATE", resource, key, obj, old, how, subresource=subresource)
        return self._put(resource, completed(obj, resource), how)

    def _put(self, resource: Resource, obj: Object, how: Writing) -> Object:
        """Store the object, or remove it when it waited for this write to be removed."""
        stored = to_storage(resource, obj)
        metadata = stored["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        before = self.store.get(resource.bucket, namespace, name)
        if before is not None:
            metadata["resourceVersion"] = obj["metadata"]["resourceVersion"] = str(before.revision)
        if how.dry_run:
            return obj
        if lifecycle.may_go(stored):
            self._remove(resource, namespace, name)
            return obj
        for one in (metadata, obj["metadata"]):
            one.pop("selfLink", None)  # it is never stored
        if before is not None and same(before, stored):
            return obj
        self.store.put(resource.bucket, stored)
        obj["metadata"]["resourceVersion"] = metadata["resourceVersion"]
        self._run_waiting()
        return obj

    def _remove(self, resource: Resource, namespace: str, name: str) -> Object:
        entry = self.store.remove(resource.bucket, namespace, name)
        assert entry is not None, f"{resource.bucket} {namespace}/{name} is there: it was read"
        self._run_waiting()
        return entry.object

    def _run_waiting(self) -> None:
        if self._running:
            return
        self._running = True
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            self._running = False
