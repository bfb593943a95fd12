"""How many pods an owner makes, and which CronJob made it. In: owners. Out: ``OwnerChanged``.

Used by ``reporter`` for messages such as "Deployment pause makes 2", to tell the runs of a CronJob
apart, and for pods whose owner may name a gang in vain. It costs one GET for each owner, and is
asked only while a gang lacks members or may have those of several runs, so no workload has to be
watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from quorate.core.model import Meant, Owner
from quorate.core.model.changes import OwnerChanged
from quorate.dialects.near_misses import of_owner
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.objects import Metadata
from quorate.shell.kube.paths import resource_path
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import Note

_ASK_AGAIN_S = 1.0
_FINAL = frozenset({403, 404})
"""HTTP statuses that another request would not change."""
_ASKING_MAX = 500
"""How many requests are under way at a time. Beyond that the caller asks again later."""

_PLURALS = {
    ("apps", "Deployment"): "deployments",
    ("apps", "StatefulSet"): "statefulsets",
    ("apps", "ReplicaSet"): "replicasets",
    ("batch", "Job"): "jobs",
}


class _Spec(msgspec.Struct):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None


class _Workload(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


_DECODER = msgspec.json.Decoder(_Workload)


async def found_out(client: KubeClient, namespace: str, owner: Owner) -> OwnerChanged:
    """Find out what an owner makes, and who made it.

    An owner that does not exist, or may not be read, is of no CronJob as far as we know: its pods
    are not to wait for that. One that could not be read this time is asked for again.
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
        may_pass = isinstance(error, ApiError) and error.status not in _FINAL
        return OwnerChanged(namespace, owner, None, None if may_pass else "")
    made_by = found.metadata.owner_references or ()
    cron_job = next((one.name for one in made_by if one.kind == "CronJob"), "")
    meant, remedy = _meant(namespace, owner, found.metadata)
    return OwnerChanged(
        namespace, owner, _makes(owner, found.spec), cron_job, meant=meant, remedy=remedy
    )


def _meant(namespace: str, owner: Owner, own: Metadata) -> tuple[Meant | None, str]:
    """Return the gang that an owner names where its pods' template should, and what to write."""
    who = f"{owner.kind} {owner.name}"
    return of_owner(who, namespace, own.labels or {}, own.annotations or {}) or (None, "")


def _makes(owner: Owner, spec: _Spec) -> int:
    """Return how many pods an owner makes at a time.

    A Job makes ``parallelism`` pods, and never more than ``completions``; both default to 1.
    """
    if owner.kind != "Job":
        return 1 if spec.replicas is None else spec.replicas
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


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
        self._note = note
        self._on_change = on_change
        self._clock = clock
        self._asked_at_s: dict[tuple[str, Owner], float] = {}
        self._tasks: dict[tuple[str, Owner], asyncio.Task[None]] = {}

    def ask(self, namespace: str, owner: Owner) -> bool:
        """Look up an owner. Return whether the answer is still to come."""
        key = namespace, owner
        if key in self._tasks:
            return True
        now_s = self._clock.monotonic_s()
        if now_s - self._asked_at_s.get(key, -_ASK_AGAIN_S) < _ASK_AGAIN_S:
            return False
        if len(self._tasks) >= _ASKING_MAX:
            return True
        if len(self._asked_at_s) > 10_000:
            self._asked_at_s.clear()
        self._asked_at_s[key] = now_s
        self._tasks[key] = asyncio.create_task(self._look_up(namespace, owner))
        return True

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _look_up(self, namespace: str, owner: Owner) -> None:
        try:
            self._on_change(await found_out(self._client, namespace, owner))
        except Exception as error:  # a report waits for the answer
            self._note("report", f"{owner.kind} {namespace}/{owner.name}", error)
            self._on_change(OwnerChanged(namespace, owner, None))
        finally:
            del self._tasks[namespace, owner]
