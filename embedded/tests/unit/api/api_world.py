"""The API as calls, for tests: no HTTP, and time stands still."""

import random

import pytest

from pocketkube.api.api import Api
from pocketkube.api.definitions import Definitions
from pocketkube.api.writing import Deleting, Writing
from pocketkube.errors import ApiError
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.store.store import Store

NOW_S = 1_800_000_000.0


class World:
    def __init__(self) -> None:
        registry = Registry(Document.load().resources())
        self.api = Api(Store(), registry, now_s=lambda: NOW_S, chance=random.Random(7))
        Definitions(self.api)
        self.create("v1", "namespaces", {"metadata": {"name": "a"}})

    def named(self, api_version: str, plural: str):
        return self.api.registry.named(api_version, plural)

    def create(self, api_version: str, plural: str, obj: dict, namespace: str = "a", **how) -> dict:
        resource = self.named(api_version, plural)
        where = namespace if resource.namespaced else ""
        return self.api.create(resource, where, obj, Writing(**how))

    def config_map(self, name: str, **more) -> dict:
        return self.create("v1", "configmaps", {"metadata": {"name": name}, **more})

    def delete(self, plural: str, name: str, namespace: str = "a", **how) -> dict:
        resource = self.named("v1", plural)
        where = namespace if resource.namespaced else ""
        return self.api.delete(resource, where, name, Deleting(**how))

    def update(self, plural: str, obj: dict, **how) -> dict:
        metadata = obj["metadata"]
        where = metadata.get("namespace", "")
        return self.api.update(self.named("v1", plural), where, metadata["name"], obj, **how)


def refused(code: int, action, *args, **kwargs) -> ApiError:
    with pytest.raises(ApiError) as error:
        action(*args, **kwargs)
    assert error.value.code == code, error.value.message
    return error.value
