"""Mistakes across objects: what a gang lacks may be there, under another name or scheduler.

In: explanations, and a core that knows all pods and gangs. Out: the explanations, where it helps
with a message that names the pods that were meant for the gang, and a hint. The scheduler itself
does not look for them: it would be a search through all pods for each gang that lacks some.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from quorate.cli.asking.owners_elsewhere import Elsewhere
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.model import DEFAULT_SCHEDULER, GangKey, Meant, Pod
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.queue.gate import asked_owners, unanswered_since_s
from quorate.core.scheduler import Scheduler
from quorate.core.words.counting import counted
from quorate.core.words.owner_words import maker_hint, maker_words, makers_of
from quorate.core.words.pod_words import existing, own_name
from quorate.dialects import by_name
from quorate.dialects.near_misses import remedy
from quorate.shell.apis import api_words

_OF_MEMBERS = (Reason.NOT_ENOUGH_MEMBERS, Reason.OWNER_MAKES_TOO_FEW)
_NAMED_MAX = 3


def needs_a_person(gang: GangEntry, cluster: Cluster) -> bool:
    """Whether a gang that names another scheduler needs a person, as far as can be seen.

    No scheduler has said anything of it, or all pods wait for the default scheduler: schedulerName
    was forgotten.
    """
    members = gang.members.values()
    is_of_default = bool(members) and all(
        one.where is Where.FOREIGN and one.pod.scheduler == DEFAULT_SCHEDULER for one in members
    )
    return is_of_default or unanswered_since_s(gang, cluster) is not None


def explained(
    scheduler: Scheduler, found: Iterable[Explanation], elsewhere: Elsewhere | None = None
) -> list[Explanation]:
    """Return the explanations, with the mistakes across objects that they come from.

    ``elsewhere`` are owners that have made no pod yet, by their gang.
    """
    search = _Search(scheduler, elsewhere or {})
    return [search.explained(one) for one in found]


def perhaps_meant(scheduler: Scheduler, keys: Iterable[GangKey]) -> list[GangKey]:
    """Return the pods of no gang whose owners have to be read: they may name one of these gangs."""
    cluster = scheduler.cluster
    lacks = cluster.owners.lacking
    namespaces = {key.namespace for key in keys if key in lacks.of(key.namespace)}
    return [
        key
        for key, gang in cluster.gangs.items()
        if key.is_single and key.namespace in namespaces and asked_owners(gang, cluster)
    ]


class _Said(NamedTuple):
    message: str
    hint: str


class _Search:
    """Finds what was meant for gangs that lack members or their object."""

    def __init__(self, scheduler: Scheduler, to_come: Elsewhere) -> None:
        self._to_come = to_come
        self._gangs = scheduler.cluster.gangs
        self._pods = scheduler.cluster.pods
        self._owners = scheduler.cluster.owners
        self._ours = own_name(scheduler.cluster)
        self._strays: dict[GangKey, list[tuple[str, PodEntry]]] | None = None

    def explained(self, one: Explanation) -> Explanation:
        """Return the explanation, with a mistake if one is found."""
        gang = self._gangs.get(one.key)
        if gang is None or one.key.is_single:
            return one
        said: _Said | None = None
        if one.reason in _OF_MEMBERS:
            said = self._misplaced(one) or self._unmade(one, gang)
            said = said or self._elsewhere(one, gang)
        elif one.reason is Reason.GANG_OBJECT_MISSING:
            said = self._object_elsewhere(one) or self._object_alike(one)
        if said is None:
            return one
        return msgspec.structs.replace(one, message=said.message, hint=said.hint)

    def _misplaced(self, one: Explanation) -> _Said | None:
        """Pods of no gang that name this gang in vain: in a wrong place, or by a wrong key."""
        dialect = by_name(one.key.dialect)
        strays = self._by_gang().get(one.key, [])
        if dialect is None or not strays:
            return None
        words = _names(words for words, _ in strays)
        foreign = [entry for _, entry in strays if not entry.ours]
        names = _names(entry.pod.scheduler for entry in foreign)
        more = f"; schedulerName is {names}" if foreign else ""
        also = f", and schedulerName: {self._ours}" if foreign else ""
        are = counted(len(strays), "pod", "is", "are")
        return _Said(
            f"{_exist(one)}; {are} meant for it: {words}{more}",
            f"use {remedy(dialect, one.key.name)}{also} in the template of "
            f"{_owner([entry for _, entry in strays])}",
        )

    def _unmade(self, one: Explanation, gang: GangEntry) -> _Said | None:
        """Owners that have made no pod of the gang yet."""
        more = self._to_come.get(one.key)
        if not more:
            return None
        makers = [*makers_of(gang, self._owners), *more]
        hint = maker_hint(one.key.namespace, makers, gang.exist, gang.min_count)
        return _Said("; ".join([one.message, *maker_words(more)]), hint)

    def _by_gang(self) -> dict[GangKey, list[tuple[str, PodEntry]]]:
        """Return, by the gang that was meant, the pods of no gang, and where they name it."""
        if self._strays is None:
            self._strays = {}
            for entry in self._pods.values():
                meant = None if entry.pod.finished else self._meant(entry.pod)
                if meant is not None:
                    self._strays.setdefault(meant.gang, []).append((meant.words, entry))
        return self._strays

    def _meant(self, pod: Pod) -> Meant | None:
        """Return the gang that a pod of no gang, or its owner, names in vain."""
        if pod.meant is not None or pod.membership is not None or pod.owner is None:
            return pod.meant
        facts = self._owners.known.get((pod.namespace, pod.owner))
        return facts.meant if facts is not None else None

    def _elsewhere(self, one: Explanation, gang: GangEntry) -> _Said | None:
        """Pods that name this gang, or one that is spelt alike, where no object is of that name."""
        if gang.members:
            return None
        key = one.key
        waiting = [
            k for k, g in self._gangs.items() if not k.is_single and g.members and not g.spec
        ]
        there = [k for k in waiting if k.name == key.name and k.dialect == key.dialect]
        if there:
            place = there[0].namespace
            names = counted(len(self._gangs[there[0]].members), "pod", "names", "name")
            return _Said(
                f"{_exist(one)}; {names} it in namespace {place}, and a gang is of one namespace",
                f"make pods and object in one namespace, {place} or {key.namespace}",
            )
        here = {k.name: k for k in waiting if k[:2] == key[:2]}
        close = difflib.get_close_matches(key.name, sorted(here), n=1)
        if not close:
            return None
        names = counted(len(self._gangs[here[close[0]]].members), "pod", "names", "name")
        return _Said(
            f"{_exist(one)}; {names} {close[0]}, which does not exist: did they mean this one?",
            f"correct the name in the pods' template, or rename {key.name}",
        )

    def _object_elsewhere(self, one: Explanation) -> _Said | None:
        """The gang's object is in another namespace."""
        there = sorted(
            key.namespace
            for key, gang in self._gangs.items()
            if key.name == one.key.name and key.dialect == one.key.dialect and gang.spec
        )
        if not there:
            return None
        return _Said(
            f"{one.message}; there is one in namespace {there[0]}, and a gang is of one namespace",
            f"make pods and object in one namespace, {there[0]} or {one.key.namespace}",
        )

    def _object_alike(self, one: Explanation) -> _Said | None:
        """An object without members is spelt almost as the one that the pods name."""
        names = [
            key.name
            for key, gang in self._gangs.items()
            if key[:2] == one.key[:2] and gang.spec and not gang.members
        ]
        close = difflib.get_close_matches(one.key.name, sorted(names), n=1)
        words = api_words().get(one.key.dialect)
        if not close or words is None:
            return None
        return _Said(
            f"{one.message}; did you mean {close[0]}?",
            f"use {words.member_key}: {close[0]} on the pods, or create {words.kind} "
            f"{one.key.name}",
        )


def _exist(one: Explanation) -> str:
    exist = one.members.exist + one.members.done
    return existing(exist, one.members.needed)


def _names(names: Iterable[str]) -> str:
    most = [name for name, _ in Counter(names).most_common()]
    more = f" and {len(most) - _NAMED_MAX} more" if len(most) > _NAMED_MAX else ""
    return f"{', '.join(most[:_NAMED_MAX])}{more}"


def _owner(entries: Iterable[PodEntry]) -> str:
    pods = [entry.pod for entry in entries]
    owners = {pod.owner.title for pod in pods if pod.owner}
    return owners.pop() if len(owners) == 1 else f"pods such as {min(pod.name for pod in pods)}"
