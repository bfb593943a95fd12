"""Twin pods, one of kube-scheduler's and one of quorate's, on the same cluster, hear the same.

Each twin waits for the same cause; its condition and its Events are compared, word for word. Where
more nodes would not help quorate's reason is another one, as autoscalers add nodes on
``Unschedulable``.
"""

import pytest

from tests.e2e.harness.provisioner import NO_PROVISIONER, claim
from tests.e2e.harness.workloads import HOST, REQUIRED, ZONE
from tools.harness.world import World
from tools.objects import pod
from tools.testing import wait_for

pytestmark = pytest.mark.core

KUBE, OURS = "twin-kube", "twin-quorate"
IMMEDIATE, LATE = "twin-immediate", "twin-late"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def selecting(app: str) -> dict:
    return {"labelSelector": {"matchLabels": {"app": app}}}


def volumes(name: str) -> list[dict]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def matching(**term: list) -> dict:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def labelled(key: str, operator: str, *values: str) -> dict:
    return matching(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])


def named(node: str) -> dict:
    return matching(matchFields=[{"key": "metadata.name", "operator": "In", "values": [node]}])


def by(topology: str, app: str) -> dict:
    return {"topologyKey": topology, **selecting(app)}


def even(**more) -> dict:
    when = {"whenUnsatisfiable": "DoNotSchedule"}
    return {"maxSkew": 1, **when, **by(ZONE, "web"), **more}


PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}


def device(name: str) -> list[dict]:
    return [{"name": "gpu", "resourceClaimName": name}]


