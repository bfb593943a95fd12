"""Bad input that an API server lets in, from the tables of tests/unit/bad: what its pod is told.

What the server refuses can only come from an older one; the unit tests have it all.
"""

import json

import pytest

from tests.unit.bad import device_tables, tables
from tools.controlplane import ApiError
from tools.harness.world import World
from tools.objects import pod
from tools.testing import wait_for

PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
}
TABLES = {
    "pods": {**tables.UNREADABLE_PODS, **tables.IMPOSSIBLE_PODS},
    "claims": tables.CLAIMS,
    "devices": {**device_tables.DEVICES, **device_tables.BROKEN_DEVICES},
}
NOT_WRITTEN = tuple(
    table[name]
    for table in (tables.CLAIMS, device_tables.DEVICES)
    for name in ("being deleted", "of another pod")
)
"""What the API server and its controllers write themselves."""
ACCEPTED = {"pods": 6, "claims": 4, "devices": 3}
"""At least so many of each table get past the API server's validation."""


@pytest.fixture
def alone(cluster, beside):
    beside({"profiles": [{"schedulerName": "default-scheduler"}]})
    made = World(cluster, None, f"{beside.scheduler_name}-bad", scheduler="default-scheduler")
    cluster.create_nodes(["node-a", "node-b"])  # the tables' devices are on the first
    yield made
    made.remove()


def admitted(world: World, case, namespace: str) -> list[tuple[str, str]] | None:
    """Create a case's objects; return path and name of each, or None if one is refused."""
    made = []
    for one in case.objects():
        path = PATHS.get(one["kind"])
        if path is None:
            return None
        text = json.dumps({name: part for name, part in one.items() if name != "status"})
        body = json.loads(text.replace('"team"', f'"{namespace}"'))
        for field in ("uid", "deletionTimestamp"):
            body["metadata"].pop(field, None)
        if one["kind"] == "Pod":
            for container in body["spec"]["containers"]:
                container.setdefault("image", "pause")
        try:
            world.cluster.api("POST", path.format(namespace), body)
        except ApiError as error:
            if error.status not in (400, 403, 422):
                raise
            remove(world, made)
            return None
        made.append((path.format(namespace), one["metadata"]["name"]))
    return made


def remove(world: World, made: list[tuple[str, str]]) -> None:
    for path, name in made:
        world.cluster.api("DELETE", f"{path}/{name}?gracePeriodSeconds=0")


@pytest.mark.parametrize("table", TABLES)
def test_what_the_api_server_lets_in_is_held_and_the_reason_names_object_and_field(alone, table):
    told, refused = [], []
    for number, (name, case) in enumerate(TABLES[table].items()):
        namespace = alone.add_namespace(f"{alone.namespace}-{table}-{number}")
        made = None if case in NOT_WRITTEN else admitted(alone, case, namespace)
        if made is None:
            refused.append(name)
            continue
        condition = wait_for(lambda ns=namespace: said(alone, ns), f"{name}: a condition")
        assert case.words.replace("team/", f"{namespace}/") in condition["message"], name
        helps = case.reason.nodes_would_help
        assert condition["reason"] == ("Unschedulable" if helps else str(case.reason)), name
        told.append(name)
        remove(alone, made)
    print(f"{table}: told {', '.join(told)}; refused by the API server: {', '.join(refused)}")
    assert len(told) >= ACCEPTED[table]
    alone.create_pod(pod("good", scheduler="default-scheduler"))
    alone.wait_bound(1)


def said(world: World, namespace: str) -> dict | None:
    conditions = world.pods(namespace=namespace)[0]["status"].get("conditions", ())
    return next((one for one in conditions if one["type"] == "PodScheduled"), None)
