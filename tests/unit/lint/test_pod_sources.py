"""Goal: pods are found, and counted, in whatever makes them."""

import pytest

from quorate.lint.objects import objects_of, path_text
from quorate.lint.pod_sources import pod_sources
from quorate.lint.tree import Document
from tests.unit.lint.world import meta, pod, template


def sources(api_version, kind, spec, **more):
    made = {"apiVersion": api_version, "kind": kind, "metadata": meta("w"), "spec": spec, **more}
    (found,) = objects_of("f", Document(0, made, 1))
    return pod_sources(found, "default")


def counts(api_version, kind, spec, **more):
    return [source.count for source in sources(api_version, kind, spec, **more)]


T = template()
JOB = {"parallelism": 3, "completions": 9, "template": T}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "expected"),
    [
        ("apps/v1", "Deployment", {"replicas": 4, "template": T}, [4]),
        ("apps/v1", "Deployment", {"template": T}, [1]),
        ("apps/v1", "StatefulSet", {"replicas": 0, "template": T}, [0]),
        ("apps/v1", "ReplicaSet", {"replicas": 2, "template": T}, [2]),
        ("v1", "ReplicationController", {"replicas": 2, "template": T}, [2]),
        ("apps/v1", "DaemonSet", {"template": T}, [None]),
        ("batch/v1", "Job", {"template": T}, [1]),
        ("batch/v1", "Job", {"parallelism": 3, "template": T}, [3]),
        ("batch/v1", "Job", {"completions": 3, "template": T}, [1]),
        ("batch/v1", "Job", JOB, [3]),
        ("batch/v1", "Job", {**JOB, "completions": 2}, [2]),
        ("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": JOB}}, [3]),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {
                "replicatedJobs": [
                    {"name": "a", "replicas": 2, "template": {"spec": JOB}},
                    {"name": "b", "template": {"spec": {"template": T}}},
                ]
            },
            [6, 1],
        ),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Master": {"template": T},
                    "Worker": {"replicas": 3, "template": T},
                }
            },
            [1, 3],
        ),
        (
            "kubeflow.org/v2beta1",
            "MPIJob",
            {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": T}}},
            [1],
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {
                "headGroupSpec": {"template": T},
                "workerGroupSpecs": [
                    {"groupName": "a", "replicas": 2, "numOfHosts": 2, "template": T},
                    {"groupName": "b", "minReplicas": 1, "template": T},
                ],
            },
            [1, 4, None],
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {
                "replicas": 2,
                "leaderWorkerTemplate": {"size": 4, "leaderTemplate": T, "workerTemplate": T},
            },
            [2, 6],
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"size": 4, "workerTemplate": T}},
            [4],
        ),
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"tasks": [{"name": "w", "replicas": 3, "template": T}]},
            [3],
        ),
        ("example.com/v1", "Anything", {"deep": {"er": [{"replicas": 2, "template": T}]}}, [2]),
        ("apps/v1", "Deployment", {"replicas": "4", "template": T}, [None]),
        ("v1", "ConfigMap", {"template": T}, []),
        ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", {"template": {"spec": JOB}}, [None]),
    ],
)
def test_counts(api_version, kind, spec, expected):
    assert counts(api_version, kind, spec) == expected


def test_a_pod_is_one_and_a_pod_template_none_of_its_own():
    made = pod()
    (found,) = objects_of("f", Document(0, made, 1))
    (source,) = pod_sources(found, "default")
    assert (source.count, source.path, source.title) == (1, (), "Pod p")
    assert counts("v1", "PodTemplate", None, template=T) == [None]


def test_parts_are_named_as_their_object_names_them():
    jobs = [{"name": "driver", "template": {"spec": JOB}}]
    (source,) = sources("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    assert source.title == "JobSet w (driver)"
    assert path_text(source.path) == "spec.replicatedJobs[0].template.spec.template"
    assert path_text(source.count_path) == "spec.replicatedJobs[0].template.spec.parallelism"
    specs = {"pytorchReplicaSpecs": {"Worker": {"template": T}}}
    assert sources("kubeflow.org/v1", "PyTorchJob", specs)[0].title == "PyTorchJob w (Worker)"
    assert sources("batch/v1", "CronJob", {"jobTemplate": {"spec": JOB}})[0].title == "CronJob w"


def test_a_volcano_jobs_pods_have_its_scheduler():
    bare = template()
    del bare["spec"]["schedulerName"]
    tasks = {"tasks": [{"template": bare}]}
    volcano = ("batch.volcano.sh/v1alpha1", "Job")
    assert sources(*volcano, tasks)[0].scheduler == "volcano"
    assert sources(*volcano, {**tasks, "schedulerName": "quorate"})[0].scheduler == "quorate"
    assert sources("batch/v1", "Job", {"template": bare})[0].scheduler == "default-scheduler"


def test_templates_nested_without_end_are_not_followed():
    spec: dict = {"template": T}
    for _ in range(500):
        spec = {"template": {"spec": spec}}
    assert counts("example.com/v1", "Deep", spec) == []
