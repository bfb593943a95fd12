"""Volumes and devices: what plugins read through caches of their own."""

from tests.oracle.objects import DEFAULT, HOST, ZONE, node, pod
from tools import objects
from tools.objects import Object, named
from tools.oracle import Oracle

STORAGE = "storage.k8s.io/v1"
RESOURCE = "resource.k8s.io/v1"


def in_zone(zone: str) -> Object:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def volume(name: str, zone: str, size: str = "10Gi", **spec: object) -> Object:
    return named(
        "PersistentVolume",
        "v1",
        name,
        spec={
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": in_zone(zone)},
            **spec,
        },
        status={"phase": "Available"},
    )


def claim(name: str, **spec: object) -> Object:
    known = {"storageClassName": "local", "resources": {"requests": {"storage": "5Gi"}}, **spec}
    return objects.claim(name, metadata=DEFAULT, status={"phase": "Pending"}, **known)


LOCAL = named(
    "StorageClass",
    STORAGE,
    "local",
    provisioner="kubernetes.io/no-provisioner",
    volumeBindingMode="WaitForFirstConsumer",
)


def using(name: str, claim_name: str) -> Object:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, volumes=volumes)


def test_late_binding_looks_for_a_volume_that_the_node_reaches(oracle: Oracle):
    case = {
        "nodes": [node("a", zone="a"), node("b", zone="b")],
        "objects": [LOCAL, volume("v", "b"), claim("data")],
        "pod": using("p", "data"),
    }
    answer = oracle.ask(case)
    assert answer["feasible"] == ["b"]
    reason = "node(s) didn't find available persistent volumes to bind"
    assert answer["filter"]["a"]["VolumeBinding"]["reasons"] == [reason]


def test_a_volume_goes_to_one_pod_of_a_sequence(oracle: Oracle):
    case = {
        "nodes": [node("a", zone="a"), node("b", zone="b")],
        "objects": [LOCAL, volume("v", "b"), claim("one"), claim("two")],
        "sequence": [{"pod": using("p1", "one")}, {"pod": using("p2", "two")}],
    }
    for _ in range(2):  # nothing stays reserved for the next case
        first, second = oracle.ask(case)["steps"]
        assert first["assumed"] == "b"
        assert second["feasible"] == []


def test_a_claim_without_late_binding_must_be_bound(oracle: Oracle):
    now = named("StorageClass", STORAGE, "local", provisioner="x", volumeBindingMode="Immediate")
    case = {"nodes": [node("a")], "objects": [now, claim("data")], "pod": using("p", "data")}
    reason = "pod has unbound immediate PersistentVolumeClaims"
    assert oracle.ask(case)["preFilter"]["VolumeBinding"]["reasons"] == [reason]


def test_volumes_per_node_are_limited(oracle: Oracle):
    driver = {"name": "csi.example", "nodeID": "a", "allocatable": {"count": 1}}
    late = named(
        "StorageClass",
        STORAGE,
        "local",
        provisioner="csi.example",
        volumeBindingMode="WaitForFirstConsumer",
    )
    running = {**using("r", "one"), "spec": {**using("r", "one")["spec"], "nodeName": "a"}}
    case = {
        "nodes": [node("a"), node("b")],
        "pods": [running],
        "objects": [
            late,
            claim("one"),
            claim("two"),
            named("CSINode", STORAGE, "a", spec={"drivers": [driver]}),
        ],
        "pod": using("p", "two"),
    }
    answer = oracle.ask(case)
    reason = "node(s) exceed max volume count"
    assert answer["filter"]["a"]["NodeVolumeLimits"]["reasons"] == [reason]
    assert answer["feasible"] == ["b"]


def gpus(host: str, count: int) -> Object:
    pool = {"name": host, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{i}"} for i in range(count)]
    spec = {"driver": "gpu.example", "nodeName": host, "pool": pool, "devices": devices}
    return named("ResourceSlice", RESOURCE, f"{host}-gpus", spec=spec)


GPU_CLASS = named(
    "DeviceClass",
    RESOURCE,
    "gpu",
    spec={"selectors": [{"cel": {"expression": 'device.driver == "gpu.example"'}}]},
)


def gpu_claim(name: str, count: int = 1) -> Object:
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu", "count": count}}
    spec = {"devices": {"requests": [request]}}
    return named("ResourceClaim", RESOURCE, name, metadata=DEFAULT, spec=spec)


def with_claim(name: str, claim_name: str) -> Object:
    made = pod(name, resourceClaims=[{"name": "gpus", "resourceClaimName": claim_name}])
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    return made


def test_devices_are_allocated_where_there_are_enough(oracle: Oracle):
    case = {
        "nodes": [node("a"), node("b")],
        "objects": [GPU_CLASS, gpus("a", 1), gpus("b", 2), gpu_claim("two", 2)],
        "pod": with_claim("p", "two"),
    }
    answer = oracle.ask(case)
    assert answer["feasible"] == ["b"]
    reason = "cannot allocate all claims"
    assert answer["filter"]["a"]["DynamicResources"]["reasons"] == [reason]


def test_a_device_goes_to_one_pod_of_a_sequence(oracle: Oracle):
    case = {
        "nodes": [node("a")],
        "objects": [GPU_CLASS, gpus("a", 2)] + [gpu_claim(f"c{i}") for i in range(3)],
        "sequence": [{"pod": with_claim(f"p{i}", f"c{i}")} for i in range(3)],
    }
    for _ in range(2):
        steps = oracle.ask(case)["steps"]
        assert [step.get("assumed") for step in steps] == ["a", "a", None]


def test_an_allocated_claim_holds_its_pod_to_the_node(oracle: Oracle):
    expression = {"key": HOST, "operator": "In", "values": ["b"]}
    allocated = gpu_claim("gpu")
    result = {"request": "gpus", "driver": "gpu.example", "pool": "b", "device": "gpu-0"}
    allocated["status"] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]},
        }
    }
    objects = [GPU_CLASS, gpus("a", 1), gpus("b", 1), allocated]
    case = {"nodes": [node("a"), node("b")], "objects": objects, "pod": with_claim("p", "gpu")}
    answer = oracle.ask(case)
    reason = "resourceclaim not available on the node"
    assert answer["filter"]["a"]["DynamicResources"]["reasons"] == [reason]
    assert answer["feasible"] == ["b"]
    # The device is in use, and free again in the next case.
    case["pod"] = with_claim("p", "other")
    assert oracle.ask({**case, "objects": [*objects, gpu_claim("other")]})["feasible"] == ["a"]
    free = [*objects[:3], gpu_claim("other")]
    assert oracle.ask({**case, "objects": free})["feasible"] == ["a", "b"]
