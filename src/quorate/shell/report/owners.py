"""How many pods an owner makes. In: owners. Out: ``OwnerChanged``, from one GET for each.

Used by ``reporter`` for messages such as "Deployment pause makes 2". It asks only while a gang
lacks members, so no workload has to be watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from quorate.core.model import Owner
from quorate.core.model.changes import OwnerChanged
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.paths import resource_path
from quorate.shell.process.clock import Clock

_ASK_AGAIN_S = 1.0
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
    spec: _Spec = msgspec.field(default_factory=_Spec)


_DECODER = msgspec.json.Decoder(_Workload)


async def pods_made_by(client: KubeClient, namespace: str, owner: Owner) -> int | None:
    """Return how many pods the owner makes at a time; None when it cannot be told.

    A Job makes ``parallelism`` pods, and never more than ``completions``; both default to 1.
    """
    group, _, version = owner.api_version.rpartition("/")
    plural = _PLURALS.get((group, owner.kind))
    if plural is None:
        return None
    try:
        raw = await client.get(resource_path(group, version, plural, namespace, owner.name))
        spec = _DECODER.decode(raw).spec
    except (ApiError, msgspec.DecodeError):
        return None
    if owner.kind != "Job":
        return 1 if spec.replicas is None else spec.replicas
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


class OwnerLookup:
    """Looks up each owner at most once a second, and only on request."""

    def __init__(
        self, client: KubeClient, *, on_change: Callable[[OwnerChanged], None], clock: Clock
    ) -> None:
        self._client = client
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
            made = await pods_made_by(self._client, namespace, owner)
            self._on_change(OwnerChanged(namespace, owner, made))
        finally:
            del self._tasks[namespace, owner]
