"""Rules between pods: together in a zone, apart by zone, spread over zones.

In such a run no node changes its zone, so that what was bound can be judged by where it is now.
"""

from __future__ import annotations

from collections import Counter

from pocketkube.objects import Object
from quorate.simulate.checkers.records import GANG_LABEL, NEVER, RULED_LABEL, PodTruth
from quorate.simulate.cluster.theme import Theme
from quorate.simulate.themes.topology import ZONE
from quorate.simulate.workload import Job

_RULES = ("together", "apart", "spread", "")
_ZONES = 3


class Neighbours(Theme):
    """Draws a rule for each job, and zones for nodes."""

    name = "neighbours"
    must_meet = ("bound together", "bound apart", "bound spread")

    def jobs(self, jobs: list[Job]) -> None:
        """Draw the rules; single pods of one job have them too."""
        self._rule = {job.name: self.chance.choice(_RULES) for job in jobs}
        self._zone: dict[str, str] = {}
        for job in jobs:
            job.apart &= not self._rule[job.name]
        self.world.history.on_bound.append(self._on_bound)

    def node(self, node: Object) -> None:
        """Give a node its zone, for good."""
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

    def _on_bound(self, pod: PodTruth) -> None:
        """Where its neighbours are is judged by those of whom its scheduler knew."""
        rule = self._rule.get(pod.gang, "")
        if not rule or pod.bound_late or not pod.bound_by.startswith("replica"):
            return
        self.met(f"bound {rule}")
        gang = self.world.history.gangs[pod.gang]
        if gang.tampered or rule == "spread":
            return
        others = [
            one
            for one in gang.pods.values()
            if one is not pod and one.bound_by == pod.bound_by and one.holds_room
        ]
        zones = Counter(self._zone.get(one.node) for one in others if one.terminating == NEVER)
        here = self._zone.get(pod.node)
        holds = not zones[here] if rule == "apart" else set(zones) <= {here}
        self.world.check(
            f"members that stay {rule} by zone do so",
            holds,
            lambda: f"{pod.name} is bound in {here}, others of {pod.gang} in {dict(zones)}",
        )
