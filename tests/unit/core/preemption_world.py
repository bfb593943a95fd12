"""Nodes that are full, and pods of high priority that get their room from others."""

from quorate.core.model.profile import KUBE_SCHEDULER
from tests.unit.core.world import World, names

NAMES = ("quorate", "kube")


def world(**policy) -> World:
    profiles = (("kube", KUBE_SCHEDULER),)
    return World(scheduler_names=NAMES, profiles=profiles, **policy)


def full(w: World, *pods: str, node="n0", priority=0, cpu=1, **more) -> None:
    """Let pods of 1 cpu run on a node that has just room for them."""
    w.node(node, cpu=len(pods) * cpu)
    for index, name in enumerate(pods):
        started = f"2026-01-01T00:00:{index:02d}Z"
        w.running(name, node, priority=priority, start_time=started, cpu=cpu, **more)


def high(w: World, name="high", *, cpu=1, priority=100, **more):
    return w.pod(name, scheduler="kube", cpu=cpu, priority=priority, **more)


def cleared(w: World, after_s=0.0) -> list[tuple[str, str, list[str]]]:
    """Decide; return each pod that is promised room, the node, and its victims."""
    plan = w.decide(after_s)
    assert w.scheduler.verified(plan) == (plan, [])
    w.settle(plan)
    return [(one.name, one.node, sorted(names(one.victims))) for one in plan.preemptions]
