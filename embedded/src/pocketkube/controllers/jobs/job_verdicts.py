"""What has become of a Job's pods, and whether it goes on, is suspended, complete or failed. Pure.

Source: ``syncJob`` in ``pkg/controller/job`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pocketkube.controllers.pod_table import Owned, PodFacts
from pocketkube.controllers.templates import condition_of, is_true
from pocketkube.objects import Object, parsed_time_s, rfc3339


class Tally:
    """What has become of the pods of one Job."""

    __slots__ = (
        "counted",
        "done",
        "excused",
        "failed",
        "failures_in_a_row",
        "last_failure_s",
        "succeeded",
    )

    def __init__(self, job: Object, owned: Owned) -> None:
        """Go on where the Job's status stopped; ``owned`` are the pods that are there."""
        status = job.get("status") or {}
        self.succeeded = max(int(status.get("succeeded", 0)), owned.succeeded)
        self.failed = max(int(status.get("failed", 0)), owned.failed)
        self.done = set(parse_indexes(status.get("completedIndexes", "")))
        self.counted = {pod.uid for pod in owned.pods.values() if pod.finished}
        self.done.update(p.completion_index for p in owned.pods.values() if p.phase == "Succeeded")
        self.done.discard(-1)
        self.excused: set[str] = set()  # UIDs of pods that the controller itself took away
        self.failures_in_a_row = 0
        self.last_failure_s = 0.0

    def follow(
        self, before: PodFacts | None, after: PodFacts | None, now_s: float, *, gone_fails: bool
    ) -> None:
        """Follow one pod. ``gone_fails``: one that is deleted counts as failed at once."""
        pod = after or before
        assert pod is not None, "an event is about something"
        if pod.uid not in self.counted:
            if pod.phase == "Succeeded":
                self._count_success(pod)
            elif pod.phase == "Failed" or self._is_taken(pod, after, gone_fails):
                self._count_failure(pod, now_s)
        if after is None:
            self.counted.discard(pod.uid)
            self.excused.discard(pod.uid)

    def _is_taken(self, pod: PodFacts, after: PodFacts | None, gone_fails: bool) -> bool:
        if pod.uid in self.excused:
            return False
        return after is None or (after.terminating and gone_fails)

    def _count_success(self, pod: PodFacts) -> None:
        self.counted.add(pod.uid)
        self.failures_in_a_row = 0
        if pod.completion_index < 0:
            self.succeeded += 1
        elif pod.completion_index not in self.done:
            self.done.add(pod.completion_index)
            self.succeeded += 1

    def _count_failure(self, pod: PodFacts, now_s: float) -> None:
        self.counted.add(pod.uid)
        self.failed += 1
        self.failures_in_a_row += 1
        self.last_failure_s = now_s


def parse_indexes(text: str) -> Iterable[int]:
    """Read ``0-2,5`` as 0, 1, 2, 5."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def written_indexes(indexes: Iterable[int]) -> str:
    """Write 0, 1, 2, 5 as ``0-2,5``; two in a row are ``0,1``."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = []
    for run in runs:
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(map(str, run))
    return ",".join(parts)


class Verdict(NamedTuple):
    """How a Job ends."""

    failed: bool
    reason: str
    message: str


def is_indexed(job: Object) -> bool:
    """Tell whether every pod has an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_suspended(job: Object) -> bool:
    """Tell whether the Job shall have no pods for now."""
    return bool(job["spec"].get("suspend"))


def only_replaces_failed(job: Object) -> bool:
    """Tell whether a pod that terminates is waited for before it is replaced."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def is_finished(job: Object) -> bool:
    """Tell whether nothing more will happen to the Job."""
    conditions = (job.get("status") or {}).get("conditions")
    return is_true(conditions, "Complete") or is_true(conditions, "Failed")


