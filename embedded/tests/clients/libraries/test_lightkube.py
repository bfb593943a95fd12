"""lightkube: typed models on httpx, with generic resources for CRDs."""

from itertools import islice

import lightkube
import pytest
from lightkube import codecs
from lightkube.core.exceptions import ApiError, ConditionError
from lightkube.generic_resource import create_namespaced_resource, load_in_cluster_generic_resources
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import CascadeType, PatchType

from embedded.tests.clients.running import as_yaml, config_map, deployment, job, pod_group, train
from tools.testing import HANGS_S, wait_for

Train = create_namespaced_resource("rail.example.com", "v1", "Train", "trains")


@pytest.fixture
def kube(kubeconfig, namespace):
    made = lightkube.Client(
        config=lightkube.KubeConfig.from_file(kubeconfig),
        namespace=namespace,
        field_manager="tests",
    )
    yield made
    made._client._client.close()


@pytest.fixture
async def aio(kubeconfig, namespace):
    made = lightkube.AsyncClient(
        config=lightkube.KubeConfig.from_file(kubeconfig), namespace=namespace
    )
    yield made
    await made.close()


def test_a_pod_runs_and_goes(kube):
    wanted = Pod(
        metadata=ObjectMeta(generateName="solo-"),
        spec=PodSpec(containers=[Container(name="main", image="busybox")]),
    )
    name = kube.create(wanted).metadata.name
    ready = kube.wait(Pod, name, for_conditions=["Ready"])
    assert ready.status.phase == "Running"
    assert ready.spec.nodeName in {node.metadata.name for node in kube.list(Node)}
    kube.delete(Pod, name, grace_period=0)
    wait_for(lambda: not list(kube.list(Pod)), "the pod is gone")


def test_a_deployment_is_applied_scaled_and_becomes_available(kube):
    for one in codecs.load_all_yaml(as_yaml(deployment(), config_map(a="1"))):
        kube.apply(one)
    kube.wait(Deployment, "web", for_conditions=["Available"])
    scale = kube.get(Deployment.Scale, "web")
    scale.spec.replicas = 3
    kube.replace(scale, "web")
    kube.wait(Deployment, "web", for_conditions=["Available"])
    assert kube.get(Deployment, "web").spec.replicas == 3
    status = kube.get(Deployment.Status, "web").status
    assert status.observedGeneration >= 1
    kube.delete(Deployment, "web", cascade=CascadeType.FOREGROUND)


def test_a_job_makes_pods_and_takes_them_along(kube):
    kube.create(Job.from_dict(job()))
    of_job = {"labels": {"job-name": "work"}}
    wait_for(lambda: len(list(kube.list(Pod, **of_job))) == 2, "the job has its pods")
    kube.delete(Job, "work", cascade=CascadeType.BACKGROUND)
    wait_for(lambda: not list(kube.list(Pod, **of_job)), "the pods are gone")


def test_waiting_ends_early_for_a_condition_that_is_a_failure(kube):
    kube.create(Deployment.from_dict(deployment()))
    unwanted = {"for_conditions": ["Nosuch"], "raise_for_conditions": ["Available"]}
    with pytest.raises(ConditionError):
        kube.wait(Deployment, "web", **unwanted)


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        (PatchType.JSON, [{"op": "add", "path": "/data/b", "value": "2"}]),
        (PatchType.MERGE, {"data": {"b": "2"}}),
        (PatchType.STRATEGIC, {"data": {"b": "2"}}),
        (PatchType.APPLY, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2"}}),
    ],
)
def test_patches(kube, type_, patch):
    kube.create(ConfigMap.from_dict(config_map(a="1")))
    kube.patch(ConfigMap, "settings", patch, patch_type=type_)
    assert kube.get(ConfigMap, "settings").data == {"a": "1", "b": "2"}


def test_lists_come_in_chunks_and_by_label(kube):
    for number in range(5):
        labels = {"odd": str(number % 2)}
        kube.create(ConfigMap(metadata=ObjectMeta(name=f"c-{number}", labels=labels)))
    odd = kube.list(ConfigMap, labels={"odd": "1"}, chunk_size=1)
    assert [one.metadata.name for one in odd] == ["c-1", "c-3"]
    by_field = kube.list(ConfigMap, fields={"metadata.name": "c-4"})
    assert [one.metadata.name for one in by_field] == ["c-4"]


def test_a_watch_goes_on_from_the_last_revision(kube):
    before = kube.list(ConfigMap)
    assert [one.metadata.name for one in before] == ["kube-root-ca.crt"]
    start = before.resourceVersion
    for name in ("one", "two"):
        kube.create(ConfigMap.from_dict(config_map(name)))
    select = {"fields": {"metadata.name!": "kube-root-ca.crt"}, "server_timeout": int(HANGS_S)}
    events = list(islice(kube.watch(ConfigMap, resource_version=start, **select), 1))
    assert [(what, one.metadata.name) for what, one in events] == [("ADDED", "one")]
    revision = events[0][1].metadata.resourceVersion
    kube.delete(ConfigMap, "one")
    events = list(islice(kube.watch(ConfigMap, resource_version=revision, **select), 2))
    seen = [(what, one.metadata.name) for what, one in events]
    assert seen == [("ADDED", "two"), ("DELETED", "one")]


def test_errors_are_api_errors_with_the_servers_status(kube):
    kube.create(ConfigMap.from_dict(config_map()))
    refused = []
    for call in (
        lambda: kube.get(ConfigMap, "nosuch"),
        lambda: kube.create(ConfigMap.from_dict(config_map())),
        lambda: kube.create(ConfigMap.from_dict(config_map("Bad_Name"))),
    ):
        with pytest.raises(ApiError) as caught:
            call()
        refused.append((caught.value.status.code, caught.value.status.reason))
    assert refused == [(404, "NotFound"), (409, "AlreadyExists"), (422, "Invalid")]
    causes = caught.value.status.details.causes
    assert [cause.field for cause in causes] == ["metadata.name"]


def test_generic_resources_of_definitions(kube):
    kube.create(Train.from_dict(train()))
    assert kube.get(Train, "express").spec == {"cars": 4, "line": "red"}
    kube.patch(Train, "express", {"spec": {"cars": 5}}, patch_type=PatchType.MERGE)
    kube.patch(Train.Status, "express", {"status": {"cars": 5}}, patch_type=PatchType.MERGE)
    assert kube.get(Train, "express").status == {"cars": 5}
    kube.delete(Train, "express")


def test_generic_resources_are_found_in_the_cluster(kube):
    load_in_cluster_generic_resources(kube)
    kind = lightkube.generic_resource.get_generic_resource(
        "scheduling.x-k8s.io/v1alpha1", "PodGroup"
    )
    kube.create(kind.from_dict(pod_group()))
    assert [one.metadata.name for one in kube.list(kind)] == ["gang"]


async def test_the_asynchronous_client(aio):
    await aio.create(Deployment.from_dict(deployment()))
    await aio.wait(Deployment, "web", for_conditions=["Available"])
    pods = [one async for one in aio.list(Pod, labels={"app": "web"})]
    assert [one.status.phase for one in pods] == ["Running"] * 2
    async for what, one in aio.watch(Pod, labels={"app": "web"}, server_timeout=int(HANGS_S)):
        assert (what, one.metadata.labels["app"]) == ("ADDED", "web")
        break
    with pytest.raises(ApiError, match="not found"):
        await aio.get(Pod, "nosuch")
