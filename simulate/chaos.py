"""What happens to the cluster and to the scheduler beside the workload, at times drawn from a seed.

Rivals take room and steal pods; nodes vanish, are cordoned and refuse pods; people delete pods and
edit PodGroups; the API server goes away, replicas are cut off, die, restart, and their wall clocks
jump. ``mend`` undoes what would stand in the way of rest for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from pocketkube.api.binding import bind
from pocketkube.api.writing import Deleting
from pocketkube.errors import ApiError
from pocketkube.objects import Object
from quorate.shell.kube.errors import ApiError as ApiRefusal
from simulate.checkers.records import NEVER, STARTED, PodTruth
from simulate.cluster.network import Link
from simulate.cluster.server import Request
from simulate.cluster.theme import Theme
from simulate.cluster.world import SYSTEM, World
from simulate.fleet import Fleet
from simulate.workload import Job, Workload, priority_class

_REFUSE = "quorate.dev/refuse-pods"
_NODE_PODS = 8
_UNMARKS = 0.2
_STALLS = 0.25
_STALLED_S = 2.5
_SETTLED_S = 4.0
"""By then a leader that lives has written that a gang has started."""


class Chaos:
    """Does what the profile of the world's faults says."""

    def __init__(
        self, world: World, fleet: Fleet, workload: Workload, themes: Sequence[Theme] = ()
    ) -> None:
        self._themes = themes
        self._world = world
        self._fleet = fleet
        self._workload = workload
        self._chance = world.chance("chaos")
        self._sizes: dict[str, int] = {}
        self._rivals = 0
        world.history.on_bound.append(self._ambush)
        world.network.watchers.append(self)

    def build(self) -> None:
        """Make the nodes, and what the themes need besides."""
        for priority in sorted({job.priority for job in self._workload.jobs} - {0}):
            made: Object = {"metadata": {"name": priority_class(priority)}, "value": priority}
            self._world.create("scheduling.k8s.io/v1", "priorityclasses", made)
        for theme in self._themes:
            theme.build()
        few = self._chance.randint(2, 5)
        for number in range(max([few, *(theme.nodes for theme in self._themes)])):
            self._make_node(f"n{number}", self._chance.choice((2, 3, 4, 6)))

    async def run(self) -> None:
        """Do harm until cancelled."""
        profile = self._world.faults.profile
        harms: list[tuple[str, float, Callable[[], None]]] = [
            ("crash", profile.crash_s, self._crash),
            ("restart", profile.restart_s, self._restart),
            ("outage", profile.outage_s, self._outage),
            ("partition", profile.partition_s, self._partition),
            ("clock jump", profile.jump_s, self._jump),
            ("node", profile.node_s, self._hurt_node),
            ("rival", profile.rival_s, self._rival),
            ("steal", profile.steal_s, self._steal),
            ("delete", profile.delete_s, self._delete_pod),
            ("edit", profile.edit_s, self._edit_group),
            ("meddle", profile.meddle_s, self._meddle),
        ]
        for theme in self._themes:
            harms += theme.harms()
        async with asyncio.TaskGroup() as group:
            for name, every_s, harm in harms:
                if every_s:
                    group.create_task(self._repeat(name, every_s, harm))

    async def _repeat(self, name: str, every_s: float, harm: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._chance.expovariate(1 / every_s))
            self._world.faults.counts[name] += 1
            harm()

    def mend(self) -> None:
        """Bring nodes, objects and the network back to a state in which all can come to rest."""
        world = self._world
        world.network.is_out = False
        for replica in self._fleet.replicas:
            replica.link.is_cut_off = False
        for name, cpu in self._sizes.items():
            if world.api.find("nodes", "", name) is None:
                self._make_node(name, cpu)
            self._cordon(name, cordoned=False)
            self._annotate(name, None)
        for theme in self._themes:
            theme.mend()
        for job in self._workload.jobs:
            job.has_object, job.paused_until_s = not job.done, 0.0

    # The scheduler

    def _crash(self) -> None:
        replicas = self._fleet.replicas
        if replicas:
            self._chance.choice(replicas).link.kill()

    def _crash_leader(self) -> None:
        leader = self._fleet.leader()
        if leader is not None:
            leader.link.kill()

    def _restart(self) -> None:
        replicas = self._fleet.replicas
        if replicas:
            self._fleet.stop(self._chance.choice(replicas))

    def _outage(self) -> None:
        network = self._world.network
        network.is_out = True
        network.cut_streams()
        lasts_s = self._chance.choice((0.3, 2.0, 8.0))
        self._world.loop.call_later(lasts_s, lambda: setattr(network, "is_out", False))

    def _partition(self) -> None:
        replicas = self._fleet.replicas
        if not replicas:
            return
        link = self._chance.choice(replicas).link
        link.is_cut_off = True
        self._world.network.cut_streams(link)
        lasts_s = self._chance.choice((1.0, 5.0, 9.0))
        self._world.loop.call_later(lasts_s, lambda: setattr(link, "is_cut_off", False))

    def _jump(self) -> None:
        for replica in self._fleet.replicas:
            replica.clock.ahead_s = self._chance.choice((-2.0, 0.0, 3.0, 3600.0))

    # The cluster

    def _make_node(self, name: str, cpu: int) -> None:
        self._sizes[name] = cpu
        capacity = {"cpu": str(cpu), "memory": "8Gi", "pods": str(_NODE_PODS)}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        node: Object = {"metadata": metadata, "spec": {}, "status": {"capacity": capacity}}
        for theme in self._themes:
            theme.node(node)
        self._world.create("v1", "nodes", node)

    def _hurt_node(self) -> None:
        world = self._world
        name = self._chance.choice(list(self._sizes))
        lasts_s = self._chance.uniform(0.5, 6.0)
        if world.api.find("nodes", "", name) is None:
            return
        match self._chance.choice(("lose", "cordon", "refuse", "refuse")):
            case "lose":
                self._delete("nodes", name, grace_s=None)
                for pod in list(world.history.on_node.get(name, {}).values()):
                    world.loop.call_later(0.3, self._delete, "pods", pod.name, 0)
                cpu = self._chance.choice((self._sizes[name], 3))
                world.loop.call_later(lasts_s, self._bring_back, name, cpu)
            case "cordon":
                self._cordon(name, cordoned=True)
                world.loop.call_later(lasts_s, lambda: self._cordon(name, cordoned=False))
            case _:
                self._annotate(name, "OutOfcpu")
                world.loop.call_later(lasts_s, self._annotate, name, None)

    def _bring_back(self, name: str, cpu: int) -> None:
        if self._world.api.find("nodes", "", name) is None:
            self._make_node(name, cpu)

    def _cordon(self, name: str, *, cordoned: bool) -> None:
        def change(obj: Object) -> None:
            obj["spec"].pop("unschedulable", None)
            if cordoned:
                obj["spec"]["unschedulable"] = True

        self._world.api.amend("nodes", "", name, change)

    def _annotate(self, name: str, refusal: str | None) -> None:
        def change(obj: Object) -> None:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations.pop(_REFUSE, None)
            if refusal:
                annotations[_REFUSE] = refusal

        self._world.api.amend("nodes", "", name, change)

    def _ambush(self, pod: PodTruth) -> None:
        """Something happens to a gang in the middle of its binds."""
        chance, world = self._chance, self._world
        if not world.faults.on or not pod.bound_by.startswith("replica"):
            return
        if chance.random() >= world.faults.profile.ambush:
            return
        job = next((job for job in self._workload.jobs if job.name == pod.gang), None)
        if job is None:
            return
        world.faults.counts["ambush"] += 1
        after_s = chance.choice((0.0, 0.003, 0.1, 1.0))
        kills = chance.random() < world.faults.profile.ambush_kills
        harms = ("delete", "vanish", "room", "edit", "raise")
        if kills and chance.random() < _UNMARKS:
            world.loop.call_later(_SETTLED_S, self._unmark, job)
            return
        if kills and chance.random() < _STALLS:
            self._stall(pod, job)
            return
        if kills:
            world.loop.call_later(min(after_s, 0.003), self._crash_leader)
            after_s = 0.6  # when all that was sent has arrived, and before a successor leads
            harms = ("nothing", "delete", "room", "room", "orphan")
        self._harm(chance.choice(harms), pod, job, after_s)

    def _harm(self, harm: str, pod: PodTruth, job: Job, after_s: float) -> None:
        """Do harm to the gang of a pod that has just been bound."""
        chance, world = self._chance, self._world
        later = world.loop.call_later
        match harm:
            case "delete":
                job.paused_until_s = world.loop.now_s + chance.choice((0.0, 4.0, 20.0))
                others = [one for one in world.history.gangs[job.name].members() if one is not pod]
                if others:
                    later(after_s, self._workload.delete_pod, chance.choice(others).name)
            case "vanish":
                job.paused_until_s = world.loop.now_s + 20.0
                world.faults.busy[job.name] = world.loop.now_s + chance.choice((0.0, 1.5))
                later(min(after_s, 0.1), self._delete, "pods", pod.name, 0)
            case "room":
                self._fill_all(after_s)
            case "edit" if job.api_version:
                later(after_s, self._edit_group, job)
            case "raise" if job.api_version:
                self._raise(job, min(after_s, 0.003))
            case "orphan" if job.api_version:
                job.paused_until_s = world.loop.now_s + chance.choice((4.0, 20.0))
                later(after_s, self._workload.delete_object, job)
            case _:
                pass

    def on_sent(self, link: Link, request: Request, blow: str) -> None:
        """A replica sends a request: min may be raised while the last bind is on its way."""
        if not (request.is_bind and STARTED.encode() in request.body and self._world.faults.on):
            return
        if self._chance.random() >= self._world.faults.profile.ambush:
            return
        name = request.path.split("/")[6].split("-")[0]
        for job in self._workload.jobs:
            if job.name == name and job.api_version:
                self._world.faults.counts["ambush"] += 1
                self._raise(job, 0.0)

    def on_answered(self, link: Link, request: Request, error: ApiRefusal | None) -> None:
        """A replica has its answer."""

    def _raise(self, job: Job, after_s: float) -> None:
        """Min is raised, and no room is left."""
        job.minimum = min(job.size, job.minimum + 1)
        self._world.loop.call_later(after_s, self._amend_min, job)
        self._fill_all(after_s)

    def _stall(self, pod: PodTruth, job: Job) -> None:
        """A gang's binds take so long that its leader dies in the middle, and a while later."""
        job.paused_until_s = self._world.loop.now_s + 20.0
        self._world.faults.busy[job.name] = self._world.loop.now_s + _STALLED_S + 0.5
        members = self._world.history.gangs[job.name].members()
        for name in [one.name for one in members if one is not pod and not one.node][:1]:
            self._world.loop.call_later(0.0, self._workload.delete_pod, name)
        self._fill_all(0.1)
        self._world.loop.call_later(_STALLED_S, self._crash_leader)

    def _unmark(self, job: Job) -> None:
        """The members that say that their gang has started are lost, its leader, and all room."""
        gang = self._world.history.gangs[job.name]
        if not self._world.faults.on or gang.quorate_since == NEVER:
            return
        self._world.faults.counts["unmark"] += 1
        job.paused_until_s = self._world.loop.now_s + 20.0
        for pod in gang.members():
            if pod.marked:
                self._delete("pods", pod.name, grace_s=0)
        self._fill_all(0.0)
        self._crash_leader()

    def _fill_all(self, after_s: float) -> None:
        for name in self._sizes:
            self._world.loop.call_later(after_s, self._fill, name)

    def _fill(self, node: str) -> None:
        """Another scheduler takes all the room of a node, but what we are about to take."""
        pods = self._world.history.on_node.get(node, {}).values()
        used = sum(pod.wants.get("cpu", 0) for pod in pods if pod.holds_room)
        if self._sizes[node] > used:
            self._rival(node, self._sizes[node] - used, stays_s=self._chance.uniform(5.0, 25.0))

    def _rival(self, name: str = "", cpu: int = 0, stays_s: float = 0.0) -> None:
        """Another scheduler places a pod of its own, which goes again after a while."""
        name = name or self._chance.choice(list(self._sizes))
        cpu = cpu or self._chance.choice((1, 2))
        self._rivals += 1
        pod = f"rival-{self._rivals}"
        requests = {"requests": {"cpu": str(cpu)}}
        spec: Object = {
            "schedulerName": "another-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "pause", "resources": requests}],
        }
        self._world.create("v1", "pods", {"metadata": {"name": pod}, "spec": spec})
        self._bind(pod, name)
        gone_s = stays_s or self._chance.choice((self._chance.uniform(1.0, 8.0), 20.0))
        self._world.loop.call_later(gone_s, self._delete, "pods", pod, None)

    def _steal(self) -> None:
        waiting = [pod for pod in self._ours() if not pod.node]
        if waiting:
            self._bind(self._chance.choice(waiting).name, self._chance.choice(list(self._sizes)))

    def _bind(self, pod: str, node: str) -> None:
        binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        if self._world.api.find("nodes", "", node) is not None:
            with contextlib.suppress(ApiError):
                bind(self._world.api, self._world.namespace_of(pod), pod, binding)

    def _delete_pod(self) -> None:
        spares = [theme.spares for theme in self._themes]
        ours = [pod for pod in self._ours() if not any(spare(pod) for spare in spares)]
        if ours:
            self._workload.delete_pod(self._chance.choice(ours).name)

    def _edit_group(self, job: Job | None = None) -> None:
        jobs = [job for job in self._workload.jobs if job.api_version and not job.done]
        if not jobs:
            return
        job = job or self._chance.choice(jobs)
        if self._chance.random() < 0.4 or job.dialect == "native":
            job.has_object = False
            self._workload.delete_object(job)
            back_s = self._chance.uniform(0.1, 5.0)
            self._world.loop.call_later(back_s, lambda: setattr(job, "has_object", not job.done))
            return
        job.minimum = max(1, min(job.size, job.minimum + self._chance.choice((-1, 1))))
        self._amend_min(job)

    def _amend_min(self, job: Job) -> None:
        """Write min into the object of a job; that of native gangs cannot be changed."""
        if job.dialect == "native":
            return

        def change(obj: Object) -> None:
            obj["spec"]["minMember"] = job.minimum

        bucket = self._world.resource(job.api_version, "podgroups").bucket
        self._world.api.amend(bucket, job.namespace, job.object_name, change)

    def _meddle(self) -> None:
        """Somebody else writes what we write too, or what makes our next write a conflict."""
        world, chance = self._world, self._chance

        def annotate(obj: Object) -> None:
            obj["metadata"].setdefault("annotations", {})["simulation/meddled"] = str(world.writes)

        def blur(obj: Object) -> None:
            obj.setdefault("status", {})["phase"] = "Unknown"

        match chance.choice(("pod", "lease", "status")):
            case "pod" if self._ours():
                world.amend_pod(chance.choice(self._ours()).name, annotate)
            case "lease":
                world.api.amend("leases.coordination.k8s.io", SYSTEM, "quorate", annotate)
            case "status":
                jobs = [job for job in self._workload.jobs if job.dialect in ("x-k8s", "sigs")]
                for job in jobs[:1]:
                    bucket = world.resource(job.api_version, "podgroups").bucket
                    world.api.amend(bucket, job.namespace, job.object_name, blur)
            case _:
                pass

    def _ours(self) -> list[PodTruth]:
        pods = self._world.history.by_name.values()
        return [pod for pod in pods if pod.ours and pod.finished == NEVER]

    def _delete(self, plural: str, name: str, grace_s: int | None) -> None:
        resource = self._world.resource("v1", plural)
        how = Deleting(grace_period_s=grace_s)
        namespace = self._world.namespace_of(name) if resource.namespaced else ""
        with contextlib.suppress(ApiError):
            self._world.api.delete(resource, namespace, name, how)
