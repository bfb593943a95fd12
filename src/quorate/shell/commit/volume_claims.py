"""Have volume claims bound before pods are: the writes of a plan's ``prepare``, and their undoing.

In: plans with unbound claims, and what to undo. Out: ``PrepareFailed`` where a write is refused,
``Undone`` when the writes of a gang have been undone; nothing where a write succeeds, because the
watch reports the claim. Called by ``committer``. The writes of one gang go out in order, so an undo
follows what it undoes. Only the holder of the lease sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import structlog

from quorate.core.model import GangKey
from quorate.core.model.changes import PrepareFailed, Undone
from quorate.core.model.plan import GangBinds, Plan, Prepare, Undo
from quorate.shell.kube.paths import resource_path
from quorate.shell.kube.writer import End, Priority, Rule, Writer
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import contained, words_of

log = structlog.get_logger(__name__)

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_UNDO_S_MAX = 60.0
_CLAIM = Rule(Priority.CLAIM)
_INVALID = 422


class VolumeClaims:
    """Writes to PersistentVolumeClaims and PersistentVolumes, in order for each gang."""

    def __init__(
        self,
        writer: Writer,
        *,
        on_change: Callable[[PrepareFailed | Undone], None],
        clock: Clock,
    ) -> None:
        self._writer = writer
        self._on_change = on_change
        self._clock = clock
        self._last: dict[GangKey, asyncio.Task[None]] = {}

    def carry_out(self, plan: Plan) -> None:
        """Start the writes that come before binds, and the undoing of others; returns at once."""
        for undo in plan.undo:
            log.warning("claims are let go", gang=str(undo.key), claims=len(undo.prepared))
            self._after(undo.key, self._undo_all(undo))
        for gang in plan.preparing:
            log.info("claims first", gang=str(gang.key), pods=len(gang.binds), attempt=gang.attempt)
            self._after(gang.key, self._prepare_all(gang))

    @property
    def is_busy(self) -> bool:
        """Whether a write is under way."""
        return bool(self._last)

    async def close(self) -> None:
        """Cancel what is under way. The next leader finds claims and volumes as they are."""
        tasks = list(self._last.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _after(self, key: GangKey, work: Coroutine[None, None, None]) -> None:
        """Run ``work`` after all earlier work for the gang."""
        before = self._last.get(key)

        async def run() -> None:
            try:
                if before is not None:
                    await asyncio.wait([before])
            except asyncio.CancelledError:
                work.close()
                raise
            await work

        task = self._last[key] = asyncio.create_task(run())
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: GangKey, task: asyncio.Task[None]) -> None:
        if self._last.get(key) is task:
            del self._last[key]
        if not task.cancelled() and task.exception() is not None:
            log.error("preparing claims failed", gang=str(key), exc_info=task.exception())

    async def _prepare_all(self, gang: GangBinds) -> None:
        todo = [one for bind in gang.binds for one in bind.prepare if not one.written]
        await asyncio.gather(*(self._prepare_told(one, gang) for one in todo))

    async def _prepare_told(self, one: Prepare, gang: GangBinds) -> None:
        """Write one object; what meets a defect of ours has failed, as the core is told."""
        try:
            await self._prepare(one, gang)
        except Exception as error:
            self._writer.note("commit", f"claim {one.key}", error)
            self._on_change(PrepareFailed(gang.key, gang.attempt, one.node, words_of(error)))

    async def _prepare(self, one: Prepare, gang: GangBinds) -> None:
        """Write one object. Retries transient errors until the attempt's deadline."""
        path, body = _write_of(one)
        outcome = await self._writer.write(
            lambda: self._writer.patch(path, body, "merge"), _CLAIM, deadline_s=gang.deadline_s
        )
        # An earlier try, whose answer was lost, may have changed it: the watch will tell.
        is_news = outcome.end is End.CHANGED and outcome.tries > 1
        if outcome.end in (End.GONE, End.CHANGED, End.REFUSED) and not is_news:
            what = f"volume {one.volume}" if one.volume else f"claim {one.key}"
            text = f"{what} cannot be written: {outcome.problem}"
            self._on_change(PrepareFailed(gang.key, gang.attempt, one.node, text))

    async def _undo_all(self, undo: Undo) -> None:
        await asyncio.gather(*(self._let_go(one) for one in undo.prepared))
        self._on_change(Undone(undo.key))

    async def _let_go(self, one: Prepare) -> None:
        with contained(self._writer.note, "commit", f"claim {one.key}"):
            await self._take_back(one)

    async def _take_back(self, one: Prepare) -> None:
        """Remove what we wrote, unless it is gone or the claim has been bound by it."""
        path, body = _undo_of(one)
        end, _, _, error = await self._writer.write(
            lambda: self._writer.patch(path, body, "json"),
            _CLAIM,
            deadline_s=self._clock.now_s() + _UNDO_S_MAX,
        )
        # 422: a test of the patch did not hold, so it is not ours.
        if end in (End.CHANGED, End.REFUSED) and error is not None and error.status != _INVALID:
            log.warning("cannot be undone", claim=str(one.key), problem=error.message)


def _claim_path(one: Prepare) -> str:
    return resource_path("", "v1", "persistentvolumeclaims", one.namespace, one.claim)


def _volume_path(one: Prepare) -> str:
    return resource_path("", "v1", "persistentvolumes", name=one.volume)


def _write_of(one: Prepare) -> tuple[str, dict[str, object]]:
    """Return path and body of the write. It fails if the object was replaced or changed."""
    if not one.volume:
        metadata: dict[str, object] = {"uid": one.uid, "annotations": {SELECTED_NODE: one.node}}
        return _claim_path(one), {"metadata": metadata}
    metadata = {"resourceVersion": one.version}
    if one.marks:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": one.namespace,
        "name": one.claim,
        "uid": one.uid,
    }
    return _volume_path(one), {"metadata": metadata, "spec": {"claimRef": claim}}


def _undo_of(one: Prepare) -> tuple[str, list[dict[str, object]]]:
    if not one.volume:
        note = f"/metadata/annotations/{SELECTED_NODE.replace('/', '~1')}"
        return _claim_path(one), [
            {"op": "test", "path": "/metadata/uid", "value": one.uid},
            {"op": "test", "path": note, "value": one.node},
            {"op": "remove", "path": note},
        ]
    note = f"/metadata/annotations/{BOUND_BY_CONTROLLER.replace('/', '~1')}"
    steps: list[dict[str, object]] = [
        {"op": "test", "path": "/spec/claimRef/uid", "value": one.uid},
        {"op": "test", "path": "/status/phase", "value": "Available"},
        {"op": "remove", "path": "/spec/claimRef" if one.marks else "/spec/claimRef/uid"},
    ]
    return _volume_path(one), [*steps, {"op": "remove", "path": note}] if one.marks else steps