WAITING = {
    "cpu": {"requests": {"cpu": "3"}},
    "cpu-and-memory": {"requests": {"cpu": "3", "memory": "1Ti"}},
    "extended": {"requests": {"example.com/gpu": "1"}},
    "selector": {"nodeSelector": {"no": "such"}},
    "affinity": {"affinity": labelled(ZONE, "In", "nowhere")},
    "greater-than-a-word": {"affinity": labelled("size", "Gt", "3")},
    "tainted": {"nodeSelector": {ZONE: "c"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    "node-gone": {"affinity": named("gone")},
    "near": {"affinity": {"podAffinity": {REQUIRED: [by(ZONE, "nobody")]}}},
    "apart": {"affinity": {"podAntiAffinity": {REQUIRED: [by(ZONE, "web")]}}},
    "disliked": {"labels": {"hated": "yes"}},
    "even": {"labels": {"app": "web"}, "topologySpreadConstraints": [even(minDomains=5)]},
    "no-such-topology": {"topologySpreadConstraints": [even(topologyKey="rack")]},
    "port": {"container": PORT},
    "never": {"requests": {"cpu": "3"}, "priorityClassName": "twin-never"},
    "no-claim": {"volumes": volumes("absent")},
    "immediate-claim": {"volumes": volumes("immediate")},
    "late-claim": {"volumes": volumes("late")},
    "classless-claim": {"volumes": volumes("classless")},
    "no-device-class": {"resourceClaims": device("classless")},
    "no-device": {"resourceClaims": device("deviceless")},
}
REASONS = {
    "near": "AwaitsOtherPods",
    "no-claim": "ClaimNotUsable",
    "immediate-claim": "ClaimNotUsable",
    "classless-claim": "ClaimNotUsable",
    "no-device-class": "ClaimNotUsable",
}
"""Where more nodes would not help: kube-scheduler's reason is ``Unschedulable`` as ever."""
FOLLOWED_BY = {
    "no-claim": "spec.volumes of pod no-claim-ours names the claim",
    "immediate-claim": "its class twin-immediate binds at once",
    "classless-claim": "its spec.storageClassName absent does not exist",
    "no-device-class": "spec.devices.requests[0].exactly.deviceClassName of ResourceClaim",
    "no-such-topology": "spec.topologySpreadConstraints[0].topologyKey is rack, a label that no",
}
"""Where quorate's sentence goes on with the object and the field to mend."""


@pytest.fixture(scope="module")
def kube(cluster):
    cluster.start_kube_scheduler({"profiles": [{"schedulerName": KUBE}]}).close()
    yield
    cluster.stop_kube_scheduler()


@pytest.fixture
def objects(cluster):
    """What has no namespace: classes of volumes, of devices and of priority."""
    made = [
        (CLASSES, storage_class(IMMEDIATE, "Immediate")),
        (CLASSES, storage_class(LATE, "WaitForFirstConsumer")),
        (DEVICE_CLASSES, {"metadata": {"name": "twin-gpus"}, "spec": {}}),
        (PRIORITIES, {"metadata": {"name": "twin-never"}, "value": 5, "preemptionPolicy": "Never"}),
        (PRIORITIES, {"metadata": {"name": "twin-high"}, "value": 1000}),
    ]
    for path, body in made:
        cluster.api("POST", path, body)
    yield
    for path, body in made:
        cluster.api("DELETE", f"{path}/{body['metadata']['name']}")


@pytest.fixture
def twins(cluster, kube, objects, beside):
    """Three zones of nodes, one of them tainted, with pods that are in the way; both schedulers."""
    beside({"profiles": [{"schedulerName": OURS}]})
    made = World(cluster, None, f"{beside.scheduler_name}-twins", scheduler=OURS)
    small = {"cpu": "2", "memory": "4Gi", "pods": "20"}
    hated = {"labelSelector": {"matchLabels": {"hated": "yes"}}, "topologyKey": HOST}
    hates = {"podAntiAffinity": {REQUIRED: [hated]}}
    there = {"scheduler": "nobody", "labels": {"app": "web"}, "affinity": hates, "container": PORT}
    for zone in "ab":
        labels = {ZONE: zone, "size": "big"}
        for node in made.nodes(2, f"{made.namespace}-{zone}-", allocatable=small, labels=labels):
            made.create_pod(pod(f"on-{node}", nodeName=node, **there))
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    made.nodes(1, f"{made.namespace}-c-", labels={ZONE: "c"}, taints=[taint])
    made.apply(claim("immediate", IMMEDIATE), claim("late", LATE), claim("classless", "absent"))
    made.apply(resource_claim("classless", "absent"), resource_claim("deviceless", "twin-gpus"))
    yield made
    made.remove()


def storage_class(name: str, mode: str) -> dict:
    known = {"provisioner": NO_PROVISIONER, "volumeBindingMode": mode}
    return {"metadata": {"name": name}, **known}


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
        kube, mine = (told(twins, f"{name}-{who}", "FailedScheduling") for who in ("kube", "ours"))
        assert (kube["type"], kube["action"]) == (mine["type"], mine["action"])
        assert (kube["note"], mine["note"]) == (theirs["message"], ours["message"])
        more = FOLLOWED_BY.get(name, "")
        wanted = REASONS.get(name, "Unschedulable"), theirs["message"]
        rest = ours["message"].removeprefix(wanted[1])
        is_right = (rest.startswith(" (") and more in rest) if more else rest == ""
        if ours["reason"] != wanted[0] or not is_right:
            different[name] = wanted, (ours["reason"], ours["message"])
    for name, (wanted, got) in different.items():
        print(f"{name}\n  kube-scheduler {wanted}\n  quorate        {got}")
    assert different == {}


def test_twins_that_are_placed_hear_the_same(twins):
    tolerant = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {ZONE: "c"}}
    for name, scheduler in (("placed-kube", KUBE), ("placed-ours", OURS)):
        twins.create_pod(pod(name, scheduler=scheduler, **tolerant))
    kube, ours = told(twins, "placed-kube", "Scheduled"), told(twins, "placed-ours", "Scheduled")
    for field in ("type", "action", "reason"):
        assert kube[field] == ours[field]
    assert kube["note"].replace("-kube", "-ours") == ours["note"]


def test_twins_that_preempt_are_told_of_alike(twins):
    """Each takes the room of a pod of its own on a node of its own."""
    for who, scheduler in (("kube", KUBE), ("ours", OURS)):
        [node] = twins.nodes(1, f"{twins.namespace}-{who}-", allocatable={"cpu": "1", "pods": "9"})
        there = {"scheduler": scheduler, "nodeSelector": {HOST: node}}
        twins.create_pod(pod(f"low-{who}", terminationGracePeriodSeconds=0, **there))
        wait_for(lambda w=who: f"low-{w}" in twins.where(), "it is bound")
        twins.create_pod(pod(f"high-{who}", priorityClassName="twin-high", **there))
        wait_for(lambda w=who: f"high-{w}" in twins.where(), "it got the room")
    kube, ours = told(twins, "low-kube", "Preempted"), told(twins, "low-ours", "Preempted")
    for field in ("type", "action", "reason"):
        assert kube[field] == ours[field]
    for who, event in (("kube", kube), ("ours", ours)):
        high = twins.pod(f"high-{who}")["metadata"]["uid"]
        assert event["note"] == f"Preempted by pod {high} on node {twins.where()[f'high-{who}']}"
    assert ours["related"]["name"] == "high-ours", "kube-scheduler 1.36.3 names it in the note only"


def test_a_pod_without_its_resource_claim_hears_from_quorate_alone(twins):
    """kube-scheduler keeps it out of its queue and says nothing of it."""
    for name, scheduler in (("lost-kube", KUBE), ("lost-ours", OURS)):
        twins.create_pod(pod(name, scheduler=scheduler, resourceClaims=device("absent")))
    ours = settled(twins, "lost-ours")
    assert ours["reason"] == "ClaimNotUsable"
    assert f'could not find ResourceClaim "{twins.namespace}/absent"' in ours["message"]
    assert "spec.resourceClaims" in ours["message"]
    assert condition(twins, "lost-kube") == {}


def test_twins_behind_gates_are_left_to_the_api_server(twins):
    for name, scheduler in (("gated-kube", KUBE), ("gated-ours", OURS)):
        twins.create_pod(pod(name, scheduler=scheduler, schedulingGates=[{"name": "a.b/c"}]))
    kube, ours = settled(twins, "gated-kube"), settled(twins, "gated-ours")
    assert kube["reason"] == ours["reason"] == "SchedulingGated"
    assert kube["message"] == ours["message"]
