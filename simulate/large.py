"""One large world: 200 nodes, 2,000 gangs that wait, and 199 pods with rules between them.

In: a seed. Out: an outcome as of any run. A leader that has to be beside its workers, who are
spread over zones, comes first; then come more gangs than there is room for, of several priorities,
some of which end, while nodes are lost, pods are deleted and leaders die. A decision takes as long
as its steps stand for. Placements are too many to be tried one by one here: whether all that fits
is placed is asked of a scheduler that has just begun.
"""

from __future__ import annotations

from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from simulate.checkers.records import NEVER, RULED_LABEL, PodTruth
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.cluster.world import World
from simulate.faults import Profile
from simulate.run import Outcome, Run, run
from simulate.themes.topology import ZONE
from simulate.workload import Job

NODES = 200
GANGS = 2000
COUPLED = 199
_ZONES = 4
_STEP_S = 15e-6
_FAULTS_S = 30.0
_ALONE_S_MAX = 20.0
"""The others come by then, even if the coupled gang is not whole: it would never find room."""
_CALM_S_MAX = 600.0
"""Words of so many gangs are told at a bounded pace."""
_ROLE = "simulation/role"
_PROFILE = Profile(
    lost=0.01,
    refused=0.01,
    stream_s=10.0,
    lag_s=0.5,
    crash_s=12.0,
    node_s=3.0,
    delete_s=0.5,
    edit_s=2.0,
    replicas=2,
)


class Crowd(Theme):
    """All of the large world that is not a fault."""

    name = "crowd"
    must_meet = ("the coupled gang is whole", "a decision looked at many gangs")
    nodes = NODES

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._is_whole = False

    def jobs(self, jobs: list[Job]) -> None:
        """Put the crowd in place of the few jobs of other runs."""
        self._others = [self._small(number) for number in range(1, GANGS + 1)]
        jobs[:] = [self._coupled(), *self._others]
        self.world.history.on_bound.append(self._on_bound)

    def _coupled(self) -> Job:
        return Job(
            name="g0",
            dialect="x-k8s",
            size=COUPLED,
            minimum=COUPLED,
            cpu=(2,) + (1,) * (COUPLED - 1),
            arrives_s=0.0,
            runs_s=0.0,
            timeout_s=0,
            gated_s=0.0,
            same_names=True,
            priority=1000,
            is_slow=False,
        )

    def _small(self, number: int) -> Job:
        chance = self.chance
        size = chance.randint(2, 4)
        return Job(
            name=f"g{number}",
            dialect=chance.choice(("coscheduler", "x-k8s", "native", "volcano")),
            size=size,
            minimum=chance.randint(max(1, size - 1), size),
            cpu=(chance.choice((1, 1, 2)),) * size,
            arrives_s=chance.uniform(2.0, 8.0),
            runs_s=chance.choice((0.0, 0.0, chance.uniform(2.0, 10.0))),
            timeout_s=0,
            gated_s=0.0,
            same_names=True,
            priority=chance.choice((0, 0, 5, 100)),
            is_slow=False,
            look_s=4.0,
            paused_until_s=_ALONE_S_MAX,
        )

    def node(self, node: Object) -> None:
        """Give a node its zone by its number."""
        number = int(node["metadata"]["name"][1:])
        node["metadata"]["labels"][ZONE] = f"z{number % _ZONES}"

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Couple the members of the first gang."""
        if job.name != "g0":
            return
        is_leader = metadata["name"] == "g0-0"
        metadata["labels"] |= {RULED_LABEL: "coupled", _ROLE: "leader" if is_leader else "worker"}
        workers = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {_ROLE: "worker"}}}
        if is_leader:
            terms = {"requiredDuringSchedulingIgnoredDuringExecution": [workers]}
            spec["affinity"] = {"podAffinity": terms}
        else:
            rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [workers | rule]

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Let the time pass that a decision takes."""
        self.met(self.must_meet[1], link.steps >= GANGS / 10)
        self.world.loop.now_s += _STEP_S * link.steps

    def spares(self, pod: PodTruth) -> bool:
        """Spare the coupled gang until it has started: while it is alone, all deletions meet it."""
        return pod.gang == "g0" and not self._is_whole

    def _on_bound(self, pod: PodTruth) -> None:
        if pod.gang != "g0" or self.world.history.gangs["g0"].quorate_since == NEVER:
            return
        self.met(self.must_meet[0])
        if not self._is_whole:
            self._is_whole = True
            for job in self._others:
                job.paused_until_s = 0.0


def run_large(seed: int) -> Outcome:
    """Run the large world of a seed: about a minute of one core."""

    def prepare(one: Run) -> None:
        one.world.faults.profile = _PROFILE
        one.faults_s, one.calm_s_max = _FAULTS_S, _CALM_S_MAX

    return run(seed, prepare, themes=(Crowd,))
