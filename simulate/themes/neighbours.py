"""Rules between pods: together in a zone, apart by zone, spread over zones.

A bind is judged by the zones that nodes had as far as its scheduler had been told: the theme of
topology may relabel them.
"""

from __future__ import annotations

from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from simulate.checkers.records import GANG_LABEL, NEVER, PODS_PATH, RULED_LABEL, PodTruth
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.themes.topology import ZONE
from simulate.workload import Job

_RULES = ("together", "apart", "spread", "")
_ZONES = 3
_NODES_PATH = "/api/v1/nodes"


class Neighbours(Theme):
    """Draws a rule for each job, and zones for nodes."""

    name = "neighbours"
    must_meet = ("bound together", "bound apart", "bound spread")

    def jobs(self, jobs: list[Job]) -> None:
        """Draw the rules; single pods of one job have them too."""
        self._rule = {job.name: self.chance.choice(_RULES) for job in jobs}
        self._zone: dict[str, str] = {}
        self._told: dict[tuple[str, str], tuple[int, int]] = {}
        """Revisions of pods and nodes that a bind was decided by, by replica and uid."""
        self._mixed: set[tuple[str, str]] = set()
        """Binds planned with a pod of another gang: it need not stay; others may be beside it."""
        for job in jobs:
            job.apart &= not self._rule[job.name]
        self.world.history.on_bound.append(self._on_bound)

    def node(self, node: Object) -> None:
        """Give a node its zone; one that is made anew has it again."""
        name = node["metadata"]["name"]
        zone = self._zone.setdefault(name, f"z{len(self._zone) % _ZONES}")
        node["metadata"]["labels"][ZONE] = zone

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Write the job's rule into a pod."""
        rule = self._rule.get(job.name, "")
        if not rule:
            return
        metadata["labels"][RULED_LABEL] = rule
        selector = {"matchLabels": {GANG_LABEL: job.name}}
        term = {"topologyKey": ZONE, "labelSelector": selector}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        match rule:
            case "together":
                spec["affinity"] = {"podAffinity": terms}
            case "apart":
                spec["affinity"] = {"podAntiAffinity": terms}
            case _:
                spec["topologySpreadConstraints"] = [
                    {
                        "maxSkew": 1,
                        "topologyKey": ZONE,
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": selector,
                    }
                ]

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Remember by what was decided."""
        told = link.told.get(PODS_PATH, 0), link.told.get(_NODES_PATH, 0)
        for gang in plan.gangs:
            binds = [(link.name, bind.uid) for bind in gang.binds]
            self._told |= dict.fromkeys(binds, told)
            if any(self.world.history.pods[bind.uid].moved for bind in gang.binds):
                self._mixed.update(binds)

    def _on_bound(self, pod: PodTruth) -> None:
        """Where its neighbours are is judged by those of whom its scheduler knew."""
        rule = self._rule.get(pod.gang, "")
        if not rule or pod.bound_late or not pod.bound_by.startswith("replica"):
            return
        self.met(f"bound {rule}")
        gang = self.world.history.gangs[pod.gang]
        told = self._told.get((pod.bound_by, pod.uid))
        if gang.tampered or rule == "spread" or told is None:
            return
        others = [
            one for one in gang.pods.values() if one is not pod and one.bound_by == pod.bound_by
        ]
        if rule == "apart":
            others = [one for one in others if one.holds_room and one.terminating == NEVER]
        elif (pod.bound_by, pod.uid) in self._mixed:
            return
        else:
            others = [one for one in others if min(one.finished, one.gone) > told[0]]
        pairs = [self._zones(pod, one) for one in others]
        pairs = [(here, there) for here, there in pairs if there]  # else its node is gone
        # After a node was relabelled, members may be in several zones: each of them will do.
        is_met = any(here == there for here, there in pairs)
        self.world.check(
            f"members that stay {rule} by zone do so",
            not is_met if rule == "apart" else is_met or not pairs,
            lambda: f"{pod.name} is bound to {pod.node}, zones of it and others: {pairs}",
        )

    def _zones(self, pod: PodTruth, other: PodTruth) -> tuple[str, str]:
        """Return the zones of two pods as their scheduler knew them when it placed the later."""
        places = [(pod.bound_by, pod.uid), (other.bound_by, other.uid)]
        told = max(self._told[place][1] for place in places if place in self._told)
        nodes = self.world.history.nodes
        found = [nodes[one.node].version_at(told).labels.get(ZONE, "") for one in (pod, other)]
        return found[0], found[1]
