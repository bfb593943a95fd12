"""Objects that operators make gangs of, in one line each, for the tables of the tests."""

from tools.objects import named

GPU = "nvidia.com/gpu"


def template(scheduler=None, gpus=8, name="c", **spec):
    resources = {"limits": {GPU: str(gpus)}} if gpus else {}
    named = {"schedulerName": scheduler} if scheduler else {}
    return {"spec": {**named, "containers": [{"name": name, "resources": resources}], **spec}}


def workload(api_version, kind, name="w", *, labels=None, **spec):
    return named(kind, api_version, name, {"labels": labels} if labels else None, spec=spec)


def training(
    kind="PyTorchJob", policy=None, scheduler=None, field="pytorchReplicaSpecs", **replicas
):
    run = {} if policy is None else {"runPolicy": {"schedulingPolicy": policy}}
    replicas = replicas or {"Master": 1, "Worker": 3}
    made = {
        name: {"replicas": count, "template": template(scheduler)}
        for name, count in replicas.items()
    }
    return workload("kubeflow.org/v1", kind, **run, **{field: made})


def mpi(policy=None, workers=4, **spec):
    run = {} if policy is None else {"runPolicy": {"schedulingPolicy": policy}}
    return workload(
        "kubeflow.org/v2beta1",
        "MPIJob",
        **run,
        **spec,
        mpiReplicaSpecs={
            "Launcher": {"replicas": 1, "template": template(gpus=0)},
            "Worker": {"replicas": workers, "template": template()},
        },
    )


def volcano(least=None, *counts, scheduler=None, of_job=None, **task):
    spec = dict(of_job or {}) if least is None else {"minAvailable": least, **(of_job or {})}
    if scheduler:
        spec["schedulerName"] = scheduler
    tasks = [
        {"name": f"t{number}", "replicas": count, "template": template(), **task}
        for number, count in enumerate(counts)
    ]
    return workload("batch.volcano.sh/v1alpha1", "Job", **spec, tasks=tasks)


def gathered(least="3", kind="Deployment", scheduler="volcano", **spec):
    """Return a workload whose pods Volcano's controllers gather."""
    spec = spec or {"replicas": 4}
    made = workload("batch/v1" if kind == "Job" else "apps/v1", kind, **spec)
    made["spec"]["template"] = template(scheduler)
    made["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": least}
    return made


def ray(kind="RayCluster", labels=None, scheduler=None, groups=(), **more):
    cluster = {
        "headGroupSpec": {"template": template(scheduler, gpus=0)},
        "workerGroupSpecs": [
            {"groupName": f"g{number}", "template": template(scheduler), **one}
            for number, one in enumerate(groups)
        ],
        **more,
    }
    spec = {"RayJob": {"rayClusterSpec": cluster}, "RayService": {"rayClusterConfig": cluster}}
    return workload("ray.io/v1", kind, labels=labels, **spec.get(kind, cluster))


def worker_set(scheduler="quorate", *, leader=True, replicas=2, size=4, **spec):
    both = {"size": size, "workerTemplate": template(scheduler)}
    if leader:
        both["leaderTemplate"] = template(scheduler, gpus=0)
    kind = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    return workload(*kind, replicas=replicas, leaderWorkerTemplate=both, **spec)


def job_set(labels=None, scheduler="quorate", **spec):
    made = {**template(scheduler), "metadata": {"labels": labels or {}}}
    jobs = [
        {
            "name": name,
            "replicas": replicas,
            "template": {"spec": {"parallelism": 3, "completions": 3, "template": {**made}}},
        }
        for name, replicas in (("driver", 1), ("workers", 2))
    ]
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs, **spec)


def runtime(policy=None, name="torch", scheduler="quorate", kind="ClusterTrainingRuntime"):
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs = [
        {
            "name": "prepare",
            "template": {"spec": {"template": template(scheduler, gpus=0)}},
        },
        {
            "name": "node",
            "template": {
                "metadata": {"labels": step},
                "spec": {"template": template(scheduler, gpus=0, name="node")},
            },
        },
    ]
    return workload(
        "trainer.kubeflow.org/v1alpha1",
        kind,
        name,
        **({} if policy is None else {"podGroupPolicy": policy}),
        mlPolicy={"numNodes": 2},
        template={"spec": {"replicatedJobs": jobs}},
    )


def train_job(runtime_name="torch", **spec):
    ref = {"runtimeRef": {"name": runtime_name}}
    return workload("trainer.kubeflow.org/v1alpha1", "TrainJob", **ref, **spec)
