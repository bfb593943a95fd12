"""Jobs of Volcano, and pods that its controllers gather.

Source: Volcano 1.15, job_controller_actions.go, pg_controller_handler.go and webhook mutate_job.go.
"""

from __future__ import annotations

from quorate.dialects import asks_together
from quorate.lint.objects import mapping
from quorate.lint.pod_values import read_pairs
from quorate.lint.workloads.promise import VOLCANO, VOLCANO_API, Promise, Workload, whole


def volcano_job(job: Workload) -> Promise | None:
    """One gang of ``minAvailable``; that is the sum of what the tasks need where it is 0."""
    if not job.sources:
        return None
    spec = job.object.spec()
    written = spec.get("minAvailable")
    is_written = written not in (None, 0)
    return Promise(
        job.object,
        VOLCANO_API,
        job.object.name,
        job.sources,
        whole(written) if is_written else _of_tasks(spec.get("tasks")),
        ("spec", "minAvailable") if is_written else ("spec",),
        "Volcano's controllers",
        queue=("spec", "queue"),
        priority_class=("spec", "priorityClassName"),
    )


def _of_tasks(tasks: object) -> int | None:
    least = [
        whole(mapping(task).get("minAvailable", mapping(task).get("replicas", 0)))
        for task in (tasks if isinstance(tasks, list) else ())
    ]
    known = [one for one in least if one is not None]
    return sum(known) if len(known) == len(least) else None


def gathered(workload: Workload) -> Promise | None:
    """One gang of as many as the annotation says, of a workload that another API made."""
    metadata = mapping(workload.object.value.get("metadata"))
    asked = asks_together(read_pairs(metadata.get("annotations")))
    if asked is None or VOLCANO not in workload.named:
        return None
    how, count = asked
    return Promise(
        workload.object,
        VOLCANO_API,
        workload.object.name,
        workload.sources,
        count,
        ("metadata", "annotations", how.annotation),
        how.by,
    )
