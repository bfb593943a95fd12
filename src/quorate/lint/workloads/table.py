"""Which kinds of objects become gangs by an operator's hand, one row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quorate.lint.objects import KubeObject
from quorate.lint.pod_sources import PodSource
from quorate.lint.workloads import kubeflow, lws, ray, trainer, volcano_job
from quorate.lint.workloads.promise import Promise, Runtimes, Workload

_KUBEFLOW_KINDS = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
_GATHERED = ("Deployment", "ReplicaSet", "StatefulSet")
_OF_KIND: dict[tuple[str, str], Callable[[Workload], Promise | None]] = {
    **{("kubeflow.org", kind): kubeflow.training_job for kind in _KUBEFLOW_KINDS},
    ("trainer.kubeflow.org", "TrainJob"): trainer.train_job,
    ("ray.io", "RayCluster"): ray.ray_cluster,
    ("ray.io", "RayJob"): ray.ray_cluster,
    ("ray.io", "RayService"): ray.ray_cluster,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): lws.leader_worker_set,
    ("batch.volcano.sh", "Job"): volcano_job.volcano_job,
    ("batch", "Job"): volcano_job.gathered,
    **{("apps", kind): volcano_job.gathered for kind in _GATHERED},
}


def promises_of(
    objects: Iterable[KubeObject],
    sources: Iterable[PodSource],
    namespace: str,
    schedulers: Sequence[str],
) -> list[Promise]:
    """Return the gangs that operators will make of these objects.

    ``sources`` are all pods of the objects, ``namespace`` is that of objects that name none. An
    object whose own templates name a gang promises none: what its author wrote counts.
    """
    objects = list(objects)
    of_object: dict[int, list[PodSource]] = {}
    for source in sources:
        of_object.setdefault(id(source.object), []).append(source)
    runtimes = _runtimes(objects, namespace)
    found = []
    for one in objects:
        make = _maker(one)
        own = tuple(of_object.get(id(one), ()))
        if make is None or any(source.resolution.membership for source in own):
            continue
        where = one.namespace or namespace
        promise = make(Workload(one, where, own, tuple(schedulers), runtimes))
        if promise is not None and promise.sources:
            found.append(promise)
    return found


def _maker(one: KubeObject) -> Callable[[Workload], Promise | None] | None:
    if one.api_version == "kubeflow.org/v2beta1" and one.kind == "MPIJob":
        return kubeflow.mpi_job
    return _OF_KIND.get((one.group, one.kind))


def _runtimes(objects: Iterable[KubeObject], namespace: str) -> Runtimes:
    found = {}
    for one in objects:
        if one.kind in trainer.RUNTIMES and one.group == "trainer.kubeflow.org":
            where = "" if one.kind == "ClusterTrainingRuntime" else one.namespace or namespace
            found[one.kind, where, one.name] = one
    return found
