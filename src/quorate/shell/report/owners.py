"""What owners of pods make, and what keeps them from more. In: owners. Out: ``OwnerChanged``.

Used by ``reporter`` and the command line for messages such as "Deployment pause makes 2", to tell
the runs of a CronJob apart, and for pods whose owner may name a gang in vain. It costs one GET for
each owner, and is asked only while a gang lacks members or may have those of several runs, so no
workload has to be watched. Where an owner has fewer pods than it is to make, the newest Event
``FailedCreate`` about it says why: a list of them costs the API server a walk through the
namespace's Events, so it is asked for seldom.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from http import HTTPStatus

import msgspec

from quorate.core.model import GangKey, Owner
from quorate.core.model.changes import Brake, OwnerChanged
from quorate.core.words.plain_text import plain
from quorate.dialects import gathered_words
from quorate.dialects.near_misses import of_owner
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.objects import Condition, Metadata
from quorate.shell.kube.paths import resource_path
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import Note

_ASK_AGAIN_S = 1.0
_FINAL = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
"""HTTP statuses that another request would not change."""
_ASKING_MAX = 500
"""How many requests are under way at a time. Beyond that the caller asks again later."""
_KEPT_MAX = 10_000
"""So many owners are known to have been asked for; beyond that all are forgotten."""
PAUSE_S, PAUSE_S_MAX = 2.0, 60.0
"""Between two visits, and between two lists of Events: at first, and at most. They double."""
_EVENTS_MAX = 100
"""Of one owner: a recorder sends 25 of an object, then one in five minutes; they last an hour."""
_REFUSAL_CHARS_MAX = 300
_REFUSED = "forbidden: "
"""What comes before it names a pod that never was, by another name each time."""

_MPI_JOB = "MPIJob"
_PLURALS = {
    ("apps", "Deployment"): "deployments",
    ("apps", "StatefulSet"): "statefulsets",
    ("apps", "ReplicaSet"): "replicasets",
    ("batch", "Job"): "jobs",
    ("kubeflow.org", _MPI_JOB): "mpijobs",
}


class _Replicas(msgspec.Struct):
    replicas: int | None = None


class Spec(msgspec.Struct, rename="camel"):
    """``spec`` of an owner, whatever its kind."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    pod_management_policy: str | None = None
    launcher_creation_policy: str | None = None
    mpi_replica_specs: dict[str, _Replicas] | None = None


class _Status(msgspec.Struct):
    replicas: int | None = None
    active: int | None = None
    succeeded: int | None = None
    conditions: list[Condition] | None = None


