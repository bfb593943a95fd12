"""Whether a Job goes on, is suspended, is complete or has failed. Pure functions.

Source: ``syncJob`` in ``pkg/controller/job`` of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pocketkube.controllers.conditions import condition_of, is_true
from pocketkube.controllers.jobs.job_tally import Tally
from pocketkube.controllers.pod_table import Owned
from pocketkube.objects import Object, parsed_time_s, rfc3339


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
