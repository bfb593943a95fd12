"""TrainJobs of Kubeflow's trainer, whose pods are templates of a runtime.

Source: trainer 2, pkg/runtime/framework/plugins/coscheduling and volcano.
"""

from __future__ import annotations

from quorate.lint.added_labels import JOBSET_NAME
from quorate.lint.objects import Json, KubeObject, mapping, text, value_at
from quorate.lint.pod_sources import PodSource, made_of, templates_of
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

RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODES: Path = ("spec", "trainer", "numNodes")


def train_job(job: Workload) -> Promise | None:
    """One gang of all pods, if the files have its runtime and that has a ``podGroupPolicy``."""
    runtime = runtime_of(job)
    if runtime is None:
        return None
    policy = mapping(runtime.spec().get("podGroupPolicy"))
    if not policy:
        return None
    sources = tuple(_made(job, runtime, one) for one in templates_of(runtime, job.namespace))
    return Promise(
        job.object,
        VOLCANO_API if VOLCANO in policy else COSCHEDULING_API,
        job.object.name,
        sources,
        total(sources),
        _NODES if value_at(job.object.value, _NODES) is not None else ("spec",),
        "Kubeflow's trainer",
    )


def runtime_of(job: Workload) -> KubeObject | None:
    """Return the runtime that a TrainJob names; None if no file has it."""
    ref = mapping(job.object.spec().get("runtimeRef"))
    kind = text(ref.get("kind")) or "ClusterTrainingRuntime"
    where = "" if kind == "ClusterTrainingRuntime" else job.namespace
    return job.runtimes.get((kind, where, text(ref.get("name"))))


def _made(job: Workload, runtime: KubeObject, found: PodSource) -> PodSource:
    """Return a template of the runtime with what the job says of its trainer."""
    template_of_job = mapping(value_at(runtime.value, found.path[:-2]))
    labels = mapping(mapping(template_of_job.get("metadata")).get("labels"))
    replicated = mapping(value_at(runtime.value, found.path[:-3]))
    step = text(labels.get(_STEP)) or {"node": "trainer"}.get(text(replicated.get("name")), "")
    own = _with_label(found.template, JOBSET_NAME, job.object.name)
    if step != "trainer":
        return made_of(runtime, found.path, own, found.count, found.count_path, job.namespace)
    trainer = mapping(job.object.spec().get("trainer"))
    nodes = trainer.get("numNodes", mapping(runtime.spec().get("mlPolicy")).get("numNodes", 1))
    template = _with_resources(own, mapping(trainer.get("resourcesPerNode")))
    return made_of(runtime, found.path, template, whole(nodes), _NODES, job.namespace)


def _with_label(template: Json, key: str, value: str) -> Json:
    """Return the template with one label more: the JobSet that a TrainJob makes has its name."""
    metadata = mapping(template.get("metadata"))
    labels = {key: value, **mapping(metadata.get("labels"))}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _with_resources(template: Json, resources: Json) -> Json:
    """Return the template with the resources of its container ``node`` replaced, if any are."""
    spec = mapping(template.get("spec"))
    containers = spec.get("containers")
    if not resources or not isinstance(containers, list):
        return template
    filled = [
        {**one, "resources": resources} if mapping(one).get("name") == "node" else one
        for one in containers
    ]
    return {**template, "spec": {**spec, "containers": filled}}
