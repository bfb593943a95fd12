"""Checks of a run at rest: faults have stopped and nothing changes.

In: a world at rest and the leading replica. Out: problems, by promise. Whether a gang fits is
decided by trying all placements, which small worlds allow.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import msgspec

from pocketkube.errors import ApiError
from quorate.core.model import GangKey
from quorate.core.model.changes import DialectServed, GangChanged, JournalFound
from quorate.core.model.plan import Plan
from quorate.core.scheduler import Scheduler
from quorate.dialects import by_name
from quorate.shell.apis import api_words
from quorate.shell.watch.objects import watched_kinds
from simulate.checkers.history import History
from simulate.checkers.records import NEVER, GangTruth, PodTruth
from simulate.checkers.requests import Checks
from simulate.cluster.world import EPOCH_S, World
from simulate.fleet import Replica, config_of

Problem = tuple[str, str]
Room = tuple[tuple[int, int], ...]
"""Free cpu and pods of each node."""
_TRIED_NODES_MAX = 10
"""With more nodes, not all placements can be tried: a new scheduler decides instead."""
_WORDS = ("message", "lastTransitionTime")


def unrest(world: World, leader: Replica | None, checks: Checks) -> list[Problem]:
    """Return the problems of a world at rest."""
    checks.made["at rest"] += 1
    if leader is None:
        return [("somebody leads", "no replica leads")]
    history = world.history
    problems = _gang_problems(history)
    problems += _telling_problems(history)
    problems += _truth_problems(history, leader)
    return problems or _status_problems(world, leader)


def _gang_problems(history: History) -> list[Problem]:
    """Return gangs that are bound in part, and gangs that wait although they fit."""
    problems = []
    free = _free(history)
    is_promised = any(pod.nominated and not pod.node for pod in history.by_name.values())
    for gang in history.gangs.values():
        if gang.is_partial and not gang.tampered:
            text = f"{gang.name}: {gang.bound} of {gang.min_now} bound"
            problems.append(("no gang stays bound in part", text))
        waiting = [pod for pod in gang.members() if _waits(pod)]
        there = [pod for pod in gang.members() if pod.node and not pod.refused]
        lives = gang.is_alive  # if not, that life of the gang is over
        bound = [pod for pod in there if lives and not pod.past]
        bound += gang.done([pod for pod in there if pod.past or not lives])
        minimum = gang.min_at(NEVER)
        if minimum is None or not waiting or is_promised or len(free) > _TRIED_NODES_MAX:
            continue
        if not all(pod.is_plain and not pod.moved for pod in gang.members()):
            continue  # what a new scheduler would do is asked of these
        # What a kubelet refused may have been needed: then min has to be met again.
        started = gang.quorate_since != NEVER and lives and not gang.tampered
        need = 1 if started else max(1, minimum - len(bound))
        wants = tuple(sorted(pod.wants.get("cpu", 0) for pod in waiting))
        room = _apart(history, gang) if waiting[0].apart else free
        if len(waiting) >= need and fits(wants, need, room):
            text = f"{gang.name}: {need} of {wants} fit on {room}, {len(bound)} are bound"
            problems.append(("a gang that fits is placed", text))
    return problems


def _waits(pod: PodTruth) -> bool:
    return not pod.node and pod.terminating == NEVER and pod.ungated != NEVER


def _apart(history: History, gang: GangTruth) -> Room:
    """Return free room for members with anti-affinity: one pod on each node without one.

    A pod that was relabelled into another gang keeps its anti-affinity to the members of this one.
    """
    there = [pod for pod in history.by_name.values() if pod.holds_room]
    taken = {pod.node for pod in there if gang.name in (pod.gang, pod.apart_from)}
    return tuple((cpu, min(pods, 1)) for cpu, pods in _free(history, taken))


def _free(history: History, without: Collection[str] = ()) -> Room:
    """Return free cpu and pods of each node that takes pods, ``without`` some."""
    found = []
    for name, truth in history.nodes.items():
        version = truth.version_at(NEVER)
        amounts = version.amounts
        if amounts is None or version.cordoned or version.is_tainted or name in without:
            continue
        pods = [pod for pod in history.on_node.get(name, {}).values() if pod.holds_room]
        cpu = amounts.get("cpu", 0) - sum(pod.wants.get("cpu", 0) for pod in pods)
        found.append((cpu, amounts.get("pods", 0) - len(pods)))
    return tuple(sorted(found))


@lru_cache(maxsize=100_000)
def fits(wants: tuple[int, ...], need: int, free: Room) -> bool:
    """Whether ``need`` pods with these cpu requests have room together."""
    if need <= 0:
        return True
    if len(wants) < need:
        return False
    first, rest = wants[0], wants[1:]
    if fits(rest, need, free):
        return True
    for index, (cpu, pods) in enumerate(free):
        if cpu >= first and pods >= 1:
            left = tuple(sorted((*free[:index], (cpu - first, pods - 1), *free[index + 1 :])))
            if fits(rest, need - 1, left):
                return True
    return False


def _telling_problems(history: History) -> list[Problem]:
    """Nothing is lost: every pod of ours has a node, or a reason."""
    return [
        ("every pod is bound or has a reason", f"{pod.name} has neither")
        for pod in history.by_name.values()
        if pod.ours and _waits(pod) and not pod.told
    ]


def _truth_problems(history: History, leader: Replica) -> list[Problem]:
    """The leader knows what is true: which pods there are, and where they are bound."""
    cluster = leader.scheduler.cluster
    true = {pod.uid: pod.node for pod in history.by_name.values()}
    known = {uid: entry.pod.node for uid, entry in cluster.pods.items()}
    wrong = {history.pods[uid].name for uid, _ in true.items() ^ known.items()}
    nodes = {name for name, truth in history.nodes.items() if truth.at(NEVER)[0] is not None}
    wrong |= nodes ^ set(cluster.nodes.rows)
    return [("the leader knows what is true", f"it is wrong about {sorted(wrong)}")] * bool(wrong)


def _status_problems(world: World, leader: Replica) -> list[Problem]:
    """The status of each gang's object is what a scheduler that has just begun would write."""
    fresh, raws = _begun_anew(world, leader)
    now_s = EPOCH_S + world.loop.now_s
    if problems := _left_to_do(world.history, fresh, now_s):
        return problems
    explainer = fresh.explainer(now_s)
    problems = []
    for key, raw in raws.items():
        explanation, dialect = explainer.explain(key), by_name(key.dialect)
        gang = fresh.cluster.gangs.get(key)
        if explanation is None or gang is None or not gang.ours:
            continue
        if dialect is None or dialect.object is None:
            continue
        truth = world.history.gangs.get(world.history.of_key(key))
        if truth is not None and any(pod.moved and pod.node for pod in truth.members()):
            continue  # of which life it is depends on what its scheduler was told first
        view = explainer.view(key, explanation)
        patch = dialect.object.status(view, raw, now_s) if view is not None else None
        if patch is not None and _differs(patch.body, raw):
            text = f"{key}: a new scheduler would write {patch.body.decode()}"
            problems.append(("status follows from live objects", text))
    return problems


