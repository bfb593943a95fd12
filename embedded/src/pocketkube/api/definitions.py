"""CustomResourceDefinitions at work: their resources come and go with them.

Listens to the store: a definition that is written is served at once; one that is deleted first
loses its objects, then goes itself.
"""

from __future__ import annotations

from pocketkube.api.api import Api
from pocketkube.api.writing import Deleting
from pocketkube.objects import Object, drop_finalizer
from pocketkube.registry.rules.definitions import BUCKET, FINALIZER, resources_of
from pocketkube.store.store import Event


class Definitions:
    """Keeps the registry in step with the definitions that are stored."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._emptying: set[str] = set()
        for crd in api.find_all(BUCKET):
            self._serve(crd)
        api.store.watch(BUCKET, self._on_definition)
        api.store.watch_all(self._on_any)

    def _on_definition(self, event: Event) -> None:
        name = event.entry.name
        if event.type == "DELETED":
            self._api.registry.remove_crd(name)
            self._emptying.discard(name)
            return
        crd = event.object
        before = event.object_before
        if before is None or before.get("spec") != crd.get("spec"):
            self._api.registry.remove_crd(name)
            self._serve(crd)
        if "deletionTimestamp" in crd["metadata"] and name not in self._emptying:
            self._emptying.add(name)
            self._api.later(lambda: self._empty(name))

    def _on_any(self, event: Event) -> None:
        if event.type == "DELETED" and event.bucket in self._emptying:
            self._api.later(lambda: self._finish(event.bucket))

    def _serve(self, crd: Object) -> None:
        if crd["metadata"]["name"] in self._emptying:
            return
        self._api.registry.add(resources_of(crd))

    def _empty(self, name: str) -> None:
        """Delete the objects of a definition that is going; finalizers may hold some back."""
        resource = self._api.registry.preferred(name)
        if resource is not None:
            for entry in list(self._api.store.entries(name)):
                self._api.delete(resource, entry.namespace, entry.name, Deleting())
        self._finish(name)

    def _finish(self, name: str) -> None:
        if self._api.store.count(name):
            return
        self._api.amend(BUCKET, "", name, lambda crd: drop_finalizer(crd, FINALIZER))
