"""Jobs of Kubeflow's training operator and of the MPI operator.

Source: training-operator 1.9 (podgroup_control.go, common/job.go), mpi-operator 0.8 (podgroup.go).
"""

from __future__ import annotations

from quorate.core.model import DEFAULT_SCHEDULER
from quorate.lint.objects import mapping
from quorate.lint.tree import Path
from quorate.lint.workloads.promise import (
    COSCHEDULING_API,
    VOLCANO,
    VOLCANO_API,
    Promise,
    Workload,
    total,
    whole,
)

_POLICY: Path = ("spec", "runPolicy", "schedulingPolicy")
MIN_AVAILABLE: Path = (*_POLICY, "minAvailable")


def training_job(job: Workload) -> Promise | None:
    """PyTorchJob and its like: one gang of all replicas, or of ``minAvailable`` of them."""
    maker = "the training operator, if it runs with --gang-scheduler-name"
    by_scheduler = bool(job.named - {DEFAULT_SCHEDULER})
    return _promise(job, total(job.sources), maker, "unless written", by_scheduler)


def mpi_job(job: Workload) -> Promise | None:
    """MPIJob of v2beta1: the workers and one for the launcher, or ``minAvailable``."""
    workers = total(tuple(one for one in job.sources if "Worker" in one.path))
    maker = "the MPI operator, if it runs with --gang-scheduling"
    minimum = None if workers is None else workers + 1
    return _promise(job, minimum, maker, "always", job.is_ours)


def _promise(
    job: Workload, default: int | None, maker: str, names_scheduler: str, by_scheduler: bool
) -> Promise | None:
    """Return the gang if the job asks for one: by its policy, or ``by_scheduler``, in templates."""
    run = mapping(job.object.spec().get("runPolicy"))
    policy = mapping(run.get("schedulingPolicy"))
    if not job.sources or not ("schedulingPolicy" in run or by_scheduler):
        return None
    written = policy.get("minAvailable")
    return Promise(
        job.object,
        VOLCANO_API if VOLCANO in job.named else COSCHEDULING_API,
        job.object.name,
        job.sources,
        default if written is None else whole(written),
        ("spec",) if written is None else MIN_AVAILABLE,
        maker,
        names_scheduler,
        queue=(*_POLICY, "queue"),
        priority_class=(*_POLICY, "priorityClass"),
    )