class Workload(msgspec.Struct):
    """What is read of an owner."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: Spec = msgspec.field(default_factory=Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    def says(self, *types: str) -> str | None:
        """Return the message of the first of these conditions that is true; None if none is."""
        conditions = self.status.conditions or ()
        true = (one.message for one in conditions if one.type in types and one.status == "True")
        return next(true, None)


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    metadata: Metadata
    note: str = ""
    series: _Series | None = None
    deprecated_last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def last_time(self) -> str:
        """When it happened last, as the API writes times: the later one is the larger text."""
        times = self.deprecated_last_timestamp, self.event_time, self.metadata.creation_timestamp
        return (self.series and self.series.last_observed_time) or next(filter(None, times), "")


class _Events(msgspec.Struct):
    items: list[_Event]


_DECODER = msgspec.json.Decoder(Workload)
_EVENTS_DECODER = msgspec.json.Decoder(_Events)


async def found_out(
    client: KubeClient,
    namespace: str,
    owner: Owner,
    refusals: Refusals | None = None,
    *,
    why: bool = True,
) -> OwnerChanged:
    """Find out what an owner makes, what keeps it from that, and who made it.

    An owner that does not exist, or may not be read, is of no CronJob as far as we know: its pods
    are not to wait for that. One that could not be read this time is asked for again. ``refusals``
    paces the lists of Events; without it there is one at each call that needs it, and none where
    nobody asks ``why`` pods are missing.
    """
    group, _, version = owner.api_version.rpartition("/")
    plural = _PLURALS.get((group, owner.kind))
    if plural is None:
        return OwnerChanged(namespace, owner, None)
    try:
        path = resource_path(group, version, plural, namespace, owner.name)
    except ValueError:  # no object can have that name: see ``paths``
        return OwnerChanged(namespace, owner, None)
    try:
        found = _DECODER.decode(await client.get(path))
    except (ApiError, msgspec.DecodeError) as error:
        status = error.status if isinstance(error, ApiError) else HTTPStatus.NOT_FOUND
        first = None if owner.kind == _MPI_JOB and status == HTTPStatus.FORBIDDEN else 0
        cron_job = "" if status in _FINAL else None
        return OwnerChanged(namespace, owner, None, cron_job, first=first)
    return await change_of(client, namespace, owner, found, refusals, why=why)


async def change_of(
    client: KubeClient,
    namespace: str,
    owner: Owner,
    found: Workload,
    refusals: Refusals | None = None,
    *,
    why: bool = True,
) -> OwnerChanged:
    """Return what an owner says of itself, and the API server's words when it has refused pods."""
    own = found.metadata
    made_by = own.owner_references or ()
    cron_job = next((one.name for one in made_by if one.kind == "CronJob"), "")
    astray = of_owner(owner.title, namespace, own.labels or {}, own.annotations or {})
    gathered, remedy = gathered_words(owner.title, own.annotations or {})
    brake = _brake(owner, found.spec)
    change = OwnerChanged(
        namespace,
        owner,
        _makes(owner, found.spec),
        cron_job,
        meant=astray.meant if astray else None,
        remedy=astray.remedy if astray else remedy,
        brake=brake,
        completions=found.spec.completions,
        first=_first(owner, found.spec),
        gathered=gathered,
    )
    refusals = refusals or Refusals(client)
    if brake is not Brake.NONE or not _lacks_pods(change, found.status):
        refusals.forget(namespace, owner)
        return change
    if not why:
        return change
    refused = found.says("ReplicaFailure")
    if refused is None and owner.kind in ("Job", "StatefulSet"):  # these have no such condition
        refused = await refusals.newest(namespace, owner, own.uid)
    before, _, words = (refused or "").partition(_REFUSED)
    return msgspec.structs.replace(change, refused=plain(words or before, _REFUSAL_CHARS_MAX))


def _makes(owner: Owner, spec: Spec) -> int | None:
    """Return how many pods an owner makes at a time; None: that does not say what its gang gets.

    A Job makes ``parallelism`` pods, and never more than ``completions``; both default to 1. Of an
    MPIJob's gang a Job makes the launcher.
    """
    if owner.kind == _MPI_JOB:
        return None
    if owner.kind != "Job":
        return 1 if spec.replicas is None else spec.replicas
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def _first(owner: Owner, spec: Spec) -> int:
    """Return how many workers an MPIJob makes if its launcher is made when they are ready, or 0."""
    if owner.kind != _MPI_JOB or spec.launcher_creation_policy != "WaitForWorkersReady":
        return 0
    workers = (spec.mpi_replica_specs or {}).get("Worker")
    return (workers and workers.replicas) or 0


def _brake(owner: Owner, spec: Spec) -> Brake:
    if owner.kind == "StatefulSet" and spec.pod_management_policy in (None, "", "OrderedReady"):
        return Brake.IN_ORDER
    return Brake.SUSPENDED if owner.kind == "Job" and spec.suspend else Brake.NONE


def _lacks_pods(owner: OwnerChanged, status: _Status) -> bool:
    """Whether an owner has fewer pods than it is to make, by its own status."""
    wanted, has = owner.replicas or 0, status.replicas or 0
    if owner.owner.kind == "Job":
        has = status.active or 0
        if owner.completions is not None:
            wanted = min(wanted, owner.completions - (status.succeeded or 0))
    return has < wanted


