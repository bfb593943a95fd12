"""Verifies a plan before it is sent; a part that fails is neither sent nor assumed any longer.

In: a plan. Out: the sound part, failed outcomes for
the core of the other parts, and messages. Called by ``scheduler``. The checks (``check.verify``)
share no code with planning. A defect in a check fails only the gang with which it was met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from quorate.core.check.verify import verify_plan, verify_preemption
from quorate.core.cluster.cluster import Cluster
from quorate.core.model import GangKey
from quorate.core.model.changes import BindFailed, BindFailure, Change, PreemptionFailed
from quorate.core.model.plan import GangBinds, Plan, Preemption


class Checks:
    """Checks plans against the current cluster.

    ``contain`` records a defect and the object with which it was met; it returns the incident's id.
    """

    def __init__(
        self, cluster_now: Callable[[], Cluster], contain: Callable[[str, Exception], str]
    ) -> None:
        self._cluster_now = cluster_now
        self._contain = contain

    def verified(self, plan: Plan) -> tuple[Plan, list[Change], list[str]]:
        """Return the sound part of a plan, failed outcomes for the rest, and what is wrong."""
        parts = (*plan.preparing, *plan.gangs)
        problems: list[str] = []
        bad: dict[tuple[GangKey, str], str] = {}
        for gang, wrong in zip(parts, self._verify(parts), strict=True):
            if wrong:
                problems += wrong
                bad.setdefault((gang.key, gang.attempt), wrong[0])
        failed: list[Change] = []
        for gang in parts:  # one bad part fails all parts of an attempt: later ones build on it
            words = bad.get((gang.key, gang.attempt))
            if words is not None:
                failed += binds_failed((gang,), words)
        sound = self._sound_preemptions(plan.preemptions, failed, problems)
        if not problems:
            return plan, failed, problems

        def good(gangs: tuple[GangBinds, ...]) -> tuple[GangBinds, ...]:
            return tuple(gang for gang in gangs if (gang.key, gang.attempt) not in bad)

        left = {"gangs": good(plan.gangs), "preparing": good(plan.preparing), "preemptions": sound}
        return msgspec.structs.replace(plan, **left), failed, problems

    def _verify(self, gangs: Sequence[GangBinds]) -> list[list[str]]:
        """Return what is wrong with each gang's binds. A gang that cannot be checked has failed."""
        try:
            return verify_plan(gangs, self._cluster_now())
        except Exception as error:
            self._contain("a plan", error)
        found: list[list[str]] = []
        for gang in gangs:
            try:
                found += verify_plan((gang,), self._cluster_now())
            except Exception as error:
                incident = self._contain(str(gang.key), error)
                found.append([f"InternalError {incident}: the plan could not be checked"])
        return found

    def _sound_preemptions(
        self, preemptions: Sequence[Preemption], failed: list[Change], problems: list[str]
    ) -> tuple[Preemption, ...]:
        """Return the preemptions that pass; add the others to ``failed`` and ``problems``."""
        sound = []
        for one in preemptions:
            try:
                wrong = verify_preemption(one, self._cluster_now())
            except Exception as error:
                incident = self._contain(str(one.key), error)
                wrong = [f"InternalError {incident}: a preemption could not be checked"]
            if wrong:
                problems += wrong
                failed += preemptions_failed((one,), wrong[0])
            else:
                sound.append(one)
        return tuple(sound)


def failures(plan: Plan, words: str) -> Iterator[Change]:
    """Yield the failed outcomes of all binds and preemptions of a plan that is not sent."""
    yield from binds_failed((*plan.preparing, *plan.gangs), words)
    yield from preemptions_failed(plan.preemptions, words)


def binds_failed(gangs: Iterable[GangBinds], words: str) -> Iterator[BindFailed]:
    """Yield the failed outcomes of binds that are not sent; they end the pods' assumption."""
    for gang in gangs:
        for bind in gang.binds:
            yield BindFailed(bind.uid, bind.node, BindFailure.UNVERIFIED, words)


def preemptions_failed(preemptions: Iterable[Preemption], words: str) -> Iterator[PreemptionFailed]:
    """Yield the failed outcomes of preemptions that are not carried out."""
    for one in preemptions:
        yield PreemptionFailed(one.uid, tuple(victim.uid for victim in one.victims), words)
