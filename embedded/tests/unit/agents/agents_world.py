"""A store, an API and node agents, on a clock that stands still until a test moves it."""

import copy
import random

from pocketkube.agents import Agents, Settings
from pocketkube.api.api import Api
from pocketkube.api.writing import Deleting
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.store.store import Store

EPOCH_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
DEFAULTS = Settings()
EPOCH = "2026-01-01T00:00:00Z"
STEPS_MAX = 10_000


class World:
    """``create`` and friends write; ``settle`` and ``pass_s`` let the agents act."""

    def __init__(self, settings: Settings = DEFAULTS, *, seed: int = 1):
        self.passed_s = 0.0
        self.look_s = 0.0  # how far the clock moves with each look at it
        self.store = Store()
        self.registry = Registry(Document.load().resources())
        self.api = Api(
            self.store,
            self.registry,
            now_s=lambda: EPOCH_S + self.passed_s,
            chance=random.Random(0),
        )
        for name in ("default", "kube-node-lease"):
            self.create("namespaces", {"metadata": {"name": name}}, "")
        self.create("serviceaccounts", {"metadata": {"name": "default"}})
        self.writes = 0
        self.store.watch("pods", lambda _: setattr(self, "writes", self.writes + 1))
        self.agents = self.new_agents(settings, seed)

    def new_agents(self, settings: Settings, seed: int = 1) -> Agents:
        return Agents(self.api, self._clock_s, settings, random.Random(seed))

    def _clock_s(self) -> float:
        self.passed_s += self.look_s
        return self.passed_s

    # Objects

    def create(self, plural: str, obj: dict, namespace: str = "default") -> dict:
        resource = self.registry.named("v1", plural)
        obj = {"apiVersion": "v1", "kind": resource.kind, **copy.deepcopy(obj)}
        return self.api.create(resource, namespace if resource.namespaced else "", obj)

    def node(self, name: str = "n", *, labels=None, annotations=None, taints=(), **amounts) -> dict:
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "10", **amounts}
        metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
        spec = {"taints": list(taints)} if taints else {}
        return self.create(
            "nodes", {"metadata": metadata, "spec": spec, "status": {"capacity": capacity}}
        )

    def pod(self, name: str = "p", *, node="n", requests=None, annotations=None, **spec) -> dict:
        container = {"name": "main", "image": "busybox"}
        if requests:
            container["resources"] = {"requests": requests, "limits": requests}
        metadata = {"name": name, "annotations": annotations or {}}
        metadata |= {key: spec.pop(key) for key in ("finalizers", "labels") if key in spec}
        whole = {"containers": [container], **({"nodeName": node} if node else {}), **spec}
        return self.create("pods", {"metadata": metadata, "spec": whole})

    def delete(self, plural: str, name: str, **how) -> None:
        resource = self.registry.named("v1", plural)
        namespace = "default" if resource.namespaced else ""
        self.api.delete(resource, namespace, name, Deleting(**how))

    def annotate(self, plural: str, name: str, **annotations) -> None:
        def change(obj):
            own = obj["metadata"].setdefault("annotations", {})
            for key, value in annotations.items():
                full = f"quorate.dev/{key.replace('_', '-')}"
                own.pop(full, None) if value is None else own.update({full: value})

        self.amend(plural, name, change)

    def amend(self, plural: str, name: str, change, subresource: str = "") -> None:
        namespace = "" if plural == "nodes" else "default"
        assert self.api.amend(plural, namespace, name, change, subresource=subresource)

    def get(self, name: str = "p", plural: str = "pods") -> dict | None:
        return self.api.find(plural, "" if plural == "nodes" else "default", name)

    def status(self, name: str = "p", plural: str = "pods") -> dict:
        found = self.get(name, plural)
        assert found is not None, f"{plural} {name} is gone"
        return found.get("status", {})

    def phase(self, name: str = "p") -> str:
        return self.status(name).get("phase", "Pending") if self.get(name) else "gone"

    def condition(self, type_: str, name: str = "p", plural: str = "pods") -> dict | None:
        conditions = self.status(name, plural).get("conditions", [])
        return next((one for one in conditions if one["type"] == type_), None)

    def events(self) -> list[tuple[str, str]]:
        return [(one["reason"], one["message"]) for one in self.api.find_all("events", "default")]

    # Time

    def settle(self) -> float | None:
        """Let the agents do all that is due now; return when they want to be called again."""
        for _ in range(STEPS_MAX):
            wait_s = self.agents.step()
            if wait_s != 0:
                return wait_s
        raise AssertionError("the agents never come to rest")

    def pass_s(self, seconds: float) -> None:
        """Let time pass, calling the agents when they want to be called and not between."""
        ends_s = self.passed_s + seconds
        while True:
            wait_s = self.settle()
            if wait_s is None or self.passed_s + wait_s > ends_s:
                break
            self.passed_s += wait_s
        self.passed_s = ends_s
        self.settle()
