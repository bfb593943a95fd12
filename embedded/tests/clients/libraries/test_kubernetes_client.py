"""The official Python client: typed API, dynamic client, watches."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from embedded.tests.clients.running import config_map, deployment, job, pod, pod_group, train
from tools.testing import HANGS_S, wait_for

GROUP = ("scheduling.x-k8s.io", "v1alpha1")


@pytest.fixture(scope="session")
def connection(kubeconfig) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(kubeconfig) as made:
        yield made


@pytest.fixture
def core(connection) -> client.CoreV1Api:
    return client.CoreV1Api(connection)


@pytest.fixture
def apps(connection) -> client.AppsV1Api:
    return client.AppsV1Api(connection)


@pytest.fixture
def custom(connection) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(connection)


@pytest.fixture(scope="session")
def any_kind(connection) -> dynamic.DynamicClient:
    return dynamic.DynamicClient(connection)


def test_a_pod_is_created_scheduled_run_and_deleted(core, namespace):
    container = client.V1Container(name="main", image="busybox")
    wanted = client.V1Pod(
        metadata=client.V1ObjectMeta(generate_name="solo-"),
        spec=client.V1PodSpec(containers=[container]),
    )
    name = core.create_namespaced_pod(namespace, wanted).metadata.name
    assert name.startswith("solo-")
    running = wait_for(lambda: phase_of(core, namespace, name) == "Running", "the pod runs")
    assert running
    seen = core.read_namespaced_pod(name, namespace)
    assert seen.spec.node_name.startswith("node-")
    assert seen.metadata.creation_timestamp <= datetime.now(UTC)
    core.delete_namespaced_pod(name, namespace, grace_period_seconds=0)
    wait_for(lambda: not core.list_namespaced_pod(namespace).items, "the pod is gone")


def phase_of(core: client.CoreV1Api, namespace: str, name: str) -> str:
    return core.read_namespaced_pod_status(name, namespace).status.phase


def test_a_deployment_is_scaled_by_its_subresource(apps, namespace):
    def ready(count: int) -> bool:
        seen = apps.read_namespaced_deployment_status("web", namespace)
        return seen.status.ready_replicas == seen.status.replicas == count

    apps.create_namespaced_deployment(namespace, deployment())
    wait_for(lambda: ready(2), "two replicas are ready")
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    scale.spec.replicas, scale.metadata.resource_version = 3, None
    apps.replace_namespaced_deployment_scale("web", namespace, scale)
    wait_for(lambda: ready(3), "three replicas are ready")


def test_a_job_and_its_pods_are_deleted_together(connection, core, namespace):
    batch = client.BatchV1Api(connection)
    batch.create_namespaced_job(namespace, job())
    selector = "batch.kubernetes.io/job-name=work"

    def count() -> int:
        return len(core.list_namespaced_pod(namespace, label_selector=selector).items)

    wait_for(lambda: count() == 2, "the job has its pods")
    assert batch.read_namespaced_job("work", namespace).status.active == 2
    batch.delete_namespaced_job("work", namespace, propagation_policy="Foreground")
    wait_for(lambda: count() == 0, "the pods are gone")


def test_custom_objects(custom, namespace):
    where = (*GROUP, namespace, "podgroups")
    custom.create_namespaced_custom_object(*where, pod_group())
    custom.patch_namespaced_custom_object(*where, "gang", {"spec": {"minMember": 3}})
    seen = custom.get_namespaced_custom_object(*where, "gang")
    assert seen["spec"]["minMember"] == 3
    seen["status"] = {"phase": "Pending"}
    custom.replace_namespaced_custom_object_status(*where, "gang", seen)
    items = custom.list_namespaced_custom_object(*where)["items"]
    assert [one["metadata"]["name"] for one in items] == ["gang"]
    custom.delete_namespaced_custom_object(*where, "gang")
    with pytest.raises(ApiException, match="Not Found"):
        custom.get_namespaced_custom_object(*where, "gang")


def test_lists_come_in_pages(core, namespace):
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"page-{number}"))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        assert len(page.items) <= 2
        names += [one.metadata.name for one in page.items if one.metadata.name[:4] == "page"]
        token = page.metadata._continue or ""
    assert names == [f"page-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "2"}]),
        ("application/merge-patch+json", {"data": {"b": "2"}}),
        ("application/strategic-merge-patch+json", {"data": {"b": "2"}}),
    ],
)
def test_patches(core, namespace, content_type, patch):
    core.create_namespaced_config_map(namespace, config_map(a="1"))
    core.patch_namespaced_config_map("settings", namespace, patch, _content_type=content_type)
    assert core.read_namespaced_config_map("settings", namespace).data == {"a": "1", "b": "2"}


def test_errors_are_the_clients_exceptions_with_the_servers_status(core, namespace):
    core.create_namespaced_config_map(namespace, config_map(a="1"))
    refused = {}
    for code, call in {
        404: lambda: core.read_namespaced_config_map("nosuch", namespace),
        409: lambda: core.create_namespaced_config_map(namespace, config_map()),
        422: lambda: core.create_namespaced_config_map(namespace, config_map("Bad_Name")),
    }.items():
        with pytest.raises(ApiException) as caught:
            call()
        assert caught.value.status == code
        refused[code] = caught.value.body
    assert '"reason":"NotFound"' in refused[404]
    assert '"reason":"AlreadyExists"' in refused[409]
    assert '"field":"metadata.name"' in refused[422]


def test_a_stale_write_is_a_conflict(core, namespace):
    first = core.create_namespaced_config_map(namespace, config_map(a="1"))
    core.patch_namespaced_config_map("settings", namespace, {"data": {"a": "2"}})
    with pytest.raises(ApiException) as caught:
        core.replace_namespaced_config_map("settings", namespace, first)
    assert caught.value.status == 409
    assert "the object has been modified" in caught.value.body


def test_a_watch_goes_on_where_it_ended(core, namespace):
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    for number in range(3):
        core.create_namespaced_config_map(namespace, config_map(f"seen-{number}"))
    seen = []
    watching = watch.Watch()
    select = {"namespace": namespace, "resource_version": start, "timeout_seconds": int(HANGS_S)}
    for event in watching.stream(core.list_namespaced_config_map, **select):
        if event["object"].metadata.name.startswith("seen"):
            seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            watching.stop()
    select["resource_version"] = watching.resource_version
    core.delete_namespaced_config_map("seen-0", namespace)
    again = watch.Watch()
    for event in again.stream(core.list_namespaced_config_map, **select):
        if event["object"].metadata.name.startswith("seen"):
            seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 4:
            again.stop()
    added = [("ADDED", f"seen-{number}") for number in range(3)]
    assert seen == [*added, ("DELETED", "seen-0")]


def test_binding_and_eviction(core, namespace):
    wanted = pod()
    wanted["spec"]["schedulerName"] = "by-hand"
    core.create_namespaced_pod(namespace, wanted)
    target = client.V1ObjectReference(kind="Node", name="node-1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="solo"), target=target)
    # The generated client reads the answer as a Binding, which it is not: a known bug of it.
    core.create_namespaced_pod_binding("solo", namespace, binding, _preload_content=False)
    assert core.read_namespaced_pod("solo", namespace).spec.node_name == "node-1"
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="solo"))
    core.create_namespaced_pod_eviction("solo", namespace, eviction)
    wait_for(lambda: not core.list_namespaced_pod(namespace).items, "the pod is evicted")


def test_version_discovery_and_rights(connection):
    assert client.VersionApi(connection).get_code().minor == "36"
    groups = client.ApisApi(connection).get_api_versions().groups
    assert {"apps", "batch", GROUP[0]} <= {group.name for group in groups}
    attributes = client.V1ResourceAttributes(verb="delete", resource="nodes")
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    review = client.V1SelfSubjectAccessReview(spec=spec)
    rights = client.AuthorizationV1Api(connection)
    assert rights.create_self_subject_access_review(review).status.allowed


def test_manifests_are_created_by_the_clients_own_helper(connection, core, namespace):
    for one in (config_map(a="1"), deployment()):
        utils.create_from_dict(connection, one, namespace=namespace)
    assert core.read_namespaced_config_map("settings", namespace).data == {"a": "1"}


def test_the_dynamic_client_finds_every_kind(any_kind, namespace):
    trains = any_kind.resources.get(api_version="rail.example.com/v1", kind="Train")
    made = trains.create(body=train(), namespace=namespace)
    assert (made.spec.line, made.metadata.namespace) == ("red", namespace)
    patch = {"spec": {"cars": 7}}
    merge = "application/merge-patch+json"
    trains.patch(body=patch, name="express", namespace=namespace, content_type=merge)
    assert [one.spec.cars for one in trains.get(namespace=namespace).items] == [7]
    with pytest.raises(ConflictError):
        trains.create(body=train(), namespace=namespace)
    trains.delete(name="express", namespace=namespace)
    with pytest.raises(NotFoundError):
        trains.get(name="express", namespace=namespace)


def test_the_dynamic_client_applies_and_watches(any_kind, namespace):
    maps = any_kind.resources.get(api_version="v1", kind="ConfigMap")
    start = maps.get(namespace=namespace).metadata.resourceVersion
    maps.server_side_apply(
        body=config_map(a="1"), name="settings", namespace=namespace, field_manager="tests"
    )
    events = maps.watch(namespace=namespace, resource_version=start, timeout=int(HANGS_S))
    first = next(event for event in events if event["object"].metadata.name == "settings")
    assert (first["type"], first["object"].data.a) == ("ADDED", "1")
