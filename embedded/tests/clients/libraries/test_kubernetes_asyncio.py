"""kubernetes_asyncio: the generated client on asyncio, with watches and the dynamic client."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from kubernetes_asyncio import client, config, dynamic, watch
from kubernetes_asyncio.client.exceptions import ApiException

from embedded.tests.clients.running import config_map, deployment, job, pod_group
from tools.testing import HANGS_S


@pytest.fixture
async def connection(kubeconfig) -> AsyncIterator[client.ApiClient]:
    configuration = client.Configuration()
    await config.load_kube_config(kubeconfig, client_configuration=configuration)
    async with client.ApiClient(configuration) as made:
        yield made


@pytest.fixture
async def core(connection) -> client.CoreV1Api:
    return client.CoreV1Api(connection)


async def seen_until(done, listing, namespace: str, **options) -> list[tuple[str, str]]:
    """Watch until ``done`` says so of the events seen so far; fail when it never does."""
    seen: list[tuple[str, str]] = []
    async with (
        asyncio.timeout(HANGS_S),
        watch.Watch().stream(listing, namespace, **options) as events,
    ):
        async for event in events:
            seen.append((event["type"], event["object"].metadata.name))
            if done(event):
                break
    return seen


async def test_a_job_runs_and_a_watch_sees_its_pods(connection, core, namespace):
    start = (await core.list_namespaced_pod(namespace)).metadata.resource_version
    await client.BatchV1Api(connection).create_namespaced_job(namespace, job())
    running: set[str] = set()

    def both_run(event) -> bool:
        if event["object"].status.phase == "Running":
            running.add(event["object"].metadata.name)
        return len(running) == 2

    seen = await seen_until(both_run, core.list_namespaced_pod, namespace, resource_version=start)
    assert [type_ for type_, _ in seen].count("ADDED") == 2
    assert {name for _, name in seen} == running


async def test_a_watch_with_bookmarks_starts_with_what_is_there(core, namespace):
    await core.create_namespaced_config_map(namespace, config_map("one", a="1"))

    def is_one(event) -> bool:
        return event["object"].metadata.name == "one"

    seen = await seen_until(
        is_one, core.list_namespaced_config_map, namespace, allow_watch_bookmarks=True
    )
    assert seen[-1] == ("ADDED", "one")


async def test_many_requests_at_once(core, namespace):
    names = [f"many-{number:02}" for number in range(40)]
    bodies = [config_map(name) for name in names]
    await asyncio.gather(*(core.create_namespaced_config_map(namespace, one) for one in bodies))
    found, token = [], ""
    while True:
        page = await core.list_namespaced_config_map(namespace, limit=7, _continue=token)
        found += [one.metadata.name for one in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert [name for name in found if name.startswith("many")] == names


async def test_a_deployment_is_patched_and_scaled(connection, namespace):
    apps = client.AppsV1Api(connection)
    await apps.create_namespaced_deployment(namespace, deployment())
    container = {"name": "main", "image": "nginx:9"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    seen = await apps.patch_namespaced_deployment("web", namespace, patch)
    assert seen.spec.template.spec.containers[0].image == "nginx:9"
    scaled = {"spec": {"replicas": 3}}
    answer = await apps.patch_namespaced_deployment_scale("web", namespace, scaled)
    assert answer.spec.replicas == 3
    await apps.delete_namespaced_deployment("web", namespace)


async def test_custom_objects(connection, namespace):
    custom = client.CustomObjectsApi(connection)
    where = ("scheduling.x-k8s.io", "v1alpha1", namespace, "podgroups")
    await custom.create_namespaced_custom_object(*where, pod_group())
    patch = [{"op": "replace", "path": "/spec/minMember", "value": 5}]
    await custom.patch_namespaced_custom_object(
        *where, "gang", patch, _content_type="application/json-patch+json"
    )
    seen = await custom.get_namespaced_custom_object(*where, "gang")
    assert seen["spec"]["minMember"] == 5


async def test_errors_are_the_clients_exceptions(core, namespace):
    await core.create_namespaced_config_map(namespace, config_map())
    with pytest.raises(ApiException) as missing:
        await core.read_namespaced_config_map("nosuch", namespace)
    with pytest.raises(ApiException) as twice:
        await core.create_namespaced_config_map(namespace, config_map())
    with pytest.raises(ApiException) as invalid:
        await core.create_namespaced_config_map(namespace, config_map("Bad_Name"))
    assert [e.value.status for e in (missing, twice, invalid)] == [404, 409, 422]
    assert '"reason":"Invalid"' in invalid.value.body


async def test_the_dynamic_client(connection, namespace):
    found = await dynamic.DynamicClient(connection)
    groups = await found.resources.get(api_version="scheduling.x-k8s.io/v1alpha1", kind="PodGroup")
    await groups.create(body=pod_group(), namespace=namespace)
    seen = await groups.get(namespace=namespace)
    assert [one.metadata.name for one in seen.items] == ["gang"]
