"""Who makes a gang's members, what keeps them from more, and what a person can do about it.

In: owners, with what was found out about them. Out: parts of a message, and its hint. Called by
``explain``, and by the command line with owners that have made no pod yet. A hint never asks for
what is so already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.owners import OwnerFacts, Owners
from quorate.core.model import Owner, policy
from quorate.core.model.changes import Brake
from quorate.core.words.counting import counted

ELSEWHERE = "more members may come from elsewhere"
_SCALABLE = ("Deployment", "StatefulSet", "ReplicaSet")


class Maker(NamedTuple):
    """An owner of pods, and what is known of it. ``owner`` None stands for pods without one."""

    owner: Owner | None
    facts: OwnerFacts | None


class _Known(NamedTuple):
    owner: Owner
    facts: OwnerFacts
    makes: int

    @property
    def is_suspended(self) -> bool:
        return self.facts.brake is Brake.SUSPENDED

    @property
    def is_in_order(self) -> bool:
        return self.facts.brake is Brake.IN_ORDER and self.makes > 1

    @property
    def words(self) -> str:
        title = self.owner.title
        if self.is_suspended:
            return f"{title} is suspended"
        if self.is_in_order:
            return f"{title} makes its {self.makes} pods one after another"
        if self.facts.refused:
            refused = f"the API server refuses the others: {self.facts.refused}"
            return f"{title} makes {self.makes}, and {refused}"
        return f"{title} makes {self.makes}"


def makers_of(gang: GangEntry, owners: Owners) -> list[Maker]:
    """Return the owners of a gang's members."""
    namespace = gang.key.namespace
    return [Maker(one, owners.known.get((namespace, one)) if one else None) for one in gang.owners]


def maker_words(makers: Sequence[Maker]) -> list[str]:
    """Say what each owner makes, or what keeps it from that; nothing if one of them is unknown.

    What quorate would have to know of one and may not read is said with its remedy.
    """
    for owner, facts in makers:
        if owner is not None and facts is not None and facts.first is None:
            return [
                f"{owner.title} may make its launcher only when its workers are ready, which may "
                "not be read: grant quorate get of mpijobs in kubeflow.org, or set "
                "schedulingPolicy.minAvailable to the number of workers"
            ]
    known = _known(makers)
    parts = [one.words for one in known[: policy.OWNERS_NAMED_MAX]]
    if more := known[policy.OWNERS_NAMED_MAX :]:
        makes = counted(len(more), "more owner", "makes", "make")
        parts.append(f"{makes} {sum(one.makes for one in more)}")
    return parts


def maker_hint(namespace: str, makers: Sequence[Maker], exist: int, needed: int) -> str:
    """Return what has to be done so that a gang gets the members that it lacks."""
    known = _known(makers)
    if not known:
        owner = makers[0].owner if len(makers) == 1 else None
        if owner is not None:
            return f"{owner.title} has to make the others, or lower min"
        return f"create the other {needed - exist}, or lower min"
    total = sum(one.makes for one in known)
    steps = [f"resume {one.owner.title} (spec.suspend: false)" for one in known if one.is_suspended]
    ordered = [one.owner.title for one in known if one.is_in_order]
    steps += [f"make {one} anew with podManagementPolicy: Parallel" for one in ordered]
    least = "" if steps else f", or lower min to {total}" if total else ""
    if any(one.facts.refused for one in known):
        least = f", or lower min to {exist}" if exist else ""
        steps.append("let what refuses them allow more")
    if total < needed:
        steps.append(_more(namespace, known, needed - total, needed))
        least += f"; {ELSEWHERE}"
    if not steps:
        return _wait(namespace, known)
    return " and ".join(steps[: policy.OWNERS_NAMED_MAX]) + least


def _known(makers: Iterable[Maker]) -> list[_Known]:
    """Return the owners in the order of their names, those that are held back first.

    Nothing if one of them is unknown: then their sum is.
    """
    found = []
    for owner, facts in makers:
        if owner is None or facts is None or facts.makes is None:
            return []
        found.append(_Known(owner, facts, facts.makes))
    return sorted(found, key=lambda one: (not (one.facts.brake or one.facts.refused), one.owner))


def _more(namespace: str, known: list[_Known], lacking: int, needed: int) -> str:
    """Return how the owners can make so many more."""
    if len(known) > 1:
        return f"create {lacking} more"
    (owner, facts, _) = one = known[0]
    if one.is_in_order:
        return f"replicas: {needed}"
    if owner.kind in _SCALABLE:
        to = f"scale {owner.kind.lower()} {owner.name} --replicas={needed}"
        return f"kubectl -n {namespace} {to}"
    if facts.completions is None or facts.completions >= needed:
        return f"set parallelism of {owner.title} to {needed}"
    return f"make {owner.title} anew with parallelism and completions of {needed}"


def _wait(namespace: str, known: list[_Known]) -> str:
    """Return whom to wait for, where enough pods are to be made and nothing is known to refuse."""
    if len(known) > 1:
        return "wait for them to make the others; kubectl describe says what keeps each from it"
    owner = known[0].owner
    of = f"kubectl -n {namespace} describe {owner.kind.lower()} {owner.name}"
    return f"wait for {owner.title} to make the others; {of} says what keeps it from that"
