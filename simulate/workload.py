"""Jobs and their pods: what users and their controllers do.

In: a seed. Out: gangs in several dialects whose pods are made one after the other, run, end, fail,
and are made anew under the same names, as StatefulSets and Jobs do. A job that has succeeded is
deleted after a while, with its object.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pocketkube.api.writing import Deleting
from pocketkube.errors import ApiError
from pocketkube.objects import Object
from simulate.checkers.records import GANG_LABEL, MIN_LABEL, NEVER, PodTruth
from simulate.cluster.world import NAMESPACE, World
from simulate.fleet import ATTEMPT_S

_DIALECTS = ("coscheduler", "x-k8s", "x-k8s", "sigs", "native", "single")
_GROUPS = {
    "x-k8s": ("scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"),
    "sigs": ("scheduling.sigs.k8s.io/v1alpha1", "pod-group.scheduling.sigs.k8s.io"),
    "native": ("scheduling.k8s.io/v1alpha2", ""),
    "volcano": ("scheduling.volcano.sh/v1beta1", ""),
}
_NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
_FINALIZER = "simulation/tally"
_OWNER_API = "simulation.quorate.dev/v1"
"""Of the controllers, which cannot say how many pods they make."""
_LOOK_S = 0.5
_TTL_S = 2.0
_RULES = 0.3


@dataclass(slots=True)
class Job:
    """What one gang asks for; ``runs_s`` 0 is for ever."""

    name: str
    dialect: str
    size: int
    minimum: int
    cpu: tuple[int, ...]  # of each member
    arrives_s: float
    runs_s: float
    timeout_s: int  # 0: the scheduler's own
    gated_s: float
    same_names: bool
    apart: bool = False  # each member on a node of its own
    done: bool = False
    has_object: bool = True  # whether its PodGroup shall exist
    made: int = 0
    lingers_s: float = 0.0  # how long a finalizer keeps its deleted pods
    look_s: float = _LOOK_S  # how often its controller looks
    is_slow: bool = True  # its controller takes its time between two pods
    paused_until_s: float = 0.0  # its controller does nothing before
    namespace: str = NAMESPACE
    group: str = ""  # the name of its object, if that is another one
    priority: int = 0
    scheduler: str = "quorate"
    keeps_failed: bool = False  # pods that failed stay while new ones are made

    @property
    def api_version(self) -> str:
        """Return that of its object; empty when it has none."""
        return _GROUPS[self.dialect][0] if self.dialect in _GROUPS else ""

    @property
    def object_name(self) -> str:
        """Return the name by which its pods name it."""
        return self.group or self.name


def jobs_of(chance: random.Random) -> list[Job]:
    """Draw the jobs of a run."""
    return [_job(f"g{number}", chance) for number in range(chance.randint(4, 8))]


def set_apart(jobs: list[Job], chance: random.Random) -> None:
    """Draw whose members must not meet on a node; in most runs nobody's."""
    if chance.random() < _RULES:
        for job in jobs:
            job.apart = chance.random() < 0.5


def _job(name: str, chance: random.Random) -> Job:
    dialect = chance.choice(_DIALECTS)
    size = chance.randint(2, 5)
    uneven = chance.random() < 0.25
    cpu = chance.choice((1, 1, 2))
    return Job(
        name=name,
        dialect=dialect,
        size=size,
        minimum=1 if dialect == "single" else chance.randint(max(2, size - 1), size),
        cpu=tuple(cpu + (uneven and index == 0) for index in range(size)),
        arrives_s=chance.uniform(0.0, 9.0),
        runs_s=chance.choice((0.0, chance.uniform(1.0, 8.0))),
        timeout_s=chance.choice((0, 0, 3, 8)),
        gated_s=chance.choice((0.0, 0.0, 0.0, chance.uniform(0.5, 3.0))),
        same_names=chance.random() < 0.6,
        lingers_s=chance.choice((0.0, 0.0, 1.0, 3.0)),
    )


