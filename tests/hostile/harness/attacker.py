"""One tenant who means ill: all that a namespace's editor may write, with a token of its own.

Its rights end at its namespace, so that what the API server refuses is refused here too. It has
some that editors often lack (bindings, statuses, leases), because some clusters grant them.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPException

from tools.controlplane import Access, ApiError
from tools.harness.world import make_namespace
from tools.objects import NATIVE, SIGS, VOLCANO, X_K8S
from tools.testing import wait_for

_THREADS = 8
_MERGE = "application/merge-patch+json"
_MORE = {
    "": ["pods/binding", "pods/status", "pods/eviction", "pods/finalizers", "events", "configmaps"],
    "coordination.k8s.io": ["leases"],
    "events.k8s.io": ["events"],
    "resource.k8s.io": ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"],
    "policy": ["poddisruptionbudgets"],
    **{
        api.partition("/")[0]: ["podgroups", "podgroups/status"]
        for api in (X_K8S, SIGS, VOLCANO, NATIVE)
    },
}


class Attacker:
    """A user with the rights of an editor in ``namespace``, which it makes."""

    def __init__(self, cluster: Access, namespace: str) -> None:
        self.namespace = namespace
        self.cluster = cluster
        self.accepted = 0
        self.refused: dict[int, str] = {}
        """Of each status that the API server refused something with, the latest message."""
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        make_namespace(cluster, namespace)
        for made in self._rights():
            cluster.api("POST", self._collection(made), made)
        token = cluster.service_account_token(namespace, "mallory")
        self.client = cluster.client_for(token)
        self._wait_for_rights()

    def _rights(self) -> Iterable[dict]:
        rbac, namespace = "rbac.authorization.k8s.io", self.namespace
        who = [{"kind": "ServiceAccount", "name": "mallory", "namespace": namespace}]
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mallory"}}
        rules = [
            {"apiGroups": [group], "resources": resources, "verbs": ["*"]}
            for group, resources in _MORE.items()
        ]
        yield {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": {"name": "more", "namespace": namespace},
            "rules": rules,
        }
        for kind, name in (("ClusterRole", "edit"), ("Role", "more")):
            yield {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": namespace},
                "subjects": who,
                "roleRef": {"apiGroup": rbac, "kind": kind, "name": name},
            }

    def _collection(self, one: dict) -> str:
        kind = one["kind"].lower()
        return self.path(one["apiVersion"], f"{kind[:-1]}ies" if kind[-1] == "y" else f"{kind}s")

    def path(self, api: str, plural: str) -> str:
        """Return the path of a collection, in this namespace."""
        base = f"/apis/{api}" if "/" in api else f"/api/{api}"
        return f"{base}/namespaces/{self.namespace}/{plural}"

    def _wait_for_rights(self) -> None:
        """The API server's authorizer learns of new roles by a watch."""
        for path in (self.path(X_K8S, "podgroups"), self.path("v1", "pods")):
            deadline_s = time.monotonic() + 20
            while time.monotonic() < deadline_s:
                try:
                    self.client.api("GET", path)
                    break
                except ApiError:
                    time.sleep(0.02)

    # What it writes

    def send(self, method: str, path: str, body: dict | None = None, **options) -> dict | None:
        """Send one request; None if it is refused, which is noted."""
        try:
            answer = self.client.api(method, path, body, **options)
        except ApiError as error:
            self.refused[error.status] = error.message[:200]
            return None
        self.accepted += 1
        return answer

    def create(self, *objects: dict) -> None:
        """Create them one after the other."""
        for one in objects:
            self.send("POST", self._collection(one), one)

    def create_many(self, objects: Iterable[dict]) -> None:
        """Create them as fast as the API server takes them."""

        def create(one: dict) -> None:
            if not self._stop.is_set():
                self.send("POST", self._collection(one), one)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(create, objects))

    def patch(self, one: dict, patch: dict, subresource: str = "") -> None:
        """Send a merge patch."""
        path = f"{self._collection(one)}/{one['metadata']['name']}{subresource}"
        self.send("PATCH", path, patch, content_type=_MERGE)

    def delete(self, one: dict) -> None:
        """Delete it without grace."""
        path = f"{self._collection(one)}/{one['metadata']['name']}?gracePeriodSeconds=0"
        self.send("DELETE", path)

    def keep_on(self, act: Callable[[int], None]) -> None:
        """Do this in a thread of its own, with 0, 1, ... until the end."""

        def run() -> None:
            number = 0
            while not self._stop.is_set():
                try:
                    act(number)
                except (OSError, HTTPException, ApiError):
                    time.sleep(0.05)
                number += 1
            self.client.close()

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    # What became of it

    def pods(self) -> list[dict]:
        listed = self.cluster.api("GET", self.path("v1", "pods"))["items"]
        return [{"apiVersion": "v1", "kind": "Pod", **one} for one in listed]

    def said(self) -> list[str]:
        """Return reason and message of PodScheduled=False of each pod that has it."""
        return [
            f"{condition.get('reason', '')}: {condition.get('message', '')}"
            for pod in self.pods()
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition.get("reason")
        ]

    @property
    def goes_on(self) -> bool:
        """Whether it still writes."""
        return bool(self._threads)

    def stop(self) -> None:
        """End what goes on."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=30)

    def remove(self) -> None:
        """Delete pods and claims, as the administrator; all else goes with the namespace."""
        self.stop()
        own = [self.path("v1", "pods"), self.path("resource.k8s.io/v1", "resourceclaims")]
        with ThreadPoolExecutor(_THREADS) as pool:
            for path in own:  # one by one: a request for all of them may take a minute
                there = self.cluster.api("GET", path)["items"]
                list(pool.map(partial(self._free, path), there))
        self._end("DELETE", f"/api/v1/namespaces/{self.namespace}")
        self.client.close()
        for path in own:
            wait_for(lambda path=path: not self.cluster.api("GET", path)["items"], path)

    def _free(self, path: str, one: dict) -> None:
        metadata = one["metadata"]
        if metadata.get("finalizers"):
            self._end("PATCH", f"{path}/{metadata['name']}", {"metadata": {"finalizers": None}})
        self._end("DELETE", f"{path}/{metadata['name']}?gracePeriodSeconds=0")

    def _end(self, method: str, path: str, body: dict | None = None) -> None:
        """Send it; what is gone already, or going, is as well."""
        try:
            self.cluster.api(method, path, body, content_type=_MERGE)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
