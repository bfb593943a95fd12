"""Pods, bound or not, that somebody relabels into another gang."""

from __future__ import annotations

from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from simulate.checkers.records import GANG_LABEL, MIN_LABEL, NEVER, PodTruth
from simulate.cluster.network import Link
from simulate.cluster.theme import Harm, Theme
from simulate.workload import Job

_LABELS = {
    "x-k8s": "scheduling.x-k8s.io/pod-group",
    "sigs": "pod-group.scheduling.sigs.k8s.io",
    "coscheduler": "pod-group.scheduling.sigs.k8s.io/name",
}


class Relabelled(Theme):
    """Moves a pod to another gang of its dialect; more jobs than usual are of one dialect."""

    name = "relabelled"
    must_meet = ("bound pods", "pods that wait", "pods whose bind is under way")

    def jobs(self, jobs: list[Job]) -> None:
        """Let most gangs be of one dialect, so that there is somewhere to move to."""
        self._jobs = jobs
        self._is_armed = False
        dialect = self.chance.choice(tuple(_LABELS))
        for job in jobs:
            if job.dialect in (*_LABELS, "native") and self.chance.random() < 0.8:
                job.dialect = dialect

    def harms(self) -> list[Harm]:
        """Every few seconds somebody relabels a pod."""
        return [("relabel pod", 2.0, self._relabel), ("relabel at once", 2.0, self._at_once)]

    def _at_once(self) -> None:
        """The next pod that is planned is relabelled while its bind is under way."""
        self._is_armed = True

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Relabel a pod whose bind is about to be sent."""
        gangs = [gang for gang in plan.gangs if not gang.key.is_single]
        if not (self._is_armed and gangs and self.world.faults.on):
            return
        self._is_armed = False
        bind = self.chance.choice(self.chance.choice(gangs).binds)
        pod = self.world.history.pods.get(bind.uid)
        if pod is not None and self._move(pod):
            self.met(self.must_meet[2])

    def _relabel(self) -> None:
        pods = [pod for pod in self.world.history.by_name.values() if pod.finished == NEVER]
        if not pods:
            return
        pod = self.chance.choice(pods)
        if self._move(pod):
            self.met(self.must_meet[0 if pod.node else 1])

    def _move(self, pod: PodTruth) -> bool:
        """Relabel a pod; return whether it could be done."""
        of = {job.name: job for job in self._jobs}
        job = of.get(pod.gang)
        if job is None or job.dialect not in _LABELS or job.done:
            return False
        others = [
            one
            for one in self._jobs
            if one is not job
            and (one.dialect, one.namespace, one.scheduler, one.priority, one.done)
            == (job.dialect, job.namespace, job.scheduler, job.priority, False)
        ]
        if not others:
            return False
        to = self.chance.choice(others)

        def change(obj: Object) -> None:
            labels = obj["metadata"]["labels"]
            labels[_LABELS[job.dialect]], labels[GANG_LABEL] = to.object_name, to.name
            if MIN_LABEL in labels:
                labels[MIN_LABEL] = str(to.minimum)

        self.world.amend_pod(pod.name, change)
        return True
