"""What people type to name gangs: ``NAME``, ``NAMESPACE/NAME`` or ``KIND/NAME``, as with kubectl.

In: words, and a core that knows the cluster. Out: keys of gangs, or what to say of a name that
nothing has. Called by ``why`` and ``gangs``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.model import GangKey
from quorate.core.scheduler import Scheduler

GANG, POD = "gang", "pod"
_SHORT = {
    "gangs": GANG,
    "podgroup": GANG,
    "podgroups": GANG,
    "pg": GANG,
    "pgs": GANG,
    "pods": POD,
    "po": POD,
    "deploy": "deployment",
    "sts": "statefulset",
    "rs": "replicaset",
    "ds": "daemonset",
    "cj": "cronjob",
    "vcjob": "job",
    "vcjobs": "job",
    "vj": "job",
}
_WORKLOADS = ("job", "deployment", "statefulset", "replicaset", "daemonset", "cronjob", "jobset")
_ALIKE_MAX = 3


class NotAName(ValueError):  # noqa: N818 - what was typed, not our code
    """What was typed is no name; the text says what to write."""


class Name(NamedTuple):
    """A name as typed. ``before`` is what stands before the slash: a namespace, or a kind."""

    before: str
    name: str

    @classmethod
    def parse(cls, typed: str) -> Name:
        """Return the name. Raises ``NotAName``."""
        before, slash, name = typed.rpartition("/")
        if not name or (slash and not before) or "/" in before:
            raise NotAName(f"{typed!r} is no name: write NAME, NAMESPACE/NAME or KIND/NAME")
        return cls(before, name)

    @property
    def namespace(self) -> str:
        """The namespace that stands before the name, unless that is a kind which is known to us."""
        word = self._word
        return "" if {word, word.removesuffix("s")} & {GANG, POD, *_WORKLOADS} else self.before

    @property
    def _word(self) -> str:
        word = self.before.partition(".")[0].lower()  # job.batch/x, as kubectl prints it
        return _SHORT.get(word, word)

    def kind(self, scheduler: Scheduler) -> str:
        """Return the kind in lower case; ``""`` where none, or a namespace, stands before it."""
        if not self.before:
            return ""
        word = self._word
        singular = word.removesuffix("s")
        known = {GANG, POD, *_WORKLOADS} | _owners(scheduler)
        return next((one for one in (word, singular) if one in known), "")

    def place(self, scheduler: Scheduler, namespace: str) -> str:
        """Return the namespace to look in; ``""`` is all."""
        return self.before if self.before and not self.kind(scheduler) else namespace

    def __str__(self) -> str:
        return f"{self.before}/{self.name}" if self.before else self.name


def find(scheduler: Scheduler, namespace: str, asked: Name) -> list[GangKey]:
    """Return the gangs of that name, else those of its pod, else those of its workload's pods.

    Pods that name the gang in vain are found by its name too, where there is no such gang. A kind
    before the name leaves one of the three. ``namespace`` ``""`` is all.
    """
    kind, where = asked.kind(scheduler), asked.place(scheduler, namespace)
    if kind in ("", GANG) and (found := _gangs(scheduler, where, asked.name)):
        return found
    if kind in ("", POD) and (found := _gangs_of_pods(scheduler, where, asked.name)):
        return found
    if kind in ("", GANG) and (found := _meant(scheduler, where, asked.name)):
        return found
    return _gangs_of_workload(scheduler, where, kind, asked.name) if kind not in (GANG, POD) else []


def _gangs(scheduler: Scheduler, namespace: str, name: str) -> list[GangKey]:
    gangs = scheduler.cluster.gangs
    found = [
        key
        for key in gangs
        if namespace in ("", key.namespace) and key.name == name and not key.is_single
    ]
    return sorted([key for key in found if gangs[key].members] or found)


def _gangs_of_pods(scheduler: Scheduler, namespace: str, name: str) -> list[GangKey]:
    entries = _pods(scheduler, namespace)
    return sorted({one.gang.key for one in entries if one.gang and one.pod.name == name})


def _meant(scheduler: Scheduler, namespace: str, name: str) -> list[GangKey]:
    """Return the pods of ours that name a gang of that name in vain."""
    entries = _pods(scheduler, namespace)
    return sorted(
        one.gang.key
        for one in entries
        if one.gang and one.pod.meant and one.pod.meant.gang.name == name
    )


def _gangs_of_workload(scheduler: Scheduler, namespace: str, kind: str, name: str) -> list[GangKey]:
    """Return the gangs whose object, or one of whose pods, the workload made."""
    gangs = scheduler.cluster.gangs
    made = {
        one.gang.key
        for one in _pods(scheduler, namespace)
        if one.gang and (owner := one.pod.owner) and owner.name == name
        if kind in ("", owner.kind.lower())
    }
    of_objects = {
        key
        for key, gang in gangs.items()
        if gang.spec and (owner := gang.spec.owner) and owner.name == name
        if namespace in ("", key.namespace) and kind in ("", owner.kind.lower())
    }
    return sorted(made | of_objects)


def not_found(scheduler: Scheduler, namespace: str, asked: Iterable[Name]) -> list[str]:
    """Return for each name that nothing has it, and what else may have been meant: a sentence."""
    missing = [one for one in asked if not find(scheduler, namespace, one)]
    return [_not_found(scheduler, namespace, one) for one in missing]


def _not_found(scheduler: Scheduler, namespace: str, asked: Name) -> str:
    kind, where = asked.kind(scheduler), asked.place(scheduler, namespace)
    what = f"{kind} {asked.name}" if kind else asked.name
    foreign = sorted(
        {
            (one.pod.namespace, one.pod.scheduler)
            for one in _foreign(scheduler, where, kind, asked.name)
        }
    )
    if foreign:
        home, other = foreign[0]
        return f"{what} in namespace {home} is not quorate's: schedulerName is {other}."
    place = f"in namespace {where}" if where else "in any namespace"
    said = f"is named {asked.name}"
    nothing = {
        "": f"no gang, pod or workload of ours {said}",
        GANG: f"no gang {said}",
        POD: f"no pod of ours {said}",
    }.get(kind, f"no {kind} with pods of ours {said}")
    return f"{nothing} {place}{_instead(scheduler, where, asked.name)}"


def _foreign(scheduler: Scheduler, namespace: str, kind: str, name: str) -> Iterator[PodEntry]:
    for one in _pods(scheduler, namespace):
        owner = one.pod.owner
        is_it = kind in ("", POD) and one.pod.name == name
        is_its = owner is not None and owner.name == name and kind in ("", owner.kind.lower())
        if not one.ours and (is_it or is_its):
            yield one


def _instead(scheduler: Scheduler, namespace: str, name: str) -> str:
    """Return a suggestion: the same name in another namespace, or a similar name."""
    gangs = [key for key in scheduler.cluster.gangs if not key.is_single]
    elsewhere = sorted({key.namespace for key in gangs if key.name == name} - {namespace})
    if elsewhere and namespace:
        return f", but there is one in namespace {elsewhere[0]} (-n {elsewhere[0]})."
    here = {key.name for key in gangs if namespace in ("", key.namespace)}
    close = difflib.get_close_matches(name, sorted(here), n=_ALIKE_MAX)
    alike = [f"{GANG}/{one}" if one == name else one for one in close]
    return f"; did you mean {' or '.join(alike)}?" if alike else "."


def _pods(scheduler: Scheduler, namespace: str) -> Iterator[PodEntry]:
    for one in scheduler.cluster.pods.values():
        if namespace in ("", one.pod.namespace):
            yield one


def _owners(scheduler: Scheduler) -> set[str]:
    """Return the kinds that have made pods or gangs' objects, in lower case."""
    pods = (one.pod.owner for one in scheduler.cluster.pods.values())
    objects = (gang.spec.owner for gang in scheduler.cluster.gangs.values() if gang.spec)
    return {owner.kind.lower() for owners in (pods, objects) for owner in owners if owner}
