"""Roll gangs back. In: evictions of a plan. Out: nothing; the watch reports the deleted pods.

Called by ``committer``. Evictions go through the API's eviction subresource, which respects
disruption budgets. A refused eviction is retried until the pod is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
import structlog

from quorate.core.model.plan import Eviction
from quorate.shell.kube.errors import ApiError, Conflict, is_gone
from quorate.shell.kube.objects import AnyObject
from quorate.shell.kube.paths import pod_path
from quorate.shell.kube.writer import Background, Backoff, End, Priority, Rule, Writer

log = structlog.get_logger(__name__)

_EVICTION = Rule(
    Priority.EVICTION,
    retry_s_min=0.5,
    retry_s_max=30.0,
    again_after_conflict=True,
    again_after_refusal=True,
    per_s=100.0,
)


_POD = msgspec.json.Decoder(AnyObject)


class Evictor:
    """Evicts pods at a limited rate; retries each until it is gone."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.writes = Background(writer.note)
        self._untried: set[str] = set()
        self.idle = asyncio.Event()
        """Set while every eviction has had an answer. Reports wait for it, but not for an eviction
        that a PodDisruptionBudget refuses."""
        self.idle.set()

    def submit(self, evictions: Iterable[Eviction]) -> None:
        """Start to evict; returns at once."""
        for eviction in evictions:
            self._untried.add(eviction.uid)
            self.idle.clear()
            self.writes.start(self._evict_for_sure(eviction))

    def _tried(self, uid: str) -> None:
        self._untried.discard(uid)
        if not self._untried:
            self.idle.set()

    async def close(self) -> None:
        """Cancel what is under way. The next leader finds the pods as they are."""
        await self.writes.close()

    async def _evict_for_sure(self, eviction: Eviction) -> None:
        """Evict, and begin anew after a defect of ours: the core waits for the pod to go."""
        backoff = Backoff(_EVICTION.retry_s_min, _EVICTION.retry_s_max)
        while True:
            try:
                return await self._evict(eviction)
            except Exception as error:
                self._writer.note("commit", f"pod {eviction.namespace}/{eviction.name}", error)
            finally:
                self._tried(eviction.uid)
            await backoff.wait(None)

    async def _evict(self, eviction: Eviction) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": eviction.name, "namespace": eviction.namespace},
            "deleteOptions": {"preconditions": {"uid": eviction.uid}},
        }
        path = pod_path(eviction.namespace, eviction.name, "eviction")

        async def refused(error: ApiError) -> End | None:
            if isinstance(error, Conflict) and await self._is_going(eviction):
                return End.GONE
            self._tried(eviction.uid)
            log.warning("eviction refused", pod=eviction.name, problem=error.message)
            return None

        await self._writer.write(
            lambda: self._writer.post(path, body), _EVICTION, on_failed=refused
        )

    async def _is_going(self, eviction: Eviction) -> bool:
        """Whether the pod is gone, terminating, or replaced. Else a 409 is worth another try."""
        path = pod_path(eviction.namespace, eviction.name)
        try:
            metadata = _POD.decode(await self._writer.get(path)).metadata
        except ApiError as error:
            return is_gone(error)
        except msgspec.DecodeError:
            return False
        return metadata.uid != eviction.uid or metadata.deletion_timestamp is not None
