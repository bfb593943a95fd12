"""CronJobs: a Job at each time of a schedule such as ``*/5 8-18 * * 1-5`` or ``@hourly``, in UTC.

Source: ``pkg/controller/cronjob`` of Kubernetes 1.36; crontab(5). Names of months and days, and
time zones, are not read: an Event says so.
"""

from __future__ import annotations

import contextlib
import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pocketkube.api.writing import Deleting
from pocketkube.controllers.base import Controller, Key, Shared, Work
from pocketkube.controllers.jobs.job_verdicts import is_finished
from pocketkube.controllers.templates import is_true, owner_reference
from pocketkube.errors import ApiError
from pocketkube.objects import Object, controller_of, key_of, parsed_time_s, rfc3339
from pocketkube.store.store import Event

_BUCKET = "cronjobs.batch"
_JOBS = "jobs.batch"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MINUTE_S = 60.0
_LOOKS_BACK_S = 3600.0
"""A turn that was missed for longer, as by a cluster that was stopped, is not made up for."""


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
        running = [job for job in jobs if not is_finished(job)]
        for type_, field, otherwise in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = [job for job in jobs if is_true(job.get("status", {}).get("conditions"), type_)]
            ended.sort(key=lambda job: job["status"].get("startTime", ""))
            for job in ended[: max(0, len(ended) - found["spec"].get(field, otherwise))]:
                self._delete(found, job)
        status: dict[str, Any] = {k: v for k, v in found.get("status", {}).items() if k != "active"}
        if not found["spec"].get("suspend"):
            running = self._start(found, status, running)
        if running:
            status["active"] = [_reference(job) for job in running]
        self.write_status(_BUCKET, found, status)
        return None

    def _start(self, found: Object, status: dict[str, Any], running: list[Object]) -> list[Object]:
        """Create the Job whose turn it is, if it may be; return the Jobs that run then."""
        spec, now_s = found["spec"], self.api.now_s()
        try:
            if spec.get("timeZone") not in (None, "", "UTC", "Etc/UTC"):
                raise ValueError(f"time zone {spec['timeZone']}: schedules are in UTC here")
            schedule = parse_schedule(spec["schedule"])
        except ValueError as error:
            self.record(found, "UnparseableSchedule", str(error), warning=True)
            return running
        self.enqueue(key_of(found), _MINUTE_S - now_s % _MINUTE_S)
        last = status.get("lastScheduleTime") or found["metadata"]["creationTimestamp"]
        longest_s = min(_LOOKS_BACK_S, spec.get("startingDeadlineSeconds") or _LOOKS_BACK_S)
        due_s = schedule.last_turn_s(max(parsed_time_s(last), now_s - longest_s), now_s)
        policy = spec.get("concurrencyPolicy", "Allow")
        if due_s is None:
            return running
        if running and policy == "Forbid":
            why = "Not starting job because prior execution is running and concurrency policy"
            self.record(found, "JobAlreadyActive", f"{why} is Forbid")
            return running
        if policy == "Replace":
            for job in running:
                self._delete(found, job)
            running = []
        made = self._create(found, due_s)
        status["lastScheduleTime"] = rfc3339(due_s)
        return [*running, made] if made else running

    def _create(self, found: Object, due_s: float) -> Object | None:
        template = found["spec"]["jobTemplate"]
        given = template.get("metadata") or {}
        name = f"{found['metadata']['name']}-{int(due_s) // 60}"
        metadata = {
            "name": name,
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), _SCHEDULED: rfc3339(due_s)},
            "ownerReferences": [owner_reference(found)],
        }
        job = {"metadata": metadata, "spec": template["spec"]}
        try:
            made = self.api.create(self._resource, found["metadata"]["namespace"], job)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return None
            self.record(found, "FailedCreate", f"Error creating job: {error.message}", warning=True)
            raise
        self.record(found, "SuccessfulCreate", f"Created job {name}")
        return made

    def _delete(self, found: Object, job: Object) -> None:
        with contextlib.suppress(ApiError):
            deleting = Deleting(propagation="Background", uid=job["metadata"]["uid"])
            self.api.delete(self._resource, *key_of(job), deleting)
            self.record(found, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def _reference(job: Object) -> dict[str, str]:
    fields = ("namespace", "name", "uid", "resourceVersion")
    named = {field: job["metadata"][field] for field in fields}
    return {"kind": "Job", "apiVersion": "batch/v1", **named}


class Schedule(NamedTuple):
    """The minutes at which something is to happen; weekday 0 is Sunday, and so is 7."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool  # days or weekdays is a star: then both have to match, else one

    def last_turn_s(self, after_s: float, until_s: float) -> float | None:
        """Return the last turn after one time and until another, in seconds since 1970."""
        minute_s = until_s - until_s % _MINUTE_S
        while minute_s > after_s:
            if self.has(datetime.datetime.fromtimestamp(minute_s, datetime.UTC)):
                return minute_s
            minute_s -= _MINUTE_S
        return None

    def has(self, moment: datetime.datetime) -> bool:
        """Tell whether something is to happen at a minute."""
        day = moment.day in self.days
        weekday = bool({moment.isoweekday(), moment.isoweekday() % 7} & self.weekdays)
        return (
            moment.minute in self.minutes
            and moment.hour in self.hours
            and moment.month in self.months
            and ((day and weekday) if self.any_day else (day or weekday))
        )


@lru_cache(maxsize=256)
def parse_schedule(text: str) -> Schedule:
    """Read a schedule of five fields, or a macro such as ``@daily``. Raises ValueError."""
    fields = _MACROS.get(text.strip(), text).split()
    if len(fields) != len(_RANGES):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: {fields}")
    minutes, hours, days, months, weekdays = (
        _field(field, *bounds) for field, bounds in zip(fields, _RANGES, strict=True)
    )
    any_day = "*" in (fields[2][0], fields[4][0])
    return Schedule(minutes, hours, days, months, weekdays, any_day)


def _field(text: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        start, end = (low, high) if span == "*" else (int(first), int(last) if dash else 0)
        if not (dash or span == "*"):
            end = high if step else start
        if start < low or end > high or start > end or int(step or 1) < 1:
            raise ValueError(f"{part} is not within {low} and {high}")
        values.update(range(start, end + 1, int(step or 1)))
    return frozenset(values)
