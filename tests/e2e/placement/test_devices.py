"""Gangs whose pods claim devices: all claims are allocated before any pod is bound, or none is."""

import itertools

import pytest

from tests.e2e.harness.devices import API, DRIVER, RESOURCE, claims, gpus
from tests.e2e.harness.recording_proxy import Recording
from tools.objects import gang_pods, pod, pod_group
from tools.testing import wait_for

pytestmark = pytest.mark.core


@pytest.fixture
def devices(cluster):
    """Write slices and classes, and remove them after the test."""
    made = []

    def write(plural: str, kind: str, name: str, spec: dict) -> None:
        body = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        cluster.api("POST", f"{API}/{plural}", body | {"spec": spec})
        made.append(f"{API}/{plural}/{name}")

    yield write
    for path in made:
        cluster.api("DELETE", path)


def one_gpu(
    expression: str = f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("40Gi"))',
):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu"},
        "spec": {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "exactly": {
                                "deviceClassName": "gpus",
                                "selectors": [{"cel": {"expression": expression}}],
                            },
                        }
                    ]
                }
            }
        },
    }


def gang_with_gpus(world, count: int) -> list[dict]:
    world.apply(pod_group("g", count))
    pods = gang_pods("g", count)
    for one in pods:
        one["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    return pods


def allocated(world) -> list[str]:
    return [
        f"{one['pool']}/{one['device']}"
        for claim in claims(world)
        for one in claim.get("status", {})
        .get("allocation", {})
        .get("devices", {})
        .get("results", ())
    ]


def gpu_class(devices) -> None:
    devices(
        "deviceclasses",
        "DeviceClass",
        "gpus",
        {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    )


def test_a_gang_with_a_claim_each_starts_whole_with_its_devices(world, devices):
    nodes = world.nodes(2)
    gpu_class(devices)
    for node in nodes:
        devices("resourceslices", "ResourceSlice", f"{node}-gpus", gpus(node, 2))
    world.apply(one_gpu())
    world.create_pods(gang_with_gpus(world, 4))
    world.wait_bound(4)
    assert sorted(allocated(world)) == sorted(f"{node}/gpu-{i}" for node in nodes for i in (0, 1))
    where = {one["metadata"]["uid"]: one["spec"]["nodeName"] for one in world.pods()}
    for claim in claims(world):
        [user] = claim["status"]["reservedFor"]
        [given] = claim["status"]["allocation"]["devices"]["results"]
        assert given["pool"] == where[user["uid"]]
        assert "resource.kubernetes.io/delete-protection" in claim["metadata"]["finalizers"]


def test_with_too_few_devices_nothing_starts_and_no_claim_keeps_one(world, devices):
    [node] = world.nodes(1)
    gpu_class(devices)
    devices("resourceslices", "ResourceSlice", f"{node}-gpus", gpus(node, 3))
    world.apply(one_gpu())
    world.create_pods(gang_with_gpus(world, 4))
    world.wait_condition("1 cannot allocate all claims")
    world.stays_unbound()
    assert allocated(world) == []
    more = world.nodes(1, prefix=f"{world.namespace}-more-")[0]
    devices("resourceslices", "ResourceSlice", f"{more}-gpus", gpus(more, 1))
    world.wait_bound(4)
    assert len(set(allocated(world))) == 4


def test_what_a_failed_attempt_wrote_is_taken_back(world, devices):
    """A claim that its waiting pod holds and cannot use, as a dead leader leaves it."""
    [node] = world.nodes(1)
    gpu_class(devices)
    devices("resourceslices", "ResourceSlice", f"{node}-gpus", gpus(node, 3))
    world.apply(one_gpu())
    pods = gang_with_gpus(world, 4)
    world.create_pods(pods[:3])
    made = wait_for(lambda: len(claims(world)) == 3 and claims(world), "claims are made")
    claim = made[0]
    owner = claim["metadata"]["ownerReferences"][0]
    status = {
        "allocation": {
            "devices": {
                "results": [{"request": "gpu", "driver": DRIVER, "pool": node, "device": "gpu-0"}]
            }
        },
        "reservedFor": [{"resource": "pods", "name": owner["name"], "uid": owner["uid"]}],
    }
    path = f"{API}/namespaces/{world.namespace}/resourceclaims/{claim['metadata']['name']}/status"
    kind = "application/merge-patch+json"
    world.cluster.api("PATCH", path, {"status": status}, content_type=kind)
    wait_for(lambda: allocated(world) == [], "the device is taken back")
    world.stays_unbound()


def claiming(world, name: str, claim: str) -> dict:
    made = pod(name, scheduler=world.scheduler)
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return made


def test_a_device_stays_given_while_a_write_of_its_claim_is_held_up(apart, beside, devices):
    """Two pods share a claim. The first goes while the second one's write is on its way."""
    writes = itertools.count()

    def holds(method: str, path: str) -> bool:
        is_write = method == "PATCH" and path.partition("?")[0].endswith("/resourceclaims/shared")
        return is_write and next(writes) == 1

    [node] = apart.nodes(1)
    gpu_class(devices)
    devices("resourceslices", "ResourceSlice", f"{node}-gpus", gpus(node, 1))
    cluster = apart.cluster
    with Recording(cluster.server, str(cluster.ca), holds=holds) as proxy:
        beside(through=proxy.url)
        spec = one_gpu()["spec"]["spec"]
        for name in ("shared", "other"):
            claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}
            apart.apply(claim | {"metadata": {"name": name}})
        apart.create_pods([claiming(apart, "p-0", "shared"), claiming(apart, "p-1", "shared")])
        wait_for(lambda: proxy.held, "the write of one of them is held up")
        apart.wait_bound(1)
        [first] = apart.where()
        apart.delete_pod(first, wait=True)
        wait_for(lambda: allocated(apart) == [], "the claim is freed: nobody uses it")
        apart.create_pod(claiming(apart, "q", "other"))
        apart.wait_condition("1 cannot allocate all claims")
        proxy.release()
        apart.wait_bound(1)
        assert "q" not in apart.where()
        assert allocated(apart) == [f"{node}/gpu-0"]
        apart.delete_pods()


def test_what_is_not_supported_waits_with_the_object_and_the_field(world, devices):
    """A constraint of a claim, and a resource that a class backs and no node lists."""
    [node] = world.nodes(1)
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    backs = {"selectors": selectors, "extendedResourceName": RESOURCE}
    devices("deviceclasses", "DeviceClass", "gpus", backs)
    devices("resourceslices", "ResourceSlice", f"{node}-gpus", gpus(node, 2))
    spec = one_gpu()["spec"]["spec"]
    spec["devices"]["constraints"] = [{"matchAttribute": f"{DRIVER}/model"}]
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}
    world.apply(claim | {"metadata": {"name": "alike"}})
    world.create_pod(claiming(world, "p", "alike"))
    world.wait_condition("spec.devices.constraints[0].matchAttribute is not supported")
    world.delete_pods()
    world.create_pod(pod("q", requests={RESOURCE: "1"}))
    world.wait_condition("backed by spec.extendedResourceName of DeviceClass gpus")
    world.stays_unbound()
