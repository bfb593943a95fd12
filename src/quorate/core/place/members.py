"""The waiting members of a gang, by class. Called by ``turn.cycle`` and ``words.diagnosis``."""

from __future__ import annotations

from collections.abc import Container

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.cluster.gangs.tasks import TaskMinima, task_of
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.needs import VolumeNeeds
from quorate.core.cluster.storage.volume_needs import volume_needs_of
from quorate.core.place.greedy import Demand
from quorate.core.place.tasks import numbers_of

Members = dict[PodClass, list[PodEntry]]


def members_of(gang: GangEntry, cluster: Cluster, placed: Container[str] = frozenset()) -> Members:
    """Return the gang's waiting members by class: by spec, labels, claims of both kinds, task.

    Members in ``placed`` (uids) are left out. Classes are sorted by the first name in each, so
    that a bounded search tries the same orders whatever happened to the members before.
    """
    neighbours, storage = cluster.neighbours, cluster.storage
    members: Members = {}
    with_problems: list[tuple[PodEntry, VolumeNeeds]] = []
    tasks = numbers_of(gang)
    for class_id, alike in gang.waiting.items():
        entries = [entry for uid, entry in alike.items() if uid not in placed]
        if not entries:
            continue
        base = cluster.classes.by_id[class_id]
        asks_nothing = not cluster.devices.users
        if neighbours.is_idle and not storage.users and asks_nothing and not tasks:
            members[base] = entries
            continue
        for entry in entries:
            volume_needs = volume_needs_of(entry.pod, storage)
            if volume_needs is not None and volume_needs.problems:
                with_problems.append((entry, volume_needs))
                continue
            matched = neighbours.matched(entry.label_set)
            spread = cluster.alike.constraints(entry.pod.uid)
            device_needs = cluster.device_needs.of(entry.pod)
            task = tasks.get(task_of(entry.pod), 0)
            pod_class = cluster.classes.variant(
                base, matched, spread, volume_needs, device_needs, task
            )
            members.setdefault(pod_class, []).append(entry)
    _add_with_problems(members, with_problems, cluster)
    return members if len(members) == 1 else _by_name(members)


def _by_name(members: Members) -> Members:
    def first(alike: tuple[PodClass, list[PodEntry]]) -> str:
        return min(entry.pod.name for entry in alike[1])

    return dict(sorted(members.items(), key=first))


def _add_with_problems(
    members: Members, found: list[tuple[PodEntry, VolumeNeeds]], cluster: Cluster
) -> None:
    """Merge pods that no node can take for the same problem into one class, that of the first."""
    first: dict[tuple[object, ...], VolumeNeeds] = {}
    for entry, volume_needs in sorted(found, key=lambda one: one[0].pod.name):
        base = entry.pod_class
        matched = cluster.neighbours.matched(entry.label_set)
        device_needs = cluster.device_needs.of(entry.pod)
        kind = (
            base.id,
            matched,
            device_needs,
            *((one.rule, one.kind) for one in volume_needs.problems),
        )
        named = first.setdefault(kind, volume_needs)
        pod_class = cluster.classes.variant(
            base, matched, volume_needs=named, device_needs=device_needs
        )
        members.setdefault(pod_class, []).append(entry)


def demand_of(members: Members, need: int, task_minima: TaskMinima) -> Demand:
    """Return the demand of the waiting members; ``task_minima`` as in ``Demand``."""
    classes = tuple((pod_class, len(entries)) for pod_class, entries in members.items())
    return Demand(classes, need, task_minima if need else ())
