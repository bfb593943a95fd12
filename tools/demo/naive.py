"""A scheduler that places one pod at a time, as Kubernetes does without gang scheduling.

In: an API client and the scheduler name to answer to. Out: bindings. It is honest about single pods
(no node gets more than it has) and knows nothing of gangs. Called by ``story``, in a thread.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterable
from typing import Any

from quorate.core.model.quantity import parse_amount
from tools.controlplane import ApiClient, ApiError

_EVERY_S = 0.05

Object = dict[str, Any]
Amounts = dict[str, int]


def requests_of(pod: Object) -> Amounts:
    """Return what a pod asks for: the sum over its containers, and one of the node's pods."""
    sums: Amounts = {"pods": 1}
    for container in pod["spec"]["containers"]:
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            sums[resource] = sums.get(resource, 0) + parse_amount(resource, text)
    return sums


def free_on(node: Object, pods: Iterable[Object]) -> Amounts:
    """Return what a node has left beside the pods that are on it and have not ended."""
    name = node["metadata"]["name"]
    free = {key: parse_amount(key, text) for key, text in node["status"]["allocatable"].items()}
    for pod in pods:
        if pod["spec"].get("nodeName") == name and pod["status"]["phase"] in ("Pending", "Running"):
            for resource, amount in requests_of(pod).items():
                free[resource] = free.get(resource, 0) - amount
    return free


def first_fit(pod: Object, nodes: list[Object], pods: list[Object]) -> str | None:
    """Return the first node that has room for this pod, None when no node has."""
    wanted = requests_of(pod)
    for node in nodes:
        free = free_on(node, pods)
        if all(free.get(resource, 0) >= amount for resource, amount in wanted.items()):
            return str(node["metadata"]["name"])
    return None


class NaiveScheduler:
    """Takes the pods of one scheduler name in the order of their creation, one by one."""

    def __init__(self, client: ApiClient, scheduler_name: str, pause_s: float) -> None:
        """Prepare; ``pause_s`` after each binding lets people watch."""
        self._client = client
        self._name = scheduler_name
        self._pause_s = pause_s
        self._arrival: dict[str, int] = {}
        self._told: set[str] = set()

    def run(self, stop: threading.Event) -> None:
        """Schedule until ``stop`` is set, or until the cluster is gone."""
        try:
            while not stop.is_set():
                stop.wait(self._pause_s if self.step() else _EVERY_S)
        except (OSError, http.client.HTTPException):
            pass  # the cluster is gone; the story says so if it should be there
        finally:
            self._client.close()

    def step(self) -> bool:
        """Bind the first pod in the queue that fits on some node; tell whether there was one."""
        nodes = self._client.api("GET", "/api/v1/nodes")["items"]
        pods = self._client.api("GET", "/api/v1/pods")["items"]
        for pod in self._queue(pods):
            node = first_fit(pod, nodes, pods)
            if node is None:
                self._tell(pod, f"no node of {len(nodes)} has room")
                continue
            body = {"target": {"kind": "Node", "name": node}, "metadata": _identity(pod)}
            self._send("POST", f"{_path(pod)}/binding", body)
            return True
        return False

    def _queue(self, pods: list[Object]) -> list[Object]:
        mine = [one for one in pods if one["spec"]["schedulerName"] == self._name]
        # Versions grow, and that of a pod which nobody has changed is from its creation.
        for pod in sorted(mine, key=lambda one: int(one["metadata"]["resourceVersion"])):
            self._arrival.setdefault(pod["metadata"]["uid"], len(self._arrival))
        waiting = [one for one in mine if not one["spec"].get("nodeName")]
        return sorted(waiting, key=lambda one: self._arrival[one["metadata"]["uid"]])

    def _tell(self, pod: Object, message: str) -> None:
        """Say in the pod's condition why it waits, once."""
        if pod["metadata"]["uid"] in self._told:
            return
        self._told.add(pod["metadata"]["uid"])
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        body = {"status": {"conditions": [{**condition, "message": message}]}}
        self._send("PATCH", f"{_path(pod)}/status", body)

    def _send(self, method: str, path: str, body: Object) -> None:
        kind = {"PATCH": "application/strategic-merge-patch+json"}.get(method, "application/json")
        try:
            self._client.api(method, path, body, content_type=kind)
        except ApiError as error:
            if error.status not in (404, 409):  # gone, or changed, since it was read: look again
                raise OSError(str(error)) from None


def _identity(pod: Object) -> Object:
    return {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}


def _path(pod: Object) -> str:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
