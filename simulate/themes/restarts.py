"""Whole gangs that fail at once and come again, while their failed pods are kept."""

from __future__ import annotations

from pocketkube.objects import Object
from simulate.checkers.records import NEVER, PodTruth
from simulate.cluster.theme import Harm, Theme
from simulate.workload import Job

_KEEPS = 0.8
_KEPT_MAX = 12
"""Failed pods of one gang; of more, the oldest go."""


class Restarts(Theme):
    """Lets all members of a gang fail; its controller makes new ones beside them."""

    name = "restarts"
    must_meet = ("gangs that failed as a whole", "new lives beside failed pods")

    def jobs(self, jobs: list[Job]) -> None:
        """Let most jobs keep what failed, under names that are never used again."""
        self._jobs = [job for job in jobs if job.dialect != "single"]
        for job in self._jobs:
            job.keeps_failed = self.chance.random() < _KEEPS
            job.same_names &= not job.keeps_failed
        self.world.history.on_bound.append(self._on_bound)

    def harms(self) -> list[Harm]:
        """A gang restarts every few seconds; and now and then a member fails alone."""
        return [("restart of a gang", 3.0, self._fail_all), ("failed pod", 4.0, self._fail_one)]

    def step(self) -> None:
        """Clear away the oldest of the pods that failed."""
        for job in self._jobs:
            members = self.world.history.gangs[job.name].members()
            failed = [pod for pod in members if pod.phase == "Failed"]
            for pod in failed[: max(0, len(failed) - _KEPT_MAX)]:
                self._delete(pod)

    def _delete(self, pod: PodTruth) -> None:
        self.world.amend_pod(pod.name, lambda obj: obj["metadata"].pop("finalizers", None))
        found = self.world.api.find("pods", pod.namespace, pod.name)
        if found is not None and pod.terminating == NEVER:
            resource = self.world.resource("v1", "pods")
            self.world.api.delete(resource, pod.namespace, pod.name)

    def _running(self, job: Job) -> list[PodTruth]:
        members = self.world.history.gangs[job.name].members()
        return [pod for pod in members if pod.is_alive and pod.phase == "Running"]

    def _fail_all(self) -> None:
        jobs = [job for job in self._jobs if self._running(job) and not job.done]
        if not jobs:
            return
        job = self.chance.choice(jobs)
        self.met(self.must_meet[0])
        for pod in self._running(job):
            self._fail(pod)

    def _fail_one(self) -> None:
        running = [pod for job in self._jobs for pod in self._running(job)]
        if running:
            self._fail(self.chance.choice(running))

    def _fail(self, pod: PodTruth) -> None:
        def change(obj: Object) -> None:
            obj["status"]["phase"] = "Failed"

        self.world.amend_pod(pod.name, change)

    def _on_bound(self, pod: PodTruth) -> None:
        gang = self.world.history.gangs.get(pod.gang)
        if gang is not None and any(one.past and one.phase == "Failed" for one in gang.members()):
            self.met(self.must_meet[1])
