"""Schedulers with one mistake each, made at the door: worlds of one theme tell how it is found."""

from msgspec.structs import replace

from quorate.core.model.changes import NodeChanged, PodGone
from quorate.core.model.plan import Eviction, Plan
from quorate.core.scheduler import Scheduler
from quorate.core.turn.defects import Incident


class Mistaken(Scheduler):
    """Decides well, then spoils the plan. ``found`` is how the finding has to begin."""

    theme = "gangs"
    found: tuple[str, ...] = ()

    def decide(self, now_s):
        return self.spoilt(super().decide(now_s))

    def spoilt(self, plan):
        return plan

    def bound(self):
        """Return pods of gangs that have a node."""
        pods = [entry.pod for entry in self.cluster.pods.values()]
        return [pod for pod in pods if pod.node and pod.membership is not None]


class SendsPart(Mistaken):
    """Leaves out the last bind of a gang."""

    found = ("a gang starts in part", "unverified", "it never comes to rest", "a bind has no")

    def spoilt(self, plan):
        return replace(plan, gangs=tuple(replace(g, binds=g.binds[:-1]) for g in plan.gangs))


class FillsOneNode(Mistaken):
    """Sends all pods of a plan to one node."""

    found = ("a node is over", "two pods have one host port")

    def spoilt(self, plan):
        nodes = [bind.node for gang in plan.gangs for bind in gang.binds]
        gangs = [
            replace(gang, binds=tuple(replace(bind, node=nodes[0]) for bind in gang.binds))
            for gang in plan.gangs
        ]
        return replace(plan, gangs=tuple(gangs))

    def verified(self, plan):
        return plan, []


class SendsTwice(Mistaken):
    """Sends the newest binds again."""

    found = ("a pod is bound that", "a gang starts in part")
    sent = ()

    def spoilt(self, plan):
        before, self.sent = self.sent, plan.gangs or self.sent
        return replace(plan, gangs=(*plan.gangs, *before))

    def verified(self, plan):
        return plan, []


class TearsDown(Mistaken):
    """Evicts a member of a gang that has started."""

    found = ("a started gang is torn down",)

    def spoilt(self, plan):
        own = [p for p in self.bound() if p.started and not (p.finished or p.terminating)]
        return replace(plan, evictions=tuple(map(eviction, own[:1])))


class EvictsMoved(Mistaken):
    """Evicts a pod that bears another gang's label by now, or that others bound."""

    theme = "moved"
    found = ("a relabelled pod is evicted", "a pod is evicted that others bound")

    def spoilt(self, plan):
        moved = [
            p for p in self.bound() if p.bound_for and p.membership.key.name not in p.bound_for
        ]
        return replace(plan, evictions=tuple(map(eviction, moved[:1])))


def eviction(pod):
    return Eviction(pod.uid, pod.namespace, pod.name, pod.membership.key, "a mistake")


class HearsNoGrowth(Mistaken):
    """Does not hear of nodes that it knows, nor of pods that are gone."""

    theme = "full"
    found = ("missed wake-up", "a pod could preempt", "a promise")

    def observe(self, changes):
        known = self.cluster.nodes.rows
        super().observe(
            change
            for change in changes
            if not isinstance(change, PodGone)
            and not (isinstance(change, NodeChanged) and change.node.name in known)
        )


class KeepsPromises(Mistaken):
    """Does not take promises back."""

    theme = "kube nodes"
    found = ("a promise stands", "missed wake-up", "a pod could preempt")

    def spoilt(self, plan):
        return replace(plan, preemptions=tuple(one for one in plan.preemptions if one.node))


class KeepsDevices(Mistaken):
    """Does not take devices back that a waiting pod cannot use."""

    theme = "devices"
    found = ("devices are not taken back", "missed wake-up")

    def spoilt(self, plan):
        return replace(plan, take_backs=())


class SaysNothing(Mistaken):
    """Explains nothing."""

    found = ("a gang waits, and nothing says why",)

    def explainer(self, now_s):
        return Mute()


class Mute:
    def explain(self, key):
        return None


class NeverRests(Mistaken):
    """Wants to be asked again at once."""

    found = ("it never comes to rest",)

    def spoilt(self, plan):
        return replace(plan, wake_at_s=0.0)


class DecidesNothing(Mistaken):
    """Sleeps from its third decision on."""

    found = ("missed wake-up", "a pod could preempt", "invariant pod-in-one-place")
    decided = 0

    def decide(self, now_s):
        self.decided += 1
        return super().decide(now_s) if self.decided < 3 else Plan()


class DoesNotVerify(Mistaken):
    """Finds something wrong with each plan."""

    found = ("unverified",)

    def verified(self, plan):
        return plan, ["it is wrong"] if plan.gangs else []


class HasDefects(Mistaken):
    """Meets defects, and contains them."""

    found = ("ValueError: no in f",)

    def incidents(self):
        told = {"stage": "decide", "about": "x", "error": "ValueError: no", "trace": "f:1"}
        return [Incident(id="d1", **told)]


MISTAKES = Mistaken.__subclasses__()
