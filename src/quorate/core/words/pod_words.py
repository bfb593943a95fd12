"""Messages about pods that are held before any node is examined. Called by ``explain``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import EXISTING, GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.owners import Owners
from quorate.core.model import DEFAULT_SCHEDULER, Owner, Pod, policy
from quorate.core.model.quantity import format_amount
from quorate.core.model.reasons import Reason
from quorate.core.place.min_resources import Short
from quorate.core.queue.gate import first_invalid, said_by_owner, unanswered_since_s
from quorate.core.words.counting import counted


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


def bound_by_another(entry: PodEntry) -> str:
    """Return a warning about a pod of ours that another scheduler bound; "" if none did."""
    if not entry.elsewhere:
        return ""
    pod, node = entry.pod, entry.pod.node or entry.node
    return (
        f"another scheduler bound pod {pod.name} to node {node}: only one may act for "
        f"schedulerName {pod.scheduler}"
    )


def elsewhere_words(gang: GangEntry, cluster: Cluster) -> tuple[str, str]:
    """Say whose word a gang waits for that is not ours, and whether that one has said anything."""
    others = [one.pod for one in gang.members.values() if one.where is Where.FOREIGN]
    names = sorted({pod.scheduler for pod in others})
    if others:
        name, more = shown_name(names[0]), " or another" * (len(names) > 1)
        words = f"{counted(len(others), 'pod', 'has', 'have')} schedulerName {name}{more}"
    else:
        name = gang.spec.unanswered_by if gang.spec is not None else ""
        words = f"its pods are made when a scheduler named {name} admits it"
    words += "; quorate does not own that name"
    if unanswered_since_s(gang, cluster) is not None:
        words += ", and no scheduler that does has said anything"
    ways = [f"set schedulerName: {own_name(cluster)} in {_templates(gang)}"] if others else []
    if name != DEFAULT_SCHEDULER:
        ways.append(f"add {name} to quorate's schedulerNames if no other scheduler has that name")
    return words, ", or ".join(ways)


def own_name(cluster: Cluster) -> str:
    """Return the scheduler name by which quorate speaks of itself: its own, if it owns that."""
    first = policy.DEFAULT_SCHEDULER_NAMES[0]
    return first if first in cluster.scheduler_names else min(cluster.scheduler_names)


def _templates(gang: GangEntry) -> str:
    titles = {owner.title for owner in gang.owners if owner}
    return f"the template of {titles.pop()}" if len(titles) == 1 else "their templates"


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


def existing(exist: int, needed: int) -> str:
    """Say how many there are: ``2 of 4 members exist``, ``0 of 1 member exists``."""
    return f"{exist} of {counted(needed, 'member', 'exists', 'exist')}"


def exist_words(gang: GangEntry) -> list[str]:
    """Say how many members there are of those that min asks for."""
    done = gang.runs.done
    words = [existing(gang.exist + done, gang.stated_min)]
    if done:
        words.append(f"{done} of them {'has' if done == 1 else 'have'} succeeded")
    return words


def held_pod_words(gang: GangEntry, cluster: Cluster) -> tuple[str, str]:
    """Say what holds pods back: a defect of one of them, what their owner says, or another run."""
    if (pod := first_invalid(gang)) is not None:
        words = pod.defect if gang.key.is_single else f"pod {pod.name}: {pod.defect}"
        return words, "fix that pod's template"
    if not gang.key.is_single:
        return next_run_words(gang, cluster.owners)
    facts = said_by_owner(gang, cluster)
    owner = next((one for one in gang.owners if one), None)
    if facts is None or owner is None:
        return "", ""
    if facts.meant is not None:
        return f"{facts.meant.words}; {facts.remedy}", f"fix the template of {owner.title}"
    if facts.gathered:
        return facts.gathered, facts.remedy
    asked = f"it is asked whether {owner.title} names a gang"
    lacks = min(cluster.owners.lacking.of(gang.key.namespace), default=None)
    return f"{asked}: {lacks.name} lacks members" if lacks is not None else asked, ""


def next_run_words(gang: GangEntry, owners: Owners) -> tuple[str, str]:
    """Say why members of a Job wait for those of another, and what can be done about it."""
    waits, ahead = gang.runs.order
    these, those = _named(waits), _named(ahead)
    cron_job_of = partial(owners.cron_job_of, gang.key.namespace)
    made_by = [cron_job_of(job) or "" for job in waits]
    if not all(made_by) or any(cron_job_of(job) is None for job in ahead):
        return f"{these} may be a next run of {those}: it is asked which CronJob made them", ""
    return (
        f"{these} {'is' if len(waits) == 1 else 'are'} of CronJob {min(made_by)}, and {those}, an "
        "earlier run of it, is this gang until it has ended",
        "give each run a gang of its own, or set concurrencyPolicy: Forbid in the CronJob",
    )


def _named(jobs: Collection[Owner]) -> str:
    """Name Jobs."""
    first, *others = sorted(job.name for job in jobs) or [""]
    more = f" and {len(others)} more" if others else ""
    return f"Job{'s' * bool(others)} {first}{more}"


def settled_words(gang: GangEntry) -> tuple[Reason, str]:
    """Say how a gang stands of which nothing waits: it starts, or has started."""
    if gang.assumed:
        members = counted(gang.exist, "member", "is", "are")
        return Reason.STARTING, f"{gang.stays} of {members} bound"
    if gang.key.is_single:
        return Reason.NONE, "the pod has its node"
    if gang.bound == 1:
        return Reason.NONE, "the one member that exists has a node"
    return Reason.NONE, f"all {gang.bound} members that exist have a node"


def short_words(short: Mapping[str, Short], owner: Owner | None) -> tuple[str, str]:
    """Say what minResources ask for beyond the room there is.

    What an owner has made of itself, its operator writes again.
    """
    where = " where its members may run"
    lacks = " and ".join(
        f"{format_amount(name, one.wanted)} {name} "
        f"({format_amount(name, one.free)} free{where * one.is_elsewhere})"
        for name, one in sorted(short.items())
    )
    lower = f"have {owner.title} ask for less" if owner else "lower spec.minResources"
    return f"minResources ask for {lacks}", f"free or add that room, or {lower}"


def task_words(gang: GangEntry) -> tuple[list[str], str]:
    """Return the tasks with too few members, and the hint; empty if all have enough."""
    missing = gang.lacking(EXISTING)
    least = dict(gang.spec.min_by_task) if gang.spec is not None else {}
    parts = [f"task {shown_name(t)} has {least[t] - n} of {least[t]}" for t, n in missing.items()]
    more = len(parts) - policy.TASKS_NAMED_MAX
    wanted = " and ".join(
        f"{n} of task {shown_name(t)}" for t, n in list(missing.items())[: policy.TASKS_NAMED_MAX]
    )
    words = parts[: policy.TASKS_NAMED_MAX] + ([f"so have {more} more tasks"] if more > 0 else [])
    return words, f"create {wanted}, or lower spec.minTaskMember" if missing else ""


def shown_name(name: str) -> str:
    """Return a name that users have written, cut where it is long."""
    return name if len(name) <= policy.NAME_CHARS_MAX else f"{name[: policy.NAME_CHARS_MAX]}..."
