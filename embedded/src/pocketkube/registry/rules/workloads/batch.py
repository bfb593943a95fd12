"""Jobs and CronJobs.

Source: kubernetes ``pkg/apis/batch`` (defaults, validation) and ``pkg/registry/batch`` of 1.36.
"""

from __future__ import annotations

from typing import Any

from pocketkube.causes import (
    INT32_MAX,
    immutable,
    invalid,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object
from pocketkube.registry.rules.common import (
    Rules,
    Surroundings,
    label_selector_causes,
    number_of,
    set_default,
    spec_of,
    with_status,
)
from pocketkube.registry.rules.pods.pod_spec import template_causes
from pocketkube.registry.rules.workloads.apps import default_template_of

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_UID_LABELS = ("controller-uid", CONTROLLER_UID)
_NAME_LABELS = ("job-name", JOB_NAME)


def _default_job(job: Object) -> None:
    spec = spec_of(job)
    default_template_of(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    set_default(spec, "parallelism", 1)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else INT32_MAX
    policy = spec.get("podFailurePolicy")
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            set_default(pattern, "status", "True")
    set_default(spec, "completionMode", "NonIndexed")
    set_default(spec, "suspend", False)
    replacement = "TerminatingOrFailed" if policy is None else "Failed"
    set_default(spec, "podReplacementPolicy", replacement)
    set_default(spec, "manualSelector", False)
    _take_labels(job)


def _take_labels(job: Object) -> None:
    """Give a Job without labels those of its pods."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _prepare_create(job: Object, _around: Surroundings) -> None:
    """Generate the selector, by the Job's uid, and the labels it selects; start the status."""
    spec, metadata = job["spec"], job["metadata"]
    own = metadata.get("labels")
    theirs = spec["template"]["metadata"].get("labels")
    if not spec["manualSelector"]:
        labels = spec["template"]["metadata"]["labels"] = dict(theirs or {})
        for key in _NAME_LABELS:
            labels.setdefault(key, metadata.get("name", ""))
        for key in _UID_LABELS:
            labels.setdefault(key, metadata["uid"])
        selector = spec.get("selector") or {}
        chosen = {CONTROLLER_UID: metadata["uid"], **(selector.get("matchLabels") or {})}
        spec["selector"] = {**selector, "matchLabels": chosen}
        if own == theirs:  # they were taken from the template
            metadata["labels"] = dict(labels)
    job["status"] = {}


def _causes(job: Object) -> list[Cause]:
    spec = job["spec"]
    causes = job_spec_causes(spec, "spec")
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        causes.append(required("spec.selector"))
    wrong = label_selector_causes(selector, "spec.selector")
    causes += wrong
    if not wrong and not selector_of(selector).matches(labels or {}):
        why = "`selector` does not match template `labels`"
        causes.append(invalid("spec.template.metadata.labels", labels, why))
    return causes


def job_spec_causes(spec: dict[str, Any], field: str) -> list[Cause]:
    """Check the spec of a Job, or of a CronJob's template of one, but for its selector."""
    causes: list[Cause] = []
    mode = spec.get("completionMode", "NonIndexed")
    if mode == "Indexed" and spec.get("completions") is None:
        causes.append(required(f"{field}.completions", "when completion mode is Indexed"))
    causes += template_causes(spec["template"], f"{field}.template")
    at, policy = f"{field}.template.spec.restartPolicy", spec["template"]["spec"]["restartPolicy"]
    if policy not in ("OnFailure", "Never"):
        causes.append(unsupported(at, policy, ("OnFailure", "Never")))
    return causes


_FIXED = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)


def _update_causes(job: Object, old: Object) -> list[Cause]:
    new, before = job["spec"], old["spec"]
    causes = _completions_causes(new, before)
    if not _may_direct(old):
        causes += immutable("spec.template", new["template"], before["template"])
    for field in _FIXED:
        causes += immutable(f"spec.{field}", new.get(field), before.get(field))
    return causes


def _completions_causes(new: dict[str, Any], before: dict[str, Any]) -> list[Cause]:
    now, was = new.get("completions"), before.get("completions")
    resized = new["completionMode"] == "Indexed" and now in (None, new.get("parallelism"))
    return [] if resized else immutable("spec.completions", now, was)


def _may_direct(old: Object) -> bool:
    """Tell whether a Job is suspended with no pod running, so that others may place its pods."""
    status = old.get("status") or {}
    return bool(old["spec"].get("suspend")) and not status.get("active")


def _default_cron_job(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "concurrencyPolicy", "Allow")
    set_default(spec, "suspend", False)
    set_default(spec, "successfulJobsHistoryLimit", 3)
    set_default(spec, "failedJobsHistoryLimit", 1)
    set_default(spec, "jobTemplate", {})
    set_default(spec["jobTemplate"], "metadata", {})
    set_default(spec["jobTemplate"], "spec", {})
    default_template_of(spec["jobTemplate"]["spec"])


def _cron_causes(obj: Object) -> list[Cause]:
    """Check the template; what is wrong with the schedule, its controller says in an Event."""
    return job_spec_causes(obj["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec")


JOBS = Rules(
    defaults=_default_job,
    prepare_create=_prepare_create,
    validate=_causes,
    validate_update=_update_causes,
    has_generation=True,
    selectable={"status.successful": number_of("status", "succeeded")},
)
CRON_JOBS = Rules(
    defaults=_default_cron_job,
    prepare_create=with_status({}),
    validate=_cron_causes,
    has_generation=True,
)
