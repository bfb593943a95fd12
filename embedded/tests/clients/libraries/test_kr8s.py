"""kr8s: objects with methods, in its synchronous and its asynchronous form."""

from collections.abc import AsyncIterator, Iterator
from itertools import islice

import kr8s
import pytest
from kr8s import asyncio as kr8s_asyncio
from kr8s._async_utils import Portal
from kr8s.asyncio.objects import ConfigMap as AsyncConfigMap
from kr8s.asyncio.objects import Deployment as AsyncDeployment
from kr8s.objects import ConfigMap, Deployment, Job, Node, Pod, new_class, objects_from_files

from embedded.tests.clients.running import (
    as_yaml,
    config_map,
    deployment,
    job,
    pod,
    pod_group,
    train,
)
from tools.testing import HANGS_S, wait_for

# The newest kr8s names 1.35 as the last version that it was tested with.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version v1.36:UserWarning")

PodGroup = new_class("PodGroup", "scheduling.x-k8s.io/v1alpha1", asyncio=False)
Train = new_class(
    "Train", "rail.example.com/v1", asyncio=False, scalable=True, scalable_spec="cars"
)


@pytest.fixture(scope="module")
def any_namespace(kubeconfig) -> Iterator[kr8s.Api]:
    made = kr8s.api(kubeconfig=kubeconfig)
    yield made
    # kr8s has no public way to close its connections, and pytest takes open ones for errors.
    Portal().call(made._session.aclose)


@pytest.fixture
def make(any_namespace, namespace):
    """Make an object of a class in the test's namespace."""

    def made(kind, manifest: dict):
        one = kind(manifest, namespace=namespace, api=any_namespace)
        one.create()
        return one

    return made


def test_a_pod_is_created_waited_for_and_deleted(make):
    solo = make(Pod, pod())
    solo.wait("condition=Ready", timeout=HANGS_S)
    assert solo.ready()
    solo.wait("jsonpath='{.status.phase}'=Running", timeout=HANGS_S)
    assert solo.spec.nodeName.startswith("node-")
    solo.delete(grace_period=0)
    solo.wait("delete", timeout=HANGS_S)
    assert not solo.exists()


def test_a_deployment_is_scaled_labelled_and_annotated(make):
    web = make(Deployment, deployment())
    web.scale(3)
    web.wait("condition=Available", timeout=HANGS_S)
    wait_for(web.ready, "all replicas are ready")
    assert len(web.pods()) == 3
    web.label(tier="back")
    web.annotate(note="a")
    web.remove_label("part")
    web.refresh()
    assert (dict(web.labels), web.annotations["note"]) == ({"tier": "back"}, "a")
    web.delete(propagation_policy="Foreground")
    web.wait("delete", timeout=HANGS_S)


def test_a_job_and_its_pods(make, any_namespace, namespace):
    work = make(Job, job())

    def pods() -> list[Pod]:
        found = any_namespace.get("pods", namespace=namespace, label_selector="job-name=work")
        return list(found)

    wait_for(lambda: len(pods()) == 2, "the job has its pods")
    for one in pods():
        one.wait("condition=Ready", timeout=HANGS_S)
    work.delete(propagation_policy="Background")
    wait_for(lambda: not pods(), "the pods are gone")


def test_patches(make):
    settings = make(ConfigMap, config_map(a="1"))
    settings.patch({"data": {"b": "2"}})
    settings.patch([{"op": "remove", "path": "/data/a"}], type="json")
    assert dict(settings.data) == {"b": "2"}


def test_objects_of_definitions(make, any_namespace, namespace):
    make(PodGroup, pod_group())
    express = make(Train, train())
    express.patch({"status": {"cars": 4}}, subresource="status")
    express.refresh()
    assert (express.spec.line, express.status.cars) == ("red", 4)
    found = any_namespace.get("podgroups.scheduling.x-k8s.io", namespace=namespace)
    assert [one.name for one in found] == ["gang"]


def test_what_is_got_by_kind_name_label_and_field(make, any_namespace, namespace):
    for name in ("a", "b"):
        made = config_map(name)
        made["metadata"]["labels"] = {"name": name}
        make(ConfigMap, made)

    def names(*args, **select) -> list[str]:
        found = any_namespace.get("configmaps", *args, namespace=namespace, **select)
        return [one.name for one in found]

    assert names("b") == ["b"]
    assert names(label_selector={"name": "a"}) == ["a"]
    assert names(field_selector="metadata.name!=b,metadata.name!=kube-root-ca.crt") == ["a"]
    nodes = list(Node.list(api=any_namespace))
    assert all(node.status.capacity for node in nodes)


def test_a_watch_goes_on_from_a_revision(make, any_namespace, namespace):
    first = make(ConfigMap, config_map("one"))
    since = first.metadata.resourceVersion
    make(ConfigMap, config_map("two"))
    first.delete()
    events = any_namespace.watch("configmaps", namespace=namespace, since=since)
    seen = [(what, one.name) for what, one in islice(events, 2)]
    assert seen == [("ADDED", "two"), ("DELETED", "one")]


def test_errors_are_the_clients_own(make, any_namespace, namespace):
    make(ConfigMap, config_map())
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("nosuch", namespace=namespace, api=any_namespace)
    refused = []
    for one in (config_map(), config_map("Bad_Name")):
        with pytest.raises(kr8s.ServerError) as caught:
            make(ConfigMap, one)
        refused.append(caught.value.status["reason"])
    assert refused == ["AlreadyExists", "Invalid"]


def test_what_needs_a_container_is_refused(make, on_real):
    if on_real:
        pytest.skip("a real control plane without containers says it otherwise")
    solo = make(Pod, pod())
    solo.wait("condition=Ready", timeout=HANGS_S)
    with pytest.raises(kr8s.ServerError, match="no container runs in an embedded cluster"):
        list(solo.logs())


def test_files_versions_and_who_am_i(any_namespace, namespace, tmp_path):
    path = tmp_path / "web.yaml"
    path.write_text(as_yaml(deployment(), config_map(a="1")))
    for one in objects_from_files(str(path), api=any_namespace):
        one.namespace = namespace
        one.create()
        assert one.exists()
    assert any_namespace.version()["minor"] == "36"
    assert "admin" in any_namespace.whoami()
    assert "scheduling.x-k8s.io/v1alpha1" in list(any_namespace.api_versions())


@pytest.fixture
async def api(kubeconfig) -> AsyncIterator[kr8s_asyncio.Api]:
    made = await kr8s_asyncio.api(kubeconfig=kubeconfig)
    yield made
    await made._session.aclose()


async def test_the_asynchronous_form(api, namespace):
    web = await AsyncDeployment(deployment(), namespace=namespace, api=api)
    await web.create()
    await web.wait("condition=Available", timeout=HANGS_S)
    await web.scale(1)
    assert web.replicas == 1
    pods = [one async for one in api.get("pods", namespace=namespace)]
    assert pods
    await AsyncConfigMap(config_map("seen"), namespace=namespace, api=api).create()
    async for what, one in api.watch("configmaps", namespace=namespace):
        if one.name == "seen":
            assert what == "ADDED"
            break
    with pytest.raises(kr8s.NotFoundError):
        await AsyncConfigMap.get("nosuch", namespace=namespace, api=api)
    await web.delete()
