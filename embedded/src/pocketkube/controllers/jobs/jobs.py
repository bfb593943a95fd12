"""Jobs: pods that shall succeed, so and so many, so and so many at a time.

Source: ``pkg/controller/job`` of Kubernetes 1.36, and what a real one was seen to write. Not here:
podFailurePolicy, successPolicy, backoffLimitPerIndex, the Workload of a gang (gate WorkloadWithJob,
off as in tools/controlplane).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Key, Shared
from pocketkube.controllers.jobs import job_verdicts as verdicts
from pocketkube.controllers.jobs.job_verdicts import Tally, written_indexes
from pocketkube.controllers.owning import PodOwner, deletion_order, is_terminating_namespace
from pocketkube.controllers.pod_table import PodFacts
from pocketkube.controllers.templates import encoded_pod
from pocketkube.errors import ApiError
from pocketkube.objects import Object, key_of, parsed_time_s, rfc3339
from pocketkube.store.store import Event, decode

INDEX = "batch.kubernetes.io/job-completion-index"


def index_pod(pod: Object, job: Object, index: int) -> Object:
    """Tell a new pod its completion index: by label, annotation and hostname. In place."""
    name = job["metadata"]["name"]
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["generateName"] = f"{name}-{index}-"
    metadata.setdefault("labels", {})[INDEX] = str(index)
    metadata.setdefault("annotations", {})[INDEX] = str(index)
    spec.setdefault("hostname", f"{name}-{index}")
    return pod


def missing_indexes(
    job: Object,
    done: set[int],
    pods: Iterable[PodFacts],
    at_most: int,
    keep_terminating: bool,
) -> list[int]:
    """Return the lowest indexes that are neither done nor have a pod that counts."""
    taken = {
        pod.completion_index
        for pod in pods
        if pod.active or (keep_terminating and pod.terminating and not pod.finished)
    }
    found: list[int] = []
    for index in range(job["spec"].get("completions") or 0):
        if len(found) == at_most:
            break
        if index not in done and index not in taken:
            found.append(index)
    return found


def surplus_pods(job: Object, active: list[PodFacts], number: int) -> list[PodFacts]:
    """Return which active pods go when parallelism shrinks: the highest indexes first."""
    if job["spec"].get("completionMode") == "Indexed":
        active = sorted(active, key=lambda pod: -pod.completion_index)
    else:
        active = deletion_order(active)
    return active[:number]


_OURS = "kubernetes.io/job-controller"
_BACKOFF_FIRST_S = 10.0
_BACKOFF_MAX_S = 600.0


class Jobs(PodOwner):
    """Runs Jobs, and deletes them when their time after the end is over."""

    buckets = ("jobs.batch",)
    bucket = "jobs.batch"
    kind = "Job"
    component = "job-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._tallies: dict[str, Tally] = {}  # by the Job's UID
        self._gone_fails: dict[str, bool] = {}
        self._resource = self.api.registry.named("batch/v1", "jobs")

    def on_event(self, event: Event) -> None:
        """Follow Jobs; begin to count the pods of a new one."""
        super().on_event(event)
        job = event.object
        uid = job["metadata"]["uid"]
        if event.type == "DELETED":
            self._tallies.pop(uid, None)
            self._gone_fails.pop(uid, None)
        elif uid not in self._tallies:
            self._tallies[uid] = Tally(job, self.pods.owned(uid))
            self._gone_fails[uid] = not verdicts.only_replaces_failed(job)

    def on_pod(self, before: PodFacts | None, after: PodFacts | None) -> None:
        """Count pods that end."""
        for uid in {pod.owner_uid for pod in (before, after) if pod is not None}:
            tally = self._tallies.get(uid)
            if tally is not None:
                owned_now = after if after is not None and after.owner_uid == uid else None
                gone_fails = self._gone_fails[uid]
                tally.follow(before, owned_now, self.api.now_s(), gone_fails=gone_fails)
        super().on_pod(before, after)

    def reconcile(self, key: Any) -> Iterator[None]:
        """Bring one Job nearer to its end, and write its status."""
        job = self.api.find(self.bucket, *key)
        if job is None or job["spec"].get("managedBy", _OURS) != _OURS:
            return
        if verdicts.is_finished(job):
            self._expire(key, job)
            return
        if "deletionTimestamp" in job["metadata"]:
            return
        tally = self._tallies[job["metadata"]["uid"]]
        status: dict[str, Any] = dict(job.get("status") or {})
        now_s = self.api.now_s()
        verdict = verdicts.verdict_of(job, status, tally, self._owned(job), now_s)
        if verdict is not None:
            yield from self._end(job, verdict)
        elif verdicts.is_suspended(job):
            yield from self._suspend(job, status)
        else:
            self._start(job, status)
            yield from self._manage(job, status, tally)
        self._write(job, status, verdict)

    # Pods

    def _owned(self, job: Object) -> Any:
        return self.pods.owned(job["metadata"]["uid"])

    def _active_pods(self, job: Object) -> list[PodFacts]:
        return [pod for pod in self._owned(job).pods.values() if pod.active]

    def _end(self, job: Object, verdict: verdicts.Verdict) -> Iterator[None]:
        """Delete what still runs: of a failed Job as failures, of a complete one without blame."""
        for pod in self._active_pods(job):
            if not verdict.failed:
                self._tallies[job["metadata"]["uid"]].excused.add(pod.uid)
            self.delete_pod(job, pod)
            yield

    def _take_away(self, job: Object, pods: list[PodFacts]) -> Iterator[None]:
        for pod in pods:
            if not self.unchanged(job):
                return
            self._tallies[job["metadata"]["uid"]].excused.add(pod.uid)
            self.delete_pod(job, pod)
            yield

    def _suspend(self, job: Object, status: dict[str, Any]) -> Iterator[None]:
        yield from self._take_away(job, self._active_pods(job))
        if verdicts.set_suspended(status, True, self.api.now_s()):
            status.pop("startTime", None)
            self.record(job, "Suspended", "Job suspended")

    def _start(self, job: Object, status: dict[str, Any]) -> None:
        now_s = self.api.now_s()
        if verdicts.set_suspended(status, False, now_s):
            status["startTime"] = rfc3339(now_s)
            self.record(job, "Resumed", "Job resumed")
        status.setdefault("startTime", rfc3339(now_s))
        deadline_s = job["spec"].get("activeDeadlineSeconds")
        if deadline_s is not None:
            left_s = parsed_time_s(status["startTime"]) + deadline_s - now_s
            self.enqueue(key_of(job), max(left_s, 0.0))

    def _manage(self, job: Object, status: dict[str, Any], tally: Tally) -> Iterator[None]:
        """Create what is missing, after a pause if pods failed; delete what is too much."""
        owned, wanted = self._owned(job), verdicts.wanted_active(job, tally, self._owned(job))
        replaced_later = verdicts.only_replaces_failed(job)
        present = owned.active + (owned.terminating if replaced_later else 0)
        if owned.active > wanted:
            surplus = surplus_pods(job, self._active_pods(job), owned.active - wanted)
            yield from self._take_away(job, surplus)
            return
        missing = wanted - present
        if missing <= 0:
            return
        pause_s = _pause_s(tally, self.api.now_s())
        if pause_s > 0:
            self.enqueue(key_of(job), pause_s)
            return
        try:
            yield from self._create(job, tally, missing)
        except ApiError as error:
            if not is_terminating_namespace(error):
                self._write(job, status, None)
                raise

    def _create(self, job: Object, tally: Tally, missing: int) -> Iterator[None]:
        raw = encoded_pod(job["spec"]["template"], job)
        if verdicts.is_indexed(job):
            present = self._owned(job).pods.values()
            keep_terminating = verdicts.only_replaces_failed(job)
            indexes = missing_indexes(job, tally.done, present, missing, keep_terminating)
            pods = (index_pod(decode(raw), job, index) for index in indexes)
        else:
            pods = (decode(raw) for _ in range(missing))
        for pod in pods:
            if not self.unchanged(job):
                return
            self.create_pod(job, pod)
            yield

    # Status

    def _write(self, job: Object, status: dict[str, Any], verdict: verdicts.Verdict | None) -> None:
        newest, uid = self.again(job), job["metadata"]["uid"]
        if newest is None:
            return
        owned, tally = self.pods.owned(uid), self._tallies[uid]
        counts = {
            "active": owned.active,
            "succeeded": tally.succeeded,
            "failed": tally.failed,
        }
        for field, number in counts.items():
            status.pop(field, None)
            if number:
                status[field] = number
        status["ready"] = owned.ready
        status["terminating"] = owned.terminating
        status["uncountedTerminatedPods"] = {}
        if verdicts.is_indexed(job) and tally.done:
            status["completedIndexes"] = written_indexes(tally.done)
        if verdict is not None:
            over = not owned.active and not owned.terminating
            verdicts.conclude(status, verdict, over, self.api.now_s())
            if over:
                self._tell_end(job, verdict)
        self.write_status(self.bucket, newest, status)

    def _tell_end(self, job: Object, verdict: verdicts.Verdict) -> None:
        if verdict.failed:
            self.record(job, verdict.reason, verdict.message, warning=True)
        else:
            self.record(job, "Completed", "Job completed")

    def _expire(self, key: Key, job: Object) -> None:
        """Delete a finished Job whose ttlSecondsAfterFinished have passed."""
        ttl_s = job["spec"].get("ttlSecondsAfterFinished")
        if ttl_s is None or "deletionTimestamp" in job["metadata"]:
            return
        left_s = verdicts.finished_s(job) + ttl_s - self.api.now_s()
        if left_s > 0:
            self.enqueue(key, left_s)
            return
        with contextlib.suppress(ApiError):
            deleting = Deleting(propagation="Foreground", uid=job["metadata"]["uid"])
            self.api.delete(self._resource, *key, deleting)


def _pause_s(tally: Tally, now_s: float) -> float:
    """Return how long to wait before failed pods are replaced: 10 s, doubled with each in a row."""
    if not tally.failures_in_a_row:
        return 0.0
    wait_s = min(_BACKOFF_FIRST_S * 2.0 ** (tally.failures_in_a_row - 1), _BACKOFF_MAX_S)
    return tally.last_failure_s + wait_s - now_s