def finished_s(job: Object) -> float:
    """Return when a finished Job finished."""
    conditions = job["status"]["conditions"]
    last = next(c for c in conditions if c["type"] in ("Complete", "Failed"))
    return parsed_time_s(last["lastTransitionTime"])


def wanted_active(job: Object, tally: Tally, owned: Owned) -> int:
    """Return how many pods shall run now."""
    parallelism = int(job["spec"].get("parallelism", 1))
    completions = job["spec"].get("completions")
    if completions is None:  # a work queue: its first success says that all is done
        return owned.active if tally.succeeded else parallelism
    return max(0, min(int(completions) - tally.succeeded, parallelism))


def verdict_of(
    job: Object, status: dict[str, Any], tally: Tally, owned: Owned, now_s: float
) -> Verdict | None:
    """Return how the Job ends; None while it goes on."""
    conditions = status.get("conditions")
    for type_, failed in (("FailureTarget", True), ("SuccessCriteriaMet", False)):
        decided = condition_of(conditions, type_)
        if decided is not None and decided["status"] == "True":
            return Verdict(failed, decided["reason"], decided["message"])
    if is_suspended(job):
        return None
    failure = _failure(job, status, tally, owned, now_s)
    if failure is not None:
        return failure
    completions = job["spec"].get("completions")
    if completions is None:
        done = tally.succeeded > 0 and owned.active == 0
    else:
        done = tally.succeeded >= completions
    if not done:
        return None
    return Verdict(False, "CompletionsReached", "Reached expected number of succeeded pods")


def _failure(
    job: Object, status: dict[str, Any], tally: Tally, owned: Owned, now_s: float
) -> Verdict | None:
    limit = job["spec"].get("backoffLimit", 6)
    restarts = 0
    if job["spec"]["template"]["spec"].get("restartPolicy") == "OnFailure":
        restarts = sum(p.restarts for p in owned.pods.values() if p.phase in ("Running", "Pending"))
    if tally.failed > limit or (restarts and restarts >= limit):
        message = "Job has reached the specified backoff limit"
        return Verdict(True, "BackoffLimitExceeded", message)
    deadline_s = job["spec"].get("activeDeadlineSeconds")
    start = status.get("startTime")
    if deadline_s is not None and start and now_s - parsed_time_s(start) >= deadline_s:
        message = "Job was active longer than specified deadline"
        return Verdict(True, "DeadlineExceeded", message)
    return None


def set_suspended(status: dict[str, Any], suspended: bool, now_s: float) -> bool:
    """Set the condition Suspended, in place; tell whether it changed."""
    conditions = list(status.get("conditions") or [])
    current = condition_of(conditions, "Suspended")
    if current is None and not suspended:
        return False
    wanted = "True" if suspended else "False"
    if current is not None and current["status"] == wanted:
        return False
    reason, message = (
        ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    )
    fresh = _condition("Suspended", reason, message, now_s, status=wanted)
    if current is None:
        conditions.append(fresh)
    else:
        conditions[conditions.index(current)] = fresh
    status["conditions"] = conditions
    return True


def conclude(status: dict[str, Any], verdict: Verdict, over: bool, now_s: float) -> None:
    """Add what says that the Job ends and, when it is ``over``, that it has ended. In place."""
    first, last = ("FailureTarget", "Failed") if verdict.failed else _SUCCESS
    conditions = list(status.get("conditions") or [])
    for type_ in [first, *([last] if over else [])]:
        if condition_of(conditions, type_) is None:
            conditions.append(_condition(type_, verdict.reason, verdict.message, now_s))
    status["conditions"] = conditions
    if over and not verdict.failed:
        status["completionTime"] = rfc3339(now_s)


_SUCCESS = ("SuccessCriteriaMet", "Complete")


def _condition(
    type_: str, reason: str, message: str, now_s: float, status: str = "True"
) -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "lastProbeTime": rfc3339(now_s),
        "lastTransitionTime": rfc3339(now_s),
        "reason": reason,
        "message": message,
    }
