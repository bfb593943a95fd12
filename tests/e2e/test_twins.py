"""Twin pods, one of kube-scheduler's and one of quorate's, on the same cluster, hear the same.

Each twin waits for the same cause; its condition and its Events are compared, word for word. Where
more nodes would not help quorate's reason is another one: autoscalers add nodes on ``Unschedulable``.
"""

import pytest

from tests.e2e.provisioner import NO_PROVISIONER, claim
from tests.e2e.world import World, pod, pod_group, wait_for

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
KUBE, OURS = "twin-kube", "twin-quorate"
IMMEDIATE, LATE = "twin-immediate", "twin-late"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def selecting(app: str) -> dict:
    return {"labelSelector": {"matchLabels": {"app": app}}}


def volumes(name: str) -> list[dict]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def term(key: str, operator: str, *values: str) -> dict:
    wanted = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}}


def device(name: str) -> list[dict]:
    return [{"name": "gpu", "resourceClaimName": name}]


WAITING = {
    "cpu": {"requests": {"cpu": "3"}},
    "cpu-and-memory": {"requests": {"cpu": "3", "memory": "1Ti"}},
    "extended": {"requests": {"example.com/gpu": "1"}},
    "selector": {"nodeSelector": {"no": "such"}},
    "affinity": {"affinity": term(ZONE, "In", "nowhere")},
    "greater-than-a-word": {"affinity": term("size", "Gt", "3")},
    "tolerant": {"nodeSelector": {ZONE: "c"}, "tolerations": [{"key": "other", "operator": "Exists"}]},
    "node-gone": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]}}}},
    "near": {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, **selecting("nobody")}]}}},
    "apart": {"affinity": {"podAntiAffinity": {REQUIRED: [
        {"topologyKey": ZONE, **selecting("web")}]}}},
    "disliked": {"labels": {"hated": "yes"}},
    "even": {"labels": {"app": "web"}, "topologySpreadConstraints": [
        {"maxSkew": 1, "minDomains": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
         **selecting("web")}]},
    "no-such-topology": {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule",
         **selecting("web")}]},
    "port": {"container": {"ports": [{"containerPort": 80, "hostPort": 8080}]}},
    "never": {"requests": {"cpu": "3"}, "priorityClassName": "twin-never"},
    "no-claim": {"volumes": volumes("absent")},
    "immediate-claim": {"volumes": volumes("immediate")},
    "late-claim": {"volumes": volumes("late")},
    "classless-claim": {"volumes": volumes("classless")},
    "no-device-class": {"resourceClaims": device("classless")},
    "no-device": {"resourceClaims": device("deviceless")},
}  # fmt: skip
NOT_HELPED_BY_NODES = {
    "no-claim": "ClaimNotUsable",
    "immediate-claim": "ClaimNotUsable",
    "classless-claim": "ClaimNotUsable",
    "no-device-class": "ClaimNotUsable",
}
"""Where quorate's reason is not ``Unschedulable``, though kube-scheduler's always is."""


@pytest.fixture(scope="module")
def kube(cluster):
    cluster.start_kube_scheduler({"profiles": [{"schedulerName": KUBE}]}).close()
    yield
    cluster.stop_kube_scheduler()


@pytest.fixture
def twins(cluster, kube, beside):
    """Three zones of nodes, one of them tainted, with pods that are in the way; both schedulers."""
    beside({"profiles": [{"schedulerName": OURS}]})
    made = World(cluster, None, f"{beside.scheduler_name}-twins", scheduler=OURS)
    small = {"cpu": "2", "memory": "4Gi", "pods": "20"}
    for zone in "ab":
        made.nodes(2, f"{made.namespace}-{zone}-", allocatable=small, labels={ZONE: zone, "size": "big"})
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    made.nodes(1, f"{made.namespace}-c-", labels={ZONE: "c"}, taints=[taint])
    for name, mode in ((IMMEDIATE, "Immediate"), (LATE, "WaitForFirstConsumer")):
        body = {"metadata": {"name": name}, "provisioner": NO_PROVISIONER, "volumeBindingMode": mode}
        cluster.api("POST", CLASSES, body)
    cluster.api("POST", DEVICE_CLASSES, {"metadata": {"name": "twin-gpus"}, "spec": {}})
    never = {"metadata": {"name": "twin-never"}, "value": 5, "preemptionPolicy": "Never"}
    cluster.api("POST", PRIORITIES, never)
    hates = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname",
             "labelSelector": {"matchLabels": {"hated": "yes"}}}]}}  # fmt: skip
    port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    for zone in "ab":
        for index in range(2):
            node = f"{made.namespace}-{zone}-{index}"
            made.create_pod(pod(f"web-{zone}-{index}", labels={"app": "web"}, scheduler="nobody",
                nodeName=node, affinity=hates, container=port))  # fmt: skip
    made.apply(claim("immediate", IMMEDIATE), claim("late", LATE), claim("classless", "absent-class"),
        resource_claim("classless", "absent-class"), resource_claim("deviceless", "twin-gpus"))  # fmt: skip
    yield made
    made.remove()
    cluster.api("DELETE", f"{PRIORITIES}/twin-never")
    cluster.api("DELETE", f"{DEVICE_CLASSES}/twin-gpus")
    for name in (IMMEDIATE, LATE):
        cluster.api("DELETE", f"{CLASSES}/{name}")


def resource_claim(name: str, device_class: str) -> dict:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def condition(world: World, name: str) -> dict:
    found = world.pod(name)["status"].get("conditions", [])
    return next((one for one in found if one["type"] == "PodScheduled"), {})


def settled(world: World, name: str) -> dict:
    return wait_for(lambda: condition(world, name), f"{name} has its condition")


def told(world: World, name: str, reason: str) -> dict:
    def found() -> dict | None:
        of = [e for e in world.all_events() if e["regarding"]["name"] == name]
        return next((e for e in of if e["reason"] == reason), None)

    return wait_for(found, f"{name} has an Event {reason}")


def test_twins_that_wait_hear_the_same_sentence(twins):
    for name, spec in WAITING.items():
        twins.create_pod(pod(f"{name}-kube", scheduler=KUBE, **spec))
        twins.create_pod(pod(f"{name}-ours", scheduler=OURS, **spec))
    different = {}
    for name in WAITING:
        theirs, ours = settled(twins, f"{name}-kube"), settled(twins, f"{name}-ours")
        assert theirs["reason"] == "Unschedulable"
        wanted = NOT_HELPED_BY_NODES.get(name, "Unschedulable"), theirs["message"]
        if (ours["reason"], ours["message"]) != wanted:
            different[name] = wanted, (ours["reason"], ours["message"])
        kube, mine = (told(twins, f"{name}-{who}", "FailedScheduling") for who in ("kube", "ours"))
        for field in ("type", "action"):
            assert kube[field] == mine[field]
        assert kube["note"] == theirs["message"]
        assert mine["note"] == ours["message"]
    for name, (wanted, got) in different.items():
        print(f"{name}\n  kube-scheduler {wanted}\n  quorate        {got}")
    assert different == {}
