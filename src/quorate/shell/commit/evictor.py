"""Roll gangs back. In: evictions of a plan. Out: nothing; the pods' deletion returns by the watch.

Called by ``shell.app``. Evictions go through the API's eviction subresource, so that disruption
budgets are heard; a refusal is retried until the pod is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import msgspec
import structlog

from quorate.core.plan.plan import Eviction
from quorate.shell.commit.trying import Backoff
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, Conflict, NotFound
from quorate.shell.kube.paths import pod_path

log = structlog.get_logger(__name__)

_RETRY_S_MIN = 0.5
_RETRY_S_MAX = 30.0


class _Metadata(msgspec.Struct):
    uid: str = ""
    deletionTimestamp: str | None = None  # noqa: N815 - the API's own name


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_POD = msgspec.json.Decoder(_Pod)


class Evictor:
    """Evicts pods, a few at a time, each until it is gone."""

    def __init__(self, client: KubeClient, *, may_evict: Callable[[], bool]) -> None:
        self._client = client
        self._may_evict = may_evict
        self._tasks: set[asyncio.Task[None]] = set()
        self._untried: set[str] = set()
        self.idle = asyncio.Event()
        """Set while every eviction has had an answer: others who write wait for it, but not for
        one that a PodDisruptionBudget holds up."""
        self.idle.set()

    def submit(self, evictions: Iterable[Eviction]) -> None:
        """Start to evict; returns at once."""
        for eviction in evictions:
            self._untried.add(eviction.uid)
            self.idle.clear()
            task = asyncio.create_task(self._evict(eviction))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, eviction.uid))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._tried(uid)

    def _tried(self, uid: str) -> None:
        self._untried.discard(uid)
        if not self._untried:
            self.idle.set()

    async def close(self) -> None:
        """Give up what is under way; a successor finds the pods as they are."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _evict(self, eviction: Eviction) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": eviction.name, "namespace": eviction.namespace},
            "deleteOptions": {"preconditions": {"uid": eviction.uid}},
        }
        path = pod_path(eviction.namespace, eviction.name, "eviction")
        backoff = Backoff(_RETRY_S_MIN, _RETRY_S_MAX)
        while self._may_evict():
            try:
                await self._client.post(path, body, may_send=self._may_evict)
            except NotFound:
                return
            except ApiError as error:
                if isinstance(error, Conflict) and await self._is_going(eviction):
                    return
                self._tried(eviction.uid)
                log.warning("eviction refused", pod=eviction.name, problem=error.message)
                await backoff.wait(error)
            else:
                return

    async def _is_going(self, eviction: Eviction) -> bool:
        """Whether the pod is gone, going, or another one by now; else 409 is worth another try."""
        path = pod_path(eviction.namespace, eviction.name)
        try:
            metadata = _POD.decode(await self._client.get(path)).metadata
        except NotFound:
            return True
        except (ApiError, msgspec.DecodeError):
            return False
        return metadata.uid != eviction.uid or metadata.deletionTimestamp is not None
