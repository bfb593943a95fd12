"""Fill a cluster with nodes and pods, thousands a second: copies that are written into etcd itself.

In: a cluster without controllers. Out: the same with so many objects. Called by ``soak_large``.
The API server makes one object of each kind, with its own defaults and managedFields; what it
stored is read from etcd, and copies differ in names, uid and node only. Names of a kind are equally
long, so that a copy is the stored message with some bytes in the place of others.
"""

import base64
import http.client
import itertools
import json
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bench.soak import objects
from tools.controlplane import Cluster

_PUTS_PER_REQUEST = 64
_WRITERS = 4
OURS_PART = 0.1
"""So many of the pods are of gangs of ours."""
_NODE, _APP, _GANG = "node-00000", "app-0000", "gang-000000"
_APP_PODS = 50

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Template:
    """One stored object: its key and bytes, and the names in them that copies have others for."""

    key: str
    value: bytes
    name: str
    uid: str
    pod_bytes: int
    """Length of its JSON, as it is listed."""

    def copy(self, names: dict[str, str]) -> tuple[str, bytes]:
        """Return the key and bytes of another one; ``names`` maps those in it to others."""
        key, value = self.key, self.value.replace(self.uid.encode(), str(uuid.uuid4()).encode())
        for old, new in names.items():
            assert len(old) == len(new), f"{old} and {new} are not equally long"
            key, value = key.replace(old, new), value.replace(old.encode(), new.encode())
        return key, value


class Seed:
    """Writes copies into one cluster's etcd."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        self._cluster = cluster
        self._say = say
        self._local = threading.local()
        self.pod_bytes = 0
        """How long the JSON of a pod is, the mean over the kinds."""

    def namespaces(self) -> None:
        """Make all namespaces, and the ServiceAccounts that no controller makes here."""
        names = [objects.namespace(number) for number in range(objects.NAMESPACES)]
        for name in (*names, objects.CHURN, objects.FOREIGN_CHURN):
            made = {"apiVersion": "v1", "metadata": {"name": name}}
            self._cluster.api("POST", "/api/v1/namespaces", {**made, "kind": "Namespace"})
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}
            account["metadata"] = {"name": "default"}
            self._cluster.api("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)

    def nodes(self, count: int) -> None:
        """Make nodes ``node-00000`` and so on."""
        self._cluster.api("POST", "/api/v1/nodes", objects.node(_NODE))
        made = self._template("/api/v1/nodes", "/registry/minions", _NODE)
        names = (f"node-{number:05d}" for number in range(1, count))
        self._put_all((made.copy({_NODE: name}) for name in names), count, "nodes")

    def pods(self, count: int, nodes: int, pod_bytes: int) -> None:
        """Make pods that run, ``OURS_PART`` of them in gangs, evenly over all nodes."""
        ours_count = int(count * OURS_PART) // objects.RUNNING_SIZE * objects.RUNNING_SIZE
        foreign = [
            self._foreign_template(kind, cpu, pod_bytes)
            for kind, cpu in enumerate(objects.FOREIGN_REQUESTS)
        ]
        ours = self._ours_template(pod_bytes)
        self.pod_bytes = sum(one.pod_bytes for one in foreign) // len(foreign)
        made = itertools.chain(
            _foreign_copies(foreign, count - ours_count, nodes),
            _ours_copies(ours, ours_count, nodes),
        )
        self._put_all(made, count, "pods")
        path = f"/api/v1/namespaces/{objects.namespace(0)}/pods"
        for one in (*foreign, ours):
            self._cluster.api("DELETE", f"{path}/{one.name}?gracePeriodSeconds=0")

    def _foreign_template(self, kind: int, cpu: str, pod_bytes: int) -> Template:
        def describe(padding: int) -> dict[str, Any]:
            return objects.foreign_pod(f"k{kind}-00000000", _APP, _NODE, cpu, padding)

        return self._pod_template(describe, pod_bytes)

    def _ours_template(self, pod_bytes: int) -> Template:
        def describe(padding: int) -> dict[str, Any]:
            where, name = objects.namespace(0), f"{_GANG}-0"
            return objects.running_member(name, _GANG, where, _NODE, padding)

        return self._pod_template(describe, pod_bytes)

    def _pod_template(self, describe: Callable[[int], dict[str, Any]], pod_bytes: int) -> Template:
        """Make one pod of ``pod_bytes``: once to see how long it is, then with the rest."""
        path = f"/api/v1/namespaces/{objects.namespace(0)}/pods"
        padding = 0
        for _ in range(2):
            name = describe(0)["metadata"]["name"]
            self._cluster.api("POST", path, describe(padding))
            status = {"status": objects.running_status()}
            kind = "application/merge-patch+json"
            self._cluster.api("PATCH", f"{path}/{name}/status", status, content_type=kind)
            made = self._template(path, f"/registry/pods/{objects.namespace(0)}", name)
            missing = pod_bytes - made.pod_bytes
            if missing <= 0 or padding:
                break
            padding = missing
            self._cluster.api("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
        return made

    def _template(self, path: str, prefix: str, name: str) -> Template:
        listed = self._cluster.api("GET", f"{path}/{name}")
        key = f"{prefix}/{name}"
        found = self._etcd("range", {"key": _b64(key.encode())})["kvs"][0]
        size = len(json.dumps(listed, separators=(",", ":")))
        uid = str(listed["metadata"]["uid"])
        return Template(key, base64.b64decode(found["value"]), name, uid, size)

    def _put_all(self, copies: Iterator[tuple[str, bytes]], count: int, what: str) -> None:
        """Write copies over a few connections."""
        done = 0
        with ThreadPoolExecutor(_WRITERS) as pool:
            while some := list(itertools.islice(copies, 100 * _PUTS_PER_REQUEST)):
                parts = [
                    some[start : start + _PUTS_PER_REQUEST]
                    for start in range(0, len(some), _PUTS_PER_REQUEST)
                ]
                list(pool.map(self._put, parts))
                done += len(some)
                self._say(f"{done:,} of {count:,} {what}")
        self._cluster.client.forget_connections()  # the server has closed them meanwhile

    def _put(self, copies: Iterable[tuple[str, bytes]]) -> None:
        puts = [
            {"requestPut": {"key": _b64(key.encode()), "value": _b64(value)}}
            for key, value in copies
        ]
        self._etcd("txn", {"success": puts})

    def _etcd(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            address = urlsplit(self._cluster.etcd).netloc
            connection = self._local.connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("POST", f"/v3/kv/{call}", json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"etcd refused {call}: {answer.status} {text[:500]!r}")
        decoded: dict[str, Any] = json.loads(text)
        return decoded


def _foreign_copies(
    templates: list[Template], count: int, nodes: int
) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        one = templates[number % len(templates)]
        app = number // _APP_PODS
        names = {
            one.name: f"{one.name[:3]}{number:08d}",
            _APP: f"app-{app % 10_000:04d}",
            objects.namespace(0): objects.namespace(app % objects.NAMESPACES),
            _NODE: f"node-{number % nodes:05d}",
        }
        yield one.copy(names)


def _ours_copies(one: Template, count: int, nodes: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        gang, member = divmod(number, objects.RUNNING_SIZE)
        names = {
            one.name: f"gang-{gang:06d}-{member}",
            _GANG: f"gang-{gang:06d}",
            objects.namespace(0): objects.namespace(gang % objects.NAMESPACES),
            _NODE: f"node-{number % nodes:05d}",
        }
        yield one.copy(names)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
