"""Preempt pods. In: preemptions of a plan. Out: failures, as changes; the watch reports successes.

Called by ``committer``. The writes are kube-scheduler's: the nomination, then for each victim the
condition DisruptionTarget and a plain DELETE with the victim's own grace period. Disruption budgets
counted when the victims were chosen; they do not stop a deletion. A dry run before the first write
finds out whether pods may be deleted: operators grant that right only where they want preemption.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from quorate.core.model.changes import PreemptionFailed
from quorate.core.model.plan import Preemption, Victim
from quorate.dialects.common.fields import format_time
from quorate.shell.kube.errors import ApiError, Forbidden
from quorate.shell.kube.paths import pod_path
from quorate.shell.kube.writer import Background, End, Priority, Rule, Send, Writer
from quorate.shell.process.clock import SteadyClock
from quorate.shell.process.contained import words_of

log = structlog.get_logger(__name__)

_PREEMPTION = Rule(Priority.PREEMPTION, tries_max=5, retry_s_min=0.2)
NOT_GRANTED = (
    "quorate may not delete pods, so that it can preempt none: grant it with"
    " quorate manifests --preemption --only rbac | kubectl apply -f -"
)


class Preemptor:
    """Carries out preemptions; each write has a few tries.

    ``on_preempted`` gets each victim whose deletion the API server accepted.
    """

    def __init__(
        self,
        writer: Writer,
        on_preempted: Callable[[Preemption, Victim], None],
        on_change: Callable[[PreemptionFailed], None],
        *,
        clock: SteadyClock,
    ) -> None:
        self._writer = writer
        self._on_change = on_change
        self._on_preempted = on_preempted
        self._clock = clock
        self._writes = Background(writer.note)
        self._may_delete = False
        """Whether a dry run has shown that we may."""

    def submit(self, preemptions: Iterable[Preemption]) -> None:
        """Start to carry them out; returns at once."""
        for preemption in preemptions:
            self._writes.start(self._told(preemption))

    async def close(self) -> None:
        """Cancel what is under way. The next leader finds the pods as they are."""
        await self._writes.close()

    async def _told(self, preemption: Preemption) -> None:
        """Carry out a preemption; what meets a defect of ours has failed, as the core is told."""
        try:
            await self._preempt(preemption)
        except Exception as error:
            about = f"pod {preemption.namespace}/{preemption.name}"
            self._writer.note("commit", about, error)
            self._failed(preemption, words_of(error))

    async def _preempt(self, preemption: Preemption) -> None:
        """Nominate first, so that the next leader can tell for whom victims are terminating.

        Pods that lost their nomination to this one have lost it, even if the rest fails.
        """
        may = not preemption.victims or await self._may(preemption)
        if may:
            await self._nominate(preemption)
        for namespace, name in preemption.displaced:
            await self._tried(partial(self._patch, namespace, name, _nomination("")))
        if not may:
            return
        problems = await asyncio.gather(
            *(self._delete(preemption, victim) for victim in preemption.victims)
        )
        pairs = zip(preemption.victims, problems, strict=True)
        failed = {victim.uid: problem for victim, problem in pairs if problem}
        if failed:
            self._failed(preemption, next(iter(failed.values())), tuple(failed))

    async def _may(self, preemption: Preemption) -> bool:
        """Find out by a dry run whether we may delete pods. If not, tell the core."""
        if self._may_delete or not self._writer.may_write():
            return True
        first = preemption.victims[0]
        path = pod_path(first.namespace, first.name)
        try:
            await self._writer.delete(path, params={"dryRun": "All"})
        except ApiError as error:
            right = {"namespace": first.namespace, "verb": "delete", "resource": "pods"}
            if not (isinstance(error, Forbidden) and await self._writer.lacks_right(**right)):
                return True  # the deletion itself will meet the same error, and report it
            self._failed(preemption, NOT_GRANTED)
            return False
        self._may_delete = True
        return True

    def _failed(self, preemption: Preemption, problem: str, uids: tuple[str, ...] = ()) -> None:
        """Tell the core that these victims, or all of them, were not deleted."""
        log.warning("victims were not deleted", pod=preemption.name, problem=problem)
        uids = uids or tuple(victim.uid for victim in preemption.victims)
        self._on_change(PreemptionFailed(preemption.uid, uids, problem))

    async def _nominate(self, preemption: Preemption) -> None:
        body = _nomination(preemption.node, preemption.uid)
        problem = await self._tried(
            lambda: self._patch(preemption.namespace, preemption.name, body)
        )
        if problem:
            log.warning("a nomination was not written", pod=preemption.name, problem=problem)

    async def _delete(self, preemption: Preemption, victim: Victim) -> str:
        """Mark a victim and delete it; return what was wrong, or "" (also when it is gone)."""
        mark = _disrupted(preemption.scheduler, victim.uid, self._clock.wall_s())
        problem = await self._tried(lambda: self._patch(victim.namespace, victim.name, mark))
        if problem != "":
            return problem or ""
        path = pod_path(victim.namespace, victim.name)
        options = {"preconditions": {"uid": victim.uid}}
        problem = await self._tried(lambda: self._writer.delete(path, options))
        if problem == "":
            who = {"pod": victim.name, "node": preemption.node, "by": preemption.name}
            log.warning("preempted", **who, gang=victim.gang_hit or None)
            self._on_preempted(preemption, victim)
        return problem or ""

    async def _patch(self, namespace: str, name: str, body: object) -> bytes:
        return await self._writer.patch(pod_path(namespace, name, "status"), body, "strategic")

    async def _tried(self, send: Send) -> str | None:
        """Send until it is done ("") or hopeless (the last problem); None: the pod is gone."""
        outcome = await self._writer.write(send, _PREEMPTION)
        # After a conflict it may be another pod, or the same one, which somebody else wrote: the
        # core chooses again, by what the watch says.
        return None if outcome.end is End.GONE else outcome.problem


def _nomination(node: str, uid: str = "") -> dict[str, object]:
    """Return the patch of a waiting pod's status; the pod of another ``uid`` is left alone."""
    body: dict[str, object] = {"status": {"nominatedNodeName": node or None}}
    return {**body, "metadata": {"uid": uid}} if uid else body


def _disrupted(scheduler: str, uid: str, now_s: float) -> dict[str, object]:
    """Return the patch that says why the pod goes: Jobs do not count it as a failure."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": format_time(now_s),
        "lastProbeTime": None,
    }
    return {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
