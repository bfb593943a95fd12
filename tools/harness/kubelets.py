"""Kubelets that refuse: they admit a pod only if it fits beside those that they run already.

kwok's never refuse, so its nodes cannot show what a bind into a full node leads to. These play the
kubelets of the nodes that they make, of which kwok knows nothing: admission by cpu in the order in
which pods arrive, with a real kubelet's status, and the end of deleted pods. Embedded nodes do all
of this by themselves.
"""

import json
import threading
import time
from http.client import HTTPException, HTTPSConnection
from ssl import create_default_context
from urllib.parse import urlsplit

from tools.controlplane import Access, ApiError

_STATUS = "application/strategic-merge-patch+json"


class Kubelets:
    """The kubelets of some nodes. A context manager."""

    def __init__(self, cluster: Access, nodes: list[str], cpu: int) -> None:
        """Make the nodes, each with so many cpus, and start."""
        self._cluster = cluster
        cluster.create_nodes(nodes, allocatable={"cpu": str(cpu)}, annotations={})
        self._cpu = cpu
        self._admitted: dict[str, dict[str, int]] = {node: {} for node in nodes}
        self._seen: set[str] = set()
        self._done = threading.Event()
        self.refused: list[tuple[str, float]] = []
        """The ``gang`` label of each refused pod, and when; seconds of the monotonic clock."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Kubelets":
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._done.is_set():
            try:
                self._follow()
            except (OSError, HTTPException, ApiError, ValueError):
                time.sleep(0.05)

    def _follow(self) -> None:
        listed = self._cluster.api("GET", "/api/v1/pods")
        for one in listed["items"]:
            self._look(one)
        there = {one["metadata"]["uid"] for one in listed["items"]}
        for admitted in self._admitted.values():
            for uid in admitted.keys() - there:
                del admitted[uid]
        address = urlsplit(self._cluster.server)
        context = create_default_context(cafile=str(self._cluster.ca))
        watch = HTTPSConnection(address.hostname, address.port, context=context, timeout=1.0)
        try:
            version = listed["metadata"]["resourceVersion"]
            query = f"watch=1&timeoutSeconds=1&resourceVersion={version}"
            headers = {"Authorization": f"Bearer {self._cluster.admin_token}"}
            watch.request("GET", f"/api/v1/pods?{query}", headers=headers)
            answer = watch.getresponse()
            while not self._done.is_set() and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] == "DELETED":
                    self._forget(event["object"])
                elif event["type"] in ("ADDED", "MODIFIED"):
                    self._look(event["object"])
        finally:
            watch.close()

    def _look(self, one: dict) -> None:
        node, uid = one["spec"].get("nodeName"), one["metadata"]["uid"]
        admitted = self._admitted.get(node)
        if admitted is None:
            return
        if "deletionTimestamp" in one["metadata"]:
            self._end(one)
        elif uid not in self._seen and one["status"].get("phase", "Pending") == "Pending":
            self._seen.add(uid)
            cpu = sum(int(c["resources"]["requests"]["cpu"]) for c in one["spec"]["containers"])
            used = sum(admitted.values())
            if used + cpu <= self._cpu:
                admitted[uid] = cpu
                self._tell(one, {"phase": "Running"})
            else:
                self._refuse(one, cpu, used)

    def _refuse(self, one: dict, cpu: int, used: int) -> None:
        message = (
            "Pod was rejected: Node didn't have enough resource: cpu, "
            f"requested: {1000 * cpu}, used: {1000 * used}, capacity: {1000 * self._cpu}"
        )
        self._tell(one, {"phase": "Failed", "reason": "OutOfcpu", "message": message})
        gang = one["metadata"].get("labels", {}).get("gang", "")
        self.refused.append((gang, time.monotonic()))

    def _tell(self, one: dict, status: dict) -> None:
        self._call("PATCH", one, "/status", {"status": status})

    def _end(self, one: dict) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": one["metadata"]["uid"]},
        }
        self._call("DELETE", one, "", body)

    def _call(self, method: str, one: dict, subresource: str, body: dict) -> None:
        metadata = one["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}{subresource}"
        content_type = _STATUS if method == "PATCH" else "application/json"
        try:
            self._cluster.api(method, path, body, content_type=content_type)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _forget(self, one: dict) -> None:
        for admitted in self._admitted.values():
            admitted.pop(one["metadata"]["uid"], None)