def _begun_anew(world: World, leader: Replica) -> tuple[Scheduler, dict[GangKey, bytes]]:
    """Return a scheduler that has just taken over from ``leader``, and the gangs' objects."""
    fresh = Scheduler(config_of(world).policy, api_words())
    fresh.observe([JournalFound(leader.scheduler.journal())])
    raws: dict[GangKey, bytes] = {}
    for kind in watched_kinds(frozenset(config_of(world).policy.scheduler_names)).values():
        resource = kind.resource
        try:
            served = world.registry.resource(resource.group, resource.version, resource.plural)
        except ApiError:
            fresh.observe([DialectServed(kind.dialect, served=False)])
            continue
        for entry in world.store.entries(served.bucket):
            change = kind.changed(entry.raw)
            if isinstance(change, GangChanged):
                raws[change.spec.key] = entry.raw
            fresh.observe([change])
    return fresh, raws


def _left_to_do(history: History, fresh: Scheduler, now_s: float) -> list[Problem]:
    """Return what a new scheduler would do: it takes up what it finds, and places nothing."""
    is_more = True
    while is_more:
        plan = fresh.decide(now_s)
        if problems := _done_by(history, plan):
            return problems
        is_more = fresh.advance.is_behind or (plan.wake_at_s or now_s + 1.0) <= now_s
    return []


def _done_by(history: History, plan: Plan) -> list[Problem]:
    """Return what a plan does that the one who leads has not done, though it could."""
    promise, problems = "a new scheduler finds nothing to do", []
    for gang in (*plan.gangs, *plan.preparing):
        name = history.of_key(gang.key)
        if name in history.gangs and history.gangs[name].tampered:
            continue
        binds = ", ".join(f"{bind.name} to {bind.node}" for bind in gang.binds)
        problems.append((promise, f"it would bind {binds}"))
    problems += [(promise, f"it would evict {one.name}") for one in plan.evictions]
    for one in plan.preemptions:
        victims = ", ".join(victim.name for victim in one.victims)
        problems.append((promise, f"{one.name} would clear {one.node!r} of {victims or 'nobody'}"))
    return problems


def _differs(patch: bytes, raw: bytes) -> bool:
    """Whether a patch would change more than messages, which depend on the moment of writing."""
    wanted = msgspec.json.decode(patch)["status"]
    there = msgspec.json.decode(raw).get("status") or {}
    return any(_plain(value) != _plain(there.get(name)) for name, value in wanted.items())


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {k: _plain(one) for k, one in value.items() if k not in _WORDS}
    return value