class ForJobs(Protocol):
    """What a theme may change of jobs and of their pods."""

    def jobs(self, jobs: list[Job]) -> None:
        """Change the jobs of a run before it begins, or add some."""

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Change a pod that is about to be made."""


class Workload:
    """All jobs of a run, and the controllers that make their pods."""

    def __init__(self, world: World, themes: Sequence[ForJobs] = ()) -> None:
        self._world = world
        self._themes = themes
        self._chance = world.chance("workload")
        self.jobs = jobs_of(self._chance)
        set_apart(self.jobs, world.chance("rules"))
        for theme in themes:
            theme.jobs(self.jobs)
        for job in self.jobs:
            place = job.dialect, job.namespace, job.object_name
            world.history.objects[place] = job.name
            truth = world.history.gang(job.name, job.dialect)
            truth.timeout_s = float(job.timeout_s or ATTEMPT_S)
            if job.dialect == "single":
                truth.minima.append((0, 1))

    async def run(self) -> None:
        """Run all jobs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for job in self.jobs:
                group.create_task(self._run(job))

    async def _run(self, job: Job) -> None:
        await asyncio.sleep(job.arrives_s)
        if self._chance.random() < 0.2:  # the object comes late
            await asyncio.sleep(self._chance.uniform(0.0, 2.0))
        while not job.done:
            if self._world.loop.now_s >= job.paused_until_s:
                await self._reconcile(job)
            await asyncio.sleep(job.look_s * self._chance.uniform(0.5, 1.5))
        await asyncio.sleep(_TTL_S)
        self._clean_up(job)

    async def _reconcile(self, job: Job) -> None:
        """Make what is missing, and clear away what has failed."""
        self._keep_object(job)
        pods = self._own(job)
        finished = [pod for pod in pods if pod.phase == "Succeeded"]
        if len(finished) == job.size:
            job.done = True
            return
        there = set()
        for pod in pods:
            index = int(pod.name.split("-")[1])
            if pod.phase == "Failed" and job.keeps_failed:
                continue
            there.add(index)
            if pod.terminating != NEVER:
                self._finalize(job, pod.name)
            elif pod.phase == "Failed":
                self.delete_pod(pod.name)
            elif job.gated_s and pod.ungated == NEVER:
                self._ungate(job, pod.name)
        for index in range(job.size):
            if index not in there:
                self._make_pod(job, index)
                if job.is_slow and self._chance.random() < 0.3:
                    await asyncio.sleep(self._chance.uniform(0.0, 0.3))

    def _own(self, job: Job) -> list[PodTruth]:
        """Return the pods that its controller made, and that are in its gang."""
        pods = self._world.history.gangs[job.name].members()
        return [pod for pod in pods if pod.name.startswith(f"{job.name}-")]

    def _keep_object(self, job: Job) -> None:
        if not job.api_version:
            return
        bucket = self._world.resource(job.api_version, "podgroups").bucket
        there = self._world.api.find(bucket, job.namespace, job.object_name) is not None
        if job.has_object and not there:
            spec: Object = {"minMember": job.minimum}
            if job.timeout_s:
                spec["scheduleTimeoutSeconds"] = job.timeout_s
            if job.dialect == "native":
                spec = {"schedulingPolicy": {"gang": {"minCount": job.minimum}}}
            if job.dialect == "volcano":
                spec.pop("scheduleTimeoutSeconds", None)
            metadata = {"name": job.object_name, "namespace": job.namespace}
            self._world.create(job.api_version, "podgroups", {"metadata": metadata, "spec": spec})

    def _make_pod(self, job: Job, index: int) -> None:
        job.made += 1
        name = f"{job.name}-{index}" if job.same_names else f"{job.name}-{index}-{job.made}"
        labels = {GANG_LABEL: job.name}
        spec: Object = {
            "schedulerName": job.scheduler,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": "pause",
                    "resources": {"requests": {"cpu": str(job.cpu[index])}},
                }
            ],
        }
        if job.apart:
            spec["affinity"] = _apart(job.name)
        if job.dialect == "coscheduler":
            labels |= {_NAME_LABEL: job.object_name, MIN_LABEL: str(job.minimum)}
        elif job.dialect == "native":
            spec["schedulingGroup"] = {"podGroupName": job.object_name}
        elif job.dialect not in ("single", "volcano"):
            labels[_GROUPS[job.dialect][1]] = job.object_name
        if job.priority:
            spec["priorityClassName"] = priority_class(job.priority)
        if job.gated_s and job.made <= job.size:
            spec["schedulingGates"] = [{"name": "simulation/gate"}]
        annotations = {"quorate.dev/complete-after": f"{job.runs_s:.1f}s"} if job.runs_s else {}
        if job.dialect == "volcano":
            annotations["scheduling.k8s.io/group-name"] = job.object_name
        owner = {"apiVersion": _OWNER_API, "kind": "Job", "name": job.name, "uid": job.name}
        metadata: Object = {
            "name": name,
            "namespace": job.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [{**owner, "controller": True}],
        }
        if job.lingers_s:
            metadata["finalizers"] = [_FINALIZER]
        for theme in self._themes:
            theme.pod(job, metadata, spec)
        with contextlib.suppress(ApiError):  # an earlier one of that name is still going
            self._world.create("v1", "pods", {"metadata": metadata, "spec": spec})

    def _ungate(self, job: Job, name: str) -> None:
        pod = self._world.history.by_name.get(name)
        if pod is None or self._chance.random() > _LOOK_S / job.gated_s:
            return

        def change(obj: Object) -> None:
            obj["spec"].pop("schedulingGates", None)

        self._world.amend_pod(name, change)

    def _finalize(self, job: Job, name: str) -> None:
        """Let a deleted pod go, after a while."""
        if job.lingers_s and self._chance.random() < _LOOK_S / job.lingers_s:
            self._world.amend_pod(name, _without_finalizers)

    def _clean_up(self, job: Job) -> None:
        for pod in self._world.history.gangs[job.name].members():
            self._world.amend_pod(pod.name, _without_finalizers)
            self.delete_pod(pod.name)
        if job.api_version:
            job.has_object = False
            self.delete_object(job)

    def delete_pod(self, name: str) -> None:
        """Delete a pod, if it is there."""
        self._delete("v1", "pods", self._world.namespace_of(name), name)

    def delete_object(self, job: Job) -> None:
        """Delete the object of a gang, if it is there."""
        self._delete(job.api_version, "podgroups", job.namespace, job.object_name)

    def _delete(self, api_version: str, plural: str, namespace: str, name: str) -> None:
        resource = self._world.resource(api_version, plural)
        with contextlib.suppress(ApiError):
            self._world.api.delete(resource, namespace, name, Deleting())


def priority_class(priority: int) -> str:
    """Return the name of the class of a priority."""
    return f"simulation-{priority}"


def _apart(gang: str) -> Object:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {GANG_LABEL: gang}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _without_finalizers(obj: Object) -> None:
    obj["metadata"].pop("finalizers", None)