class Refusals:
    """Asks why owners were refused pods: for one at a time, and for each ever more seldom.

    Without a clock it asks each time.
    """

    def __init__(self, client: KubeClient, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock
        self._asks = False
        self._known: dict[tuple[str, Owner], tuple[str, float, float]] = {}
        """The words, when to ask again, and the pause before that."""

    def forget(self, namespace: str, owner: Owner) -> None:
        """Forget an owner that lacks no pods."""
        self._known.pop((namespace, owner), None)

    async def newest(self, namespace: str, owner: Owner, uid: str) -> str:
        """Return the newest words of the API server that are known, "" if there are none."""
        if self._clock is None:
            return await self._asked(namespace, uid)
        now_s, key = self._clock.monotonic_s(), (namespace, owner)
        words, due_s, pause_s = self._known.get(key, ("", now_s, PAUSE_S))
        if self._asks or now_s < due_s:
            return words
        self._asks = True
        try:
            words = await self._asked(namespace, uid)
        finally:
            self._asks = False
        if len(self._known) >= _KEPT_MAX:
            self._known.clear()
        self._known[key] = words, now_s + pause_s, min(2 * pause_s, PAUSE_S_MAX)
        return words

    async def _asked(self, namespace: str, uid: str) -> str:
        path = resource_path("events.k8s.io", "v1", "events", namespace)
        selector = f"reason=FailedCreate,regarding.uid={uid}"
        try:
            raw = await self._client.get_list(
                path, {"fieldSelector": selector, "limit": _EVENTS_MAX}
            )
            events = _EVENTS_DECODER.decode(raw).items
        except (ApiError, msgspec.DecodeError):
            return ""
        return max(events, key=lambda one: one.last_time).note if events else ""


class Visits:
    """When to look again at gangs that lack members: nobody tells when an owner is changed."""

    def __init__(self) -> None:
        self._pauses_s: dict[GangKey, float] = {}
        self._planned: set[GangKey] = set()
        self._due: list[tuple[float, GangKey]] = []

    def plan(self, key: GangKey, now_s: float) -> None:
        """Plan the next visit of a gang, after a longer pause than before."""
        if key not in self._planned:
            pause_s = self._pauses_s.get(key, PAUSE_S)
            self._pauses_s[key] = min(2 * pause_s, PAUSE_S_MAX)
            self._planned.add(key)
            heapq.heappush(self._due, (now_s + pause_s, key))

    def forget(self, key: GangKey) -> None:
        """Visit a gang no more."""
        self._pauses_s.pop(key, None)

    def due(self, now_s: float) -> GangKey | None:
        """Return a gang to visit now."""
        while self._due and self._due[0][0] <= now_s:
            _, key = heapq.heappop(self._due)
            self._planned.discard(key)
            if key in self._pauses_s:
                return key
        return None


class OwnerLookup:
    """Looks up each owner at most once a second, and only on request."""

    def __init__(
        self,
        client: KubeClient,
        *,
        on_change: Callable[[OwnerChanged], None],
        clock: Clock,
        note: Note,
    ) -> None:
        self._client = client
        self._refusals = Refusals(client, clock)
        self._note = note
        self._on_change = on_change
        self._clock = clock
        self._asked_at_s: dict[tuple[str, Owner], float] = {}
        self._tasks: dict[tuple[str, Owner], asyncio.Task[None]] = {}

    def ask(self, namespace: str, owner: Owner, *, why: bool = True) -> bool:
        """Look up an owner, and ``why`` it was refused pods, if some are missing.

        Return whether the answer is still to come.
        """
        key = namespace, owner
        if key in self._tasks:
            return True
        now_s = self._clock.monotonic_s()
        if now_s - self._asked_at_s.get(key, -_ASK_AGAIN_S) < _ASK_AGAIN_S:
            return False
        if len(self._tasks) >= _ASKING_MAX:
            return True
        if len(self._asked_at_s) > _KEPT_MAX:
            self._asked_at_s.clear()
        self._asked_at_s[key] = now_s
        self._tasks[key] = asyncio.create_task(self._look_up(namespace, owner, why=why))
        return True

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _look_up(self, namespace: str, owner: Owner, *, why: bool) -> None:
        try:
            found = await found_out(self._client, namespace, owner, self._refusals, why=why)
            self._on_change(found)
        except Exception as error:  # a report waits for the answer
            self._note("report", f"{owner.kind} {namespace}/{owner.name}", error)
            self._on_change(OwnerChanged(namespace, owner, None))
        finally:
            del self._tasks[namespace, owner]
