"""Messages about pods that are held before any node is examined. Called by ``explain``."""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster.gangs.gangs import EXISTING, GangEntry, PodEntry, Where
from quorate.core.model import Pod, policy


def single_words(entry: PodEntry) -> str:
    """Say why a pod of no gang is held before any node is examined."""
    if entry.where is Where.TERMINATING:
        return "the pod is being deleted"
    if entry.where is Where.ENDED:
        return "the pod has ended without a node"
    gates = entry.pod.gates
    named = gates[: policy.GATES_NAMED_MAX]
    more = f" and {len(gates) - len(named)} more" if len(gates) > len(named) else ""
    return f"the pod waits for its scheduling gates: {', '.join(named)}{more}"


def disagreement(gang: GangEntry, min_key: str) -> tuple[str, str]:
    """Name two members and the field in which they differ; ``min_key`` is the pods' key of min."""
    have_a_say = (Where.WAITING, Where.GATED, Where.INVALID, Where.FOREIGN)
    undecided = [e.pod for e in gang.members.values() if e.where in have_a_say]
    undecided.sort(key=lambda pod: pod.name)  # the same gang, the same message
    fields: tuple[tuple[str, Callable[[Pod], object]], ...] = (
        ("spec.priority", lambda pod: pod.priority),
        (min_key or "min", lambda pod: pod.membership.min_count if pod.membership else None),
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


def exist_words(gang: GangEntry) -> list[str]:
    """Say how many members there are of those that min asks for."""
    done = gang.runs.done
    words = [f"{gang.exist + done} of {gang.stated_min} members exist"]
    if done:
        words.append(f"{done} of them {'has' if done == 1 else 'have'} succeeded")
    return words


def task_words(gang: GangEntry) -> tuple[list[str], str]:
    """Return the tasks with too few members, and the hint; empty if all have enough."""
    missing = gang.lacking(EXISTING)
    least = dict(gang.spec.min_by_task) if gang.spec is not None else {}
    parts = [f"task {_shown(t)} has {least[t] - n} of {least[t]}" for t, n in missing.items()]
    more = len(parts) - policy.TASKS_NAMED_MAX
    wanted = " and ".join(
        f"{n} of task {_shown(t)}" for t, n in list(missing.items())[: policy.TASKS_NAMED_MAX]
    )
    words = parts[: policy.TASKS_NAMED_MAX] + ([f"so have {more} more tasks"] if more > 0 else [])
    return words, f"create {wanted}, or lower spec.minTaskMember" if missing else ""


def priority_words(gang: GangEntry) -> str:
    """Warn of an object's priority class that a member lacks: it does not order the queue then."""
    wanted = gang.spec.priority_class if gang.spec is not None else ""
    pods = [entry.pod for entry in gang.members.values()] if wanted else []
    others = [pod for pod in pods if pod.priority_class != wanted]
    if not others:
        return ""
    pod = min(others, key=lambda pod: pod.name)
    has = f'has "{_shown(pod.priority_class)}"' if pod.priority_class else "has none"
    return (
        f'spec.priorityClassName is "{_shown(wanted)}" and pod {pod.name} {has}: the priority of '
        "the pods counts; give them that priorityClassName"
    )


def _shown(name: str) -> str:
    return name if len(name) <= policy.NAME_CHARS_MAX else f"{name[: policy.NAME_CHARS_MAX]}..."
