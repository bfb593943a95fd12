"""The resources that are served: from the recorded document, and from CRDs while they exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pocketkube.errors import no_such_path
from pocketkube.schema.resource import Resource


class Registry:
    """Finds resources. CRDs add and remove theirs while the server runs."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self.generation = 0  #: grows with each change; discovery caches by it
        self._listeners: list[Callable[[str], None]] = []
        self.add(resources)

    def add(self, resources: Iterable[Resource]) -> None:
        """Serve these too, in place of those of the same name."""
        for resource in resources:
            self._by_path[resource.group, resource.version, resource.plural] = resource
            self._by_kind[resource.api_version, resource.kind] = resource
        self.generation += 1

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call ``listener`` with the name of each definition that goes or changes."""
        self._listeners.append(listener)

    def remove_crd(self, name: str) -> None:
        """Serve no longer what this CustomResourceDefinition defined."""
        for listener in self._listeners:
            listener(name)
        for resource in [r for r in self._by_path.values() if r.crd == name]:
            del self._by_path[resource.group, resource.version, resource.plural]
            self._by_kind.pop((resource.api_version, resource.kind), None)
        self.generation += 1

    def all(self) -> list[Resource]:
        """Return every resource that is served, in the order of their coming."""
        return list(self._by_path.values())

    def resource(self, group: str, version: str, plural: str) -> Resource:
        """Return a resource by its path. Raises ApiError (404)."""
        found = self._by_path.get((group, version, plural))
        if found is None:
            raise no_such_path()
        return found

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an object's apiVersion and kind; None when there is none."""
        return self._by_kind.get((api_version, kind))

    def named(self, api_version: str, plural: str) -> Resource:
        """Return ``named("apps/v1", "deployments")``. Raises ApiError (404)."""
        group, _, version = api_version.rpartition("/")
        return self.resource(group, version, plural)

    def preferred(self, bucket: str) -> Resource | None:
        """Return the first version of what is stored in a bucket; None when nothing is served."""
        return next((r for r in self._by_path.values() if r.bucket == bucket), None)
