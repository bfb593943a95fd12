"""All invariants of the core for all objects, at any cost, and those that need all of them."""

from collections.abc import Iterator

from quorate.core.invariants import (
    Invariant,
    Violation,
    check_gang,
    check_node,
    check_pod,
    has_news,
)
from quorate.core.model import GangKey
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler


def check_all(
    scheduler: Scheduler, now_s: float, *, excused: frozenset[str] = frozenset()
) -> list[Violation]:
    """Check all objects, at any cost. ``excused`` as in ``check_node``, by node names."""
    cluster = scheduler.cluster
    found = [v for name in cluster.nodes.rows for v in check_node(cluster, name, name in excused)]
    found += [v for entry in cluster.pods.values() for v in check_pod(cluster, entry)]
    found += [v for gang in cluster.gangs.values() for v in check_gang(scheduler, gang, now_s)]
    found += _check_sums(scheduler)
    return found + list(_check_reasons(scheduler, now_s))


def _check_sums(scheduler: Scheduler) -> Iterator[Violation]:
    cluster = scheduler.cluster
    waiting = sum(gang.waits for gang in cluster.gangs.values())
    if waiting != cluster.waiting:
        text = f"{cluster.waiting} pods are counted as waiting, and {waiting} wait"
        yield Violation(Invariant.GANG_COUNTS, "cluster", text)
    for key, gang in cluster.gangs.items():
        named = gang.spec.priority_class if gang.spec is not None else ""
        if gang.class_priority != (value := cluster.priority_classes.get(named)):
            text = f"its class is counted as {gang.class_priority}, and is {value}"
            yield Violation(Invariant.GANG_COUNTS, str(key), text)
        if gang.spec is None:
            continue  # min is what its newest pods say
        lacks = gang.spec.min_count > max(1, len(gang.members))
        if lacks != (key in cluster.owners.lacking.of(key.namespace)):
            text = (
                "it lacks members, and is not counted so"
                if lacks
                else "it is counted as lacking members"
            )
            yield Violation(Invariant.GANG_COUNTS, str(key), text)
    for key in {reservation.key for reservation in cluster.reservations} - cluster.gangs.keys():
        if not has_news(scheduler, key):
            text = "room is held for it, and it does not exist"
            yield Violation(Invariant.HELD_SLOTS, str(key), text)


def _check_reasons(scheduler: Scheduler, now_s: float) -> Iterator[Violation]:
    explainer = scheduler.explainer(now_s)
    waiting: list[GangKey] = [key for key, gang in scheduler.cluster.gangs.items() if gang.waits]
    for key in waiting:
        said = explainer.explain(key)
        if said is None or said.reason is Reason.NONE or not said.message:
            what = Invariant.WAITS_WITH_REASON
            yield Violation(what, str(key), "it waits, and nothing says why")
