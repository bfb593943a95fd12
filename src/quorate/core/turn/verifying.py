"""Plans are checked again before anything is sent; what fails is not sent, and not assumed.

In: a plan, and the order in which its gangs were placed. Out: the sound rest, what the core has to
be told of the others, and messages. Called by ``scheduler``. The checks share no code with
planning (``check.verify``); a defect that is met in them costs the gang that met it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from quorate.core.check.verify import verify_plan
from quorate.core.check.verify_preemption import verify_preemption
from quorate.core.cluster.cluster import Cluster
from quorate.core.model import GangKey
from quorate.core.model.changes import BindFailed, BindFailure, Change, PreemptionFailed
from quorate.core.model.plan import GangBinds, Plan, Preemption


class Checks:
    """Checks plans against the cluster as it is now.

    ``contain`` takes a defect, with what it was met with, and returns the incident's id.
    """

    def __init__(
        self, cluster_now: Callable[[], Cluster], contain: Callable[[str, Exception], str]
    ) -> None:
        self._cluster_now = cluster_now
        self._contain = contain

    def verified(
        self, plan: Plan, places: Mapping[str, int]
    ) -> tuple[Plan, list[Change], list[str]]:
        """Return the sound part of a plan, what to tell the core of the rest, what is wrong.

        ``places`` are the gangs' places in the order of planning, by the first pod's uid: one gang
        may rely on another that was placed before it.
        """
        order = sorted(
            (*plan.preparing, *plan.gangs),
            key=lambda one: places.get(_first_of(one), len(places)),
        )
        problems: list[str] = []
        bad: dict[tuple[GangKey, str], str] = {}
        for gang, wrong in zip(order, self._verify(order), strict=True):
            if wrong:
                problems += wrong
                bad.setdefault((gang.key, gang.attempt), wrong[0])
        failed: list[Change] = []
        for gang in order:  # what was planned on top of a bad part of an attempt is not sent either
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
        """Return what is wrong with each gang's binds. One that cannot be checked is not sent."""
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
        """Return the preemptions without those that fail verification; add what is wrong."""
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


def places_of(gangs: Iterable[GangBinds]) -> dict[str, int]:
    """Return the places of gangs in the order of planning, by the first pod's uid."""
    return {_first_of(gang): place for place, gang in enumerate(gangs)}


def _first_of(gang: GangBinds) -> str:
    """Return the uid of the first pod: it tells two parts of one attempt apart."""
    return gang.binds[0].uid


def failures(plan: Plan, words: str) -> Iterator[Change]:
    """Yield what the core has to be told if nothing of a plan is sent."""
    yield from binds_failed((*plan.preparing, *plan.gangs), words)
    yield from preemptions_failed(plan.preemptions, words)


def binds_failed(gangs: Iterable[GangBinds], words: str) -> Iterator[BindFailed]:
    """Yield the outcomes of binds that are not sent: nothing is assumed of them any more."""
    for gang in gangs:
        for bind in gang.binds:
            yield BindFailed(bind.uid, bind.node, BindFailure.UNVERIFIED, words)


def preemptions_failed(preemptions: Iterable[Preemption], words: str) -> Iterator[PreemptionFailed]:
    """Yield the outcomes of preemptions that are not carried out."""
    for one in preemptions:
        yield PreemptionFailed(one.uid, tuple(victim.uid for victim in one.victims), words)
