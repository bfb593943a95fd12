"""Sentences about pods for which no node is looked at. Called by ``explain``."""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.model import Pod
from quorate.core.state.gangs import GangEntry, PodEntry, Where

_GATES_MAX = 5
"""How many names a sentence lists; a pod may have as many gates as fit into an object."""


def single_words(entry: PodEntry) -> str:
    """Say why a pod of no gang waits, before any node is looked at."""
    if entry.where is Where.TERMINATING:
        return "the pod is being deleted"
    if entry.where is Where.ENDED:
        return "the pod has ended without a node"
    gates = entry.pod.gates
    more = f" and {len(gates) - _GATES_MAX} more" if len(gates) > _GATES_MAX else ""
    return f"the pod waits for its scheduling gates: {', '.join(gates[:_GATES_MAX])}{more}"


def disagreement(gang: GangEntry) -> tuple[str, str]:
    """Name two members and the field in which they differ."""
    have_a_say = (Where.WAITING, Where.GATED, Where.INVALID, Where.FOREIGN)
    undecided = [e.pod for e in gang.members.values() if e.where in have_a_say]
    undecided.sort(key=lambda pod: pod.name)  # the same gang, the same sentence
    fields: tuple[tuple[str, Callable[[Pod], object]], ...] = (
        ("spec.priority", lambda pod: pod.priority),
        ("min-available", lambda pod: pod.membership.min_count if pod.membership else None),
        ("spec.schedulerName", lambda pod: pod.scheduler),
    )
    for field, value_of in fields:
        first = undecided[0]
        for pod in undecided:
            if value_of(pod) != value_of(first):
                return (
                    f"pods {first.name} and {pod.name} disagree in {field}: "
                    f"{value_of(first)} and {value_of(pod)}",
                    f"give all members of the gang the same {field}",
                )
    return "members disagree", ""
