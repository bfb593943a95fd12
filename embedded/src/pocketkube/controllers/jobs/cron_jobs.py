"""CronJobs: a Job at each time of a schedule.

Source: ``pkg/controller/cronjob`` of Kubernetes 1.36, and what a real one was seen to write.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Key, Shared, Work
from pocketkube.controllers.conditions import is_true
from pocketkube.controllers.jobs.cron_schedule import Schedule, parse_schedule
from pocketkube.controllers.jobs.job_verdicts import is_finished
from pocketkube.controllers.templates import owner_reference
from pocketkube.errors import ApiError
from pocketkube.objects import Object, controller_of, key_of, parsed_time_s, rfc3339
from pocketkube.store.store import Event

_BUCKET = "cronjobs.batch"
_JOBS = "jobs.batch"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobs(Controller):
    """Creates Jobs when their time has come, and deletes old ones."""

    buckets = (_BUCKET, _JOBS)
    component = "cronjob-controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._jobs: dict[str, set[Key]] = {}  # by the CronJob's UID
        self._resource = self.api.registry.named("batch/v1", "jobs")

    def on_event(self, event: Event) -> None:
        """Follow CronJobs, and the Jobs that they own."""
        key = (event.entry.namespace, event.entry.name)
        if event.bucket == _BUCKET:
            if event.type == "DELETED":
                self._jobs.pop(event.object["metadata"]["uid"], None)
            else:
                self.enqueue(key)
            return
        owner = controller_of(event.object)
        if owner is None or owner["kind"] != "CronJob":
            return
        jobs = self._jobs.setdefault(owner["uid"], set())
        if event.type == "DELETED":
            jobs.discard(key)
        else:
            jobs.add(key)
        self.enqueue((key[0], owner["name"]))

    def reconcile(self, key: Any) -> Work:
        """Look after the Jobs of one CronJob; start the next if it is due."""
        found = self.api.find(_BUCKET, *key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        keys = sorted(self._jobs.get(found["metadata"]["uid"], ()))
        jobs = [job for job in (self.api.find(_JOBS, *k) for k in keys) if job is not None]
        status: dict[str, Any] = dict(found.get("status") or {})
        running = [job for job in jobs if not is_finished(job)]
        self._note_ends(found, status, jobs)
        status["active"] = [_reference(job) for job in running]
        self._forget_old(found, jobs)
        if not found["spec"].get("suspend"):
            try:
                schedule = parse_schedule(found["spec"]["schedule"], found["spec"].get("timeZone"))
            except ValueError as error:
                self.record(found, "UnparseableSchedule", str(error), warning=True)
            else:
                self._start(found, status, running, schedule)
        if not status["active"]:
            del status["active"]
        self.write_status(_BUCKET, found, status)
        return None

    def _note_ends(self, found: Object, status: dict[str, Any], jobs: list[Object]) -> None:
        was_active = {reference["uid"] for reference in status.get("active", [])}
        for job in jobs:
            if job["metadata"]["uid"] not in was_active or not is_finished(job):
                continue
            complete = is_true(job["status"]["conditions"], "Complete")
            how = "Complete" if complete else "Failed"
            name = job["metadata"]["name"]
            message = f"Saw completed job: {name}, condition: {how}"
            self.record(found, "SawCompletedJob", message)
            if complete:
                status["lastSuccessfulTime"] = job["status"]["completionTime"]

    def _start(
        self, found: Object, status: dict[str, Any], running: list[Object], schedule: Schedule
    ) -> None:
        now_s = self.api.now_s()
        last = status.get("lastScheduleTime") or found["metadata"]["creationTimestamp"]
        due_s = schedule.latest(parsed_time_s(last), now_s)
        self.enqueue(key_of(found), schedule.next(now_s) - now_s)
        if due_s is None:
            return
        deadline_s = found["spec"].get("startingDeadlineSeconds")
        if deadline_s is not None and now_s - due_s > deadline_s:
            message = f"Missed scheduled time to start a job: {rfc3339(due_s)}"
            self.record(found, "MissSchedule", message, warning=True)
            return
        policy = found["spec"].get("concurrencyPolicy", "Allow")
        if running and policy == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy"
            self.record(found, "JobAlreadyActive", f"{message} is Forbid")
            return
        if policy == "Replace":
            for job in running:
                self._delete(found, job)
            status["active"] = []
        self._create(found, status, due_s)

    def _create(self, found: Object, status: dict[str, Any], due_s: float) -> None:
        template = found["spec"]["jobTemplate"]
        given = template.get("metadata") or {}
        name = f"{found['metadata']['name']}-{int(due_s) // 60}"
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "labels": dict(given.get("labels") or {}),
                "annotations": {**(given.get("annotations") or {}), _SCHEDULED: rfc3339(due_s)},
                "ownerReferences": [owner_reference(found)],
            },
            "spec": template["spec"],
        }
        try:
            made = self.api.create(self._resource, found["metadata"]["namespace"], job)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                status["lastScheduleTime"] = rfc3339(due_s)
                return
            self.record(found, "FailedCreate", f"Error creating job: {error.message}", warning=True)
            raise
        self.record(found, "SuccessfulCreate", f"Created job {name}")
        status["active"] = [*status["active"], _reference(made)]
        status["lastScheduleTime"] = rfc3339(due_s)

    def _forget_old(self, found: Object, jobs: list[Object]) -> None:
        """Delete the oldest finished Jobs beyond the history that is kept."""
        for type_, field, otherwise in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = [job for job in jobs if is_true(_conditions(job), type_)]
            ended.sort(
                key=lambda job: (job["status"].get("startTime", ""), job["metadata"]["name"])
            )
            limit = found["spec"].get(field, otherwise)
            for job in ended[: max(0, len(ended) - limit)]:
                self._delete(found, job)

    def _delete(self, found: Object, job: Object) -> None:
        metadata = job["metadata"]
        with contextlib.suppress(ApiError):
            deleting = Deleting(propagation="Background", uid=metadata["uid"])
            self.api.delete(self._resource, metadata["namespace"], metadata["name"], deleting)
            self.record(found, "SuccessfulDelete", f"Deleted job {metadata['name']}")


def _conditions(job: Object) -> Any:
    return (job.get("status") or {}).get("conditions")


def _reference(job: Object) -> dict[str, str]:
    metadata = job["metadata"]
    return {
        "kind": "Job",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": metadata["resourceVersion"],
    }
