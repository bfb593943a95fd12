"""What must hold after every fault, read from the API alone; and the load on which faults fall.

The load: three gangs, interleaved, on nodes that have room for two. So some faults hit gangs that
have to be undone, and one gang always waits.
"""

import time
from collections import Counter
from collections.abc import Mapping

from tools.objects import GANG_LABEL, X_K8S, gang_pods, pod, pod_group, workload
from tools.testing import HANGS_S, wait_for

MEMBERS = 60
NODES = 4
REFUSALS = ("OutOf", "UnexpectedAdmissionError")


def room_for_two(world) -> list[str]:
    return world.nodes(NODES, allocatable={"cpu": str(2 * MEMBERS // NODES)})


def groups(world, tag: str, *, timeout_s: int = 60) -> list[str]:
    """Create the objects of three gangs; return their names."""
    gangs = [f"g{tag}-{i}" for i in range(3)]
    world.apply(*(pod_group(g, MEMBERS, scheduleTimeoutSeconds=timeout_s) for g in gangs))
    return gangs


def members(world, gangs: list[str]) -> None:
    """Create all members: the gangs are complete within milliseconds of one another."""
    world.create_pods(*(gang_pods(gang, MEMBERS, scheduler=world.scheduler) for gang in gangs))


def replica_set(name: str, replicas: int, scheduler: str, *, gang: bool = True, **options) -> dict:
    """Return a ReplicaSet, which replaces at once what is refused, evicted or deleted."""
    labels = {"gang": name, **({GANG_LABEL: name} if gang else {})}
    one = pod(name, scheduler=scheduler, labels=labels, **options)
    return workload("ReplicaSet", name, one, "gang", replicas=replicas)


def remove_load(world) -> None:
    """Delete owners, pods and PodGroups of this test's namespace, and wait until all are gone."""
    base = f"namespaces/{world.namespace}"
    for path in (f"/apis/apps/v1/{base}/replicasets", f"/api/v1/{base}/pods"):
        wait_for(lambda path=path: world._delete_pods(path), f"nothing is left in {path}")
    world.cluster.api("DELETE", world.path("podgroups", api=X_K8S))


def counts(world, gangs: list[str]) -> dict[str, int]:
    """Return how many live members of each gang have a node."""
    bound = Counter(_gang(p) for p in world.pods() if _is_live(p) and "nodeName" in p["spec"])
    return {gang: bound[gang] for gang in gangs}


def broken(world, sizes: Mapping[str, int], *, owned: bool = False) -> list[str]:
    """Return each promise that does not hold now, in words.

    ``sizes`` is the size, and min, of each gang. With ``owned`` something replaces lost members:
    then all of them must be there.
    """
    pods = world.pods()
    return [
        *_in_part(pods, sizes),
        *_overfull(world),
        *_lost(pods, world.scheduler),
        *(_missing(pods, sizes) if owned else ()),
    ]


def wait_kept(
    world,
    gangs: list[str],
    *,
    whole: int,
    size: int = MEMBERS,
    owned: bool = False,
) -> float:
    """Wait until at least so many gangs run whole, the others hold nothing, all promises hold.

    Return how long it took; fail with what is wrong when that is not reached in ``HANGS_S``.
    """
    sizes = dict.fromkeys(gangs, size)
    started_s = time.monotonic()
    while True:
        bound = counts(world, gangs)
        wrong = broken(world, sizes, owned=owned)
        if sum(count == size for count in bound.values()) >= whole and not wrong:
            return time.monotonic() - started_s
        waited_s = time.monotonic() - started_s
        if waited_s > HANGS_S:
            raise AssertionError(f"after {waited_s:.0f} s: {bound}, wanted {whole} whole; {wrong}")
        time.sleep(0.1)


def _in_part(pods: list[dict], sizes: Mapping[str, int]) -> list[str]:
    bound = Counter(_gang(p) for p in pods if _is_live(p) and "nodeName" in p["spec"])
    return [
        f"gang {gang} is in part: {bound[gang]} of {size} are bound"
        for gang, size in sizes.items()
        if 0 < bound[gang] < size
    ]


def _overfull(world) -> list[str]:
    """Return the nodes over their allocatable cpu, or number of pods; of all pods there are."""
    cpu: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for one in world.cluster.api("GET", "/api/v1/pods")["items"]:
        node = one["spec"].get("nodeName")
        if node and one["status"].get("phase") not in ("Failed", "Succeeded"):
            cpu[node] += sum(_cpu(c["resources"]) for c in one["spec"]["containers"])
            count[node] += 1
    wrong = []
    for node in world.cluster.api("GET", "/api/v1/nodes")["items"]:
        name, room = node["metadata"]["name"], node["status"]["allocatable"]
        if cpu[name] > _millis(room["cpu"]) or count[name] > int(room["pods"]):
            wrong.append(f"node {name} is over its allocatable: {cpu[name]}m, {count[name]} pods")
    return wrong


def _lost(pods: list[dict], scheduler: str) -> list[str]:
    """Return the pods that wait and say no reason."""
    return [
        f"pod {p['metadata']['name']} waits without a reason"
        for p in pods
        if p["spec"]["schedulerName"] == scheduler
        and _is_live(p)
        and "nodeName" not in p["spec"]
        and not any(
            c["type"] == "PodScheduled" and c.get("reason") and c.get("message")
            for c in p["status"].get("conditions", [])
        )
    ]


def _missing(pods: list[dict], sizes: Mapping[str, int]) -> list[str]:
    there = Counter(_gang(p) for p in pods if _is_live(p))
    return [
        f"gang {gang} has {there[gang]} members instead of {size}"
        for gang, size in sizes.items()
        if there[gang] != size
    ]


def is_refused(one: dict) -> bool:
    """Tell whether a kubelet refused this pod."""
    status = one["status"]
    return status.get("phase") == "Failed" and status.get("reason", "").startswith(REFUSALS)


def _is_live(one: dict) -> bool:
    return "deletionTimestamp" not in one["metadata"] and not is_refused(one)


def _gang(one: dict) -> str:
    return one["metadata"].get("labels", {}).get("gang", "")


def _cpu(resources: dict) -> int:
    return _millis(resources.get("requests", {}).get("cpu", "0"))


def _millis(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else 1000 * int(quantity)
