"""Rest: all that is under way is done, time passes until nothing is due; then what must hold.

Liveness is asked of a fresh scheduler that is told the same objects and the journal: it must find
nothing to place, to evict, to promise or to take back, now or after the time that it takes to
finish what a dead leader has left.
"""

from __future__ import annotations

from quorate.core.model import Toleration, policy
from quorate.core.model.changes import JournalFound
from quorate.core.model.reasons import Reason
from quorate.core.model.selectors import tolerates
from quorate.core.scheduler import Scheduler
from tests.property.worlds.behind import claims, preparing
from tests.property.worlds.behind.accounts import key_of
from tests.property.worlds.findings import FindingError, expect, without_names

_ROUNDS_MAX = 4000
"""Where a turn has one step, and a search some hundred, it comes to rest after a thousand."""
_IDLE_S = 4 * policy.ASIDE_S_MAX
"""A gang that takes longer to look at than a turn may last is tried again so often, for ever."""
_EXPLAINED_MAX = 3
_CORDON = "node.kubernetes.io/unschedulable"


def come_to_rest(world, chance):
    """Let everything under way succeed, and decide until nothing is planned or due."""
    busy_s = world.now_s
    for _ in range(_ROUNDS_MAX):
        _finish(world, chance)
        plan = world.decide(chance, 0.0)
        if is_empty(plan) and not world.commit.is_busy:
            if plan.wake_at_s is None or world.now_s > busy_s + _IDLE_S:
                return
            world.now_s = max(world.now_s, plan.wake_at_s)
            continue
        busy_s = world.now_s
        if not world.commit.is_busy:
            world.now_s += 0.01
    raise FindingError("it never comes to rest", f"after {_ROUNDS_MAX} decisions")


def _finish(world, chance):
    server, commit = world.server, world.commit
    server.flush()
    while commit.jobs or commit.tasks:
        if commit.jobs:
            commit.answer(0, "ok", chance.random() < 0.5)
        else:
            commit.work(chance, faults=False)
    for claim in preparing.work_of_controllers(server):
        preparing.bind_claim(claim, server)
    for uid in [uid for uid, pod in server.pods.items() if pod.terminating]:
        server.remove_pod(uid)
    claims.tidy(server)
    server.flush()


def is_empty(plan):
    """Whether a plan does nothing."""
    parts = plan.gangs, plan.preparing, plan.undo, plan.evictions, plan.take_backs
    return not any((*parts, plan.preemptions))


def check_rest(world, chance):
    """Check safety, invariants, promises, explanations and liveness.

    What costs most, the sentences, is asked of some gangs alone, and at some rests.
    """
    if chance.random() < world.setting.rest_checks:
        world.check_invariants()
    world.accounts.check_rest()
    check_promises(world)
    check_explanations(world, chance)
    if world.setting.is_exact:
        check_liveness(world)


def check_promises(world):
    """No promise stands for a pod on a node that does not suit it any more."""
    for pod in world.server.pods.values():
        if not pod.nominated or pod.node or pod.scheduler not in world.accounts.ours:
            continue
        node = world.server.nodes.get(pod.nominated)
        whose = "" if world.promised.get(pod.uid) == pod.nominated else "of others "
        kind = f"a promise {whose}stands on a node that does not suit"
        expect(node is None or suits(node, pod), kind, f"pod {pod.name} on node {pod.nominated}")


def suits(node, pod):
    """Whether the node could take the pod if it were empty, by the simplest rules."""
    labels, spec = dict(node.labels), pod.spec
    if not all(labels.get(key) == value for key, value in spec.node_selector):
        return False
    hard = [taint for taint in node.taints if taint.effect != "PreferNoSchedule"]
    if not all(tolerates(spec.tolerations, taint) for taint in hard):
        return False
    cordoned = Toleration(key=_CORDON, operator="Exists", effect="NoSchedule")
    if node.unschedulable and not _tolerates_cordon(spec.tolerations, cordoned):
        return False
    has = dict(node.allocatable)
    return all(amount <= has.get(name, 0) for name, amount in spec.requests if amount)


def _tolerates_cordon(tolerations, cordoned):
    return any(
        one.effect in ("", "NoSchedule")
        and one.key in ("", cordoned.key)
        and (one.operator == "Exists" or one.value == "")
        for one in tolerations
    )


def check_explanations(world, chance):
    """Of each pod of ours that waits it is said why; asked twice, the same is said."""
    ours = world.accounts.ours
    waiting = {
        key_of(pod): None
        for pod in world.server.pods.values()
        if pod.scheduler in ours and not (pod.node or pod.finished or pod.terminating or pod.gates)
    }
    waiting = chance.sample(list(waiting), min(len(waiting), _EXPLAINED_MAX))
    explainer = world.ask("explainer", world.now_s)
    said = {key: world.calls(explainer, "explain", key) for key in waiting}
    world.ask_twin(lambda twin: [twin.explainer(world.now_s).explain(key) for key in waiting])
    for key, one in said.items():
        is_said = one is not None and one.reason is not Reason.NONE and one.message
        expect(is_said, "a gang waits, and nothing says why", str(key))
    if world.setting.expects_defects:
        return  # one of the two answers may be that there was a defect
    again = world.ask("explainer", world.now_s)
    world.ask_twin(lambda twin: [twin.explainer(world.now_s).explain(key) for key in waiting])
    for key, one in said.items():
        same = world.calls(again, "explain", key) == one
        expect(same, "asked twice, another reason is given", str(key))


def check_liveness(world):
    """A fresh scheduler finds nothing to do."""
    fresh = Scheduler(world.setting.policy, identity="fresh")
    fresh.observe([JournalFound(world.newest_journal().passed_on("fresh"))])
    fresh.observe(world.server.changes())
    for after_s in (0.0, world.setting.policy.recovery_s, 100.0):
        plan = fresh.decide(world.now_s + after_s)
        while fresh.advance.is_behind:
            plan = fresh.decide(world.now_s + after_s)
        _, problems = fresh.verified(plan)
        world.check_defects(fresh)
        if problems:
            raise FindingError(
                f"unverified: {without_names(problems[0])[:60]}", f"at rest: {problems[0]}"
            )
        _check_idle(world, plan)


def _check_idle(world, plan):
    for gang in (*plan.gangs, *plan.preparing):
        if gang.key in world.accounts.moved_into:
            continue
        kind = "of no gang" if gang.key.is_single else "of a gang"
        names = ", ".join(f"{bind.name} on {bind.node}" for bind in gang.binds)
        raise FindingError(
            f"missed wake-up {kind}{_after_wake(world, gang.key)}", f"{gang.key}: {names}"
        )
    for eviction in plan.evictions:
        raise FindingError("a successor evicts at rest", eviction.name)
    for one in plan.preemptions:
        kind = "a pod could preempt and sleeps" if one.node else "a promise stands in vain"
        raise FindingError(f"{kind}{_after_wake(world, one.key)}", f"{one.name} on {one.node!r}")
    expect(not plan.take_backs, "devices are not taken back", str(plan.take_backs[:1]))
    expect(not plan.undo, "claims are not let go", str(plan.undo[:1]))


def _after_wake(world, key):
    """Tell whether the live scheduler would do it too, were it woken: else its search differs."""
    queue = getattr(world.scheduler, "queue", None)
    if queue is None or not hasattr(queue, "make_ready"):
        return ""
    queue.make_ready([key])
    plan = world.scheduler.decide(world.now_s)
    done = any(one.key == key for one in (*plan.gangs, *plan.preparing, *plan.preemptions))
    return "" if done else " (woken, the live one does not do it)"
