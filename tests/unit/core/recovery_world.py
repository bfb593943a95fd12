"""Gangs that a leader which is gone left half bound."""

from tests.unit.core.world import World

GRACE_S = 3.0
JOB = "x-k8s/team/job"
OURS = {"attempt": "dead-1", "attempt_size": 4}


def left_behind(w: World, bound: int, *, pods=4, min_count=4, **of_bound):
    """A gang of which a leader that is gone had bound some; the others wait."""
    gang = w.object("job", min_count)
    for index in range(pods):
        more = {**OURS, **of_bound, "node": "n0", "phase": "Running"} if index < bound else {}
        w.pod(f"job-{index}", gang, **more)
    return gang


def world(cpu: int) -> World:
    w = World(recovery_s=GRACE_S)
    w.node("n0", cpu=cpu)
    return w


def open_in(w: World) -> tuple[str, ...] | None:
    return w.scheduler.journal().open
