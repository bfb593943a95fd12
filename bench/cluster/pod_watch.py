"""The driver's own watch: when each pod appeared and was bound, by one clock for all peers.

In: one namespace's watch stream. Out: counts and arrival times. Used by ``gang_bench``. It runs
in a thread of its own and resumes when the API server drops it, as it drops every slow watcher.
"""

import http.client
import ssl
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bench.cluster.cases import GANG_LABEL

_SILENCE_S_MAX = 300.0


class _Meta(msgspec.Struct):
    name: str = ""
    resourceVersion: str = ""  # noqa: N815  the API's own name
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815  the API's own name


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | str = msgspec.field(default_factory=_Status)  # text in an ERROR event
    code: int = 0  # of a Status, in an ERROR event


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[_Pod] = []


_EVENT = msgspec.json.Decoder(_Event)
_LIST = msgspec.json.Decoder(_List)


class PodWatch:
    """Times are those of ``time.monotonic``, taken when the bytes of an event arrive."""

    def __init__(self, server: str, ca: Path, token: str, namespace: str) -> None:
        self._address = urlsplit(server)
        self._tls = ssl.create_default_context(cafile=str(ca))
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._changed = threading.Condition()
        self._stopped = False
        self._expected: frozenset[str] = frozenset()
        self._socket_owner: http.client.HTTPSConnection | None = None
        self.error: BaseException | None = None  #: why the thread ended, if it did
        self.interruptions = 0  #: how often the server ended the stream
        self.created_s: dict[str, float] = {}  #: pod -> arrival of its first event
        self.bound_s: dict[str, float] = {}  #: pod -> arrival of the first event with a node
        self.told: set[str] = set()  #: pods that carry a word why they have no node
        self.gang_of: dict[str, str] = {}
        self.bound_of: dict[str, int] = {}  #: gang -> how many members are bound
        self.created_of: dict[str, int] = {}  #: gang -> how many members exist
        self._thread = threading.Thread(target=self._run, name="pod-watch", daemon=True)
        self._thread.start()

    def whole(self, members: int) -> int:
        """Count the gangs that are bound whole."""
        return sum(count >= members for count in list(self.bound_of.values()))

    def partial(self, members: int) -> int:
        """Count the gangs that are bound in part."""
        return sum(0 < count < members for count in list(self.bound_of.values()))

    def complete(self, members: int) -> list[str]:
        """Name the gangs of which all members exist, in the order in which they began."""
        return [gang for gang, count in list(self.created_of.items()) if count >= members]

    def wait(self, timeout_s: float) -> None:
        """Wait for the next change, at most so long. Raises what ended the watch, if it ended."""
        with self._changed:
            self._changed.wait(timeout_s)
        if self.error is not None:
            raise RuntimeError("the driver's own watch failed") from self.error

    def begin(self, gangs: Iterable[str]) -> None:
        """Start a run with nothing seen; from now on only pods of these gangs count."""
        with self._changed:
            self._expected = frozenset(gangs)
            for seen in (self.created_s, self.bound_s, self.gang_of):
                seen.clear()
            self.told.clear()
            self.bound_of.clear()
            self.created_of.clear()
            self.interruptions = 0

    def stop(self) -> None:
        """End the thread; the watch is cut."""
        self._stopped = True
        if self._socket_owner is not None and self._socket_owner.sock is not None:
            self._socket_owner.sock.close()

    def _run(self) -> None:
        version = ""
        try:
            while not self._stopped:
                version = self._follow(version or self._list())
                self.interruptions += 1
        except BaseException as error:
            if not self._stopped:
                self.error = error
                with self._changed:
                    self._changed.notify_all()

    def _get(self, query: str) -> http.client.HTTPResponse:
        host, port = self._address.hostname, self._address.port
        assert host is not None, "a server has a host"
        connection = http.client.HTTPSConnection(
            host, port, context=self._tls, timeout=_SILENCE_S_MAX
        )
        self._socket_owner = connection
        connection.request("GET", self._path + query, headers=self._headers)
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise RuntimeError(f"GET {self._path}{query}: {response.status} {response.read()!r}")
        return response

    def _list(self) -> str:
        listed = _LIST.decode(self._get("").read())
        now_s = time.monotonic()
        with self._changed:
            for pod in listed.items:
                self._see(pod, now_s)
            self._changed.notify_all()
        return listed.metadata.resourceVersion

    def _follow(self, version: str) -> str:
        """Read one stream to its end; give the version to go on from, "" to list again."""
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={version}"
        response = self._get(query)
        rest = b""
        while data := response.read1(1 << 20):
            now_s = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            with self._changed:
                for line in lines:
                    event = _EVENT.decode(line)
                    if event.type == "ERROR":
                        return ""
                    version = event.object.metadata.resourceVersion
                    if event.type in {"ADDED", "MODIFIED"}:
                        self._see(event.object, now_s)
                self._changed.notify_all()
        return version

    def _see(self, pod: _Pod, now_s: float) -> None:
        name = pod.metadata.name
        gang = pod.metadata.labels.get(GANG_LABEL, "")
        if gang not in self._expected:
            return
        if name not in self.created_s:
            self.created_s[name] = now_s
            self.gang_of[name] = gang
            self.created_of[gang] = self.created_of.get(gang, 0) + 1
        if name not in self.told and isinstance(pod.status, _Status):
            conditions = ((one.type, one.status) for one in pod.status.conditions)
            if ("PodScheduled", "False") in conditions:
                self.told.add(name)
        if pod.spec.nodeName and name not in self.bound_s:
            self.bound_s[name] = now_s
            self.bound_of[gang] = self.bound_of.get(gang, 0) + 1
