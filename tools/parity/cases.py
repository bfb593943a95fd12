"""Draw random cases: small clusters in which every rule that is known meets every other.

All names, keys and values come from short lists, so that things match one another often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tools.parity.choice import Choice, Object
from tools.parity.ranks import budgets, crowd, rank
from tools.parity.storage_cases import give_volumes, storage

T = TypeVar("T")

NAMESPACES = ("default", "team-a", "team-b")
ZONE, HOSTNAME, DISK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "disk"
KEYS = (ZONE, HOSTNAME, DISK, "absent")
APPS = ("web", "db", "cache")
OWNERS = ("ReplicaSet", "StatefulSet")
TAINTS = ("dedicated", "gpu", "node.kubernetes.io/not-ready")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def draw_case(choice: Choice) -> Object:
    """Return a case as the oracle reads it."""
    nodes = [node(choice, index) for index in range(choice.number(1, 7))]
    names = [one["metadata"]["name"] for one in nodes]
    pods = [
        pod(choice, f"p{index}") | {"spec_node": choice.pick(names)}
        for index in range(choice.number(0, 9))
    ]
    for one in pods:
        one["spec"]["nodeName"] = one.pop("spec_node")
        if choice.chance(10):
            one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pending = pod(choice, "pending")
    found = {"nodes": nodes, "pods": pods, "pod": pending, "nominated": []}
    if choice.chance(35):
        crowd(choice, found, pod)
    if choice.chance(75):
        rank(choice, found, names, pod)
    objects = [*namespaces(choice), *selecting(choice)]
    objects += budgets(choice, NAMESPACES, label_selector)
    if choice.chance(40):
        objects += storage(choice, names, NAMESPACES)
        for one in (*pods, pending):
            give_volumes(choice, one)
    return found | {
        "objects": objects,
        # Scores of nodes that do not pass are compared too: else few cases have two nodes to score.
    }


def node(choice: Choice, index: int) -> Object:
    """Return a node with labels, taints, a cordon and room."""
    name = f"n{index}"
    labels = {HOSTNAME: name} if not choice.chance(5) else {}
    if not choice.chance(15):
        labels[ZONE] = choice.pick(("a", "b", "c"))
    if choice.chance(50):
        labels[DISK] = choice.pick(("ssd", "hdd", "7", "12"))
    allocatable = {
        "cpu": choice.pick(("1", "2", "4", "1500m")),
        "memory": choice.pick(("1Gi", "2Gi", "8Gi")),
        "pods": choice.pick(("1", "3", "110")),
    }
    if choice.chance(40):
        allocatable["example.com/gpu"] = choice.pick(("0", "1", "4"))
    if choice.chance(20):
        allocatable["ephemeral-storage"] = choice.pick(("1Gi", "10Gi"))
    spec: Object = {}
    if choice.chance(35):
        spec["taints"] = some(choice, 1, 2, taint)
    if choice.chance(8):
        spec["unschedulable"] = True
    status: Object = {"allocatable": allocatable}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def taint(choice: Choice) -> Object:
    """Return a taint."""
    found = {"key": choice.pick(TAINTS), "effect": choice.pick(EFFECTS)}
    if choice.chance(50):
        found["value"] = choice.pick(("x", "y"))
    return found


def pod(choice: Choice, name: str) -> Object:
    """Return a pod, with some of the rarer parts."""
    labels = {"app": choice.pick(APPS)} if not choice.chance(10) else {}
    if choice.chance(40):
        labels["tier"] = choice.pick(("front", "back"))
    spec: Object = {"containers": some(choice, 1, 2, container)}
    for index, one in enumerate(spec["containers"]):
        one["name"] = f"c{index}"
    rarer = {
        "initContainers": (15, _init_containers),
        "overhead": (8, lambda _: {"cpu": "100m", "memory": "64Mi"}),
        "resources": (
            8,
            lambda c: {"requests": {"cpu": c.pick(("500m", "3")), "memory": "1Gi"}},
        ),
        "tolerations": (40, lambda c: some(c, 1, 2, toleration)),
        "nodeSelector": (20, lambda c: {c.pick(KEYS): c.pick(("a", "b", "ssd", "n0"))}),
        "affinity": (60, _affinity),
        "topologySpreadConstraints": (35, spreads),
        "hostNetwork": (10, lambda _: True),
    }
    for field, (percent, draw) in rarer.items():
        if choice.chance(percent):
            spec[field] = draw(choice)
    meta: Object = {"name": name, "namespace": choice.pick(NAMESPACES), "labels": labels}
    if choice.chance(15):
        owner = {"kind": choice.pick(OWNERS), "name": choice.pick(("o0", "o1", "gone"))}
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "uid": "owner", "controller": True, **owner}
        ]
    return {"metadata": meta, "spec": spec}


def _init_containers(choice: Choice) -> list[Object]:
    one = container(choice) | {"name": "init"}
    if choice.chance(50):
        one["restartPolicy"] = "Always"
    return [one]


def container(choice: Choice) -> Object:
    """Return a container with requests and sometimes a host port."""
    requests: Object = {}
    if choice.chance(70):
        requests["cpu"] = choice.pick(("0", "100m", "250m", "1", "3"))
    if choice.chance(60):
        requests["memory"] = choice.pick(("0", "64Mi", "1Gi", "1500M"))
    if choice.chance(20):
        requests["example.com/gpu"] = choice.pick(("1", "2"))
    if choice.chance(10):
        requests["ephemeral-storage"] = choice.pick(("1Gi", "20Gi"))
    found: Object = {"image": "app", "resources": {"requests": requests}}
    if "example.com/gpu" in requests:
        found["resources"]["limits"] = {"example.com/gpu": requests["example.com/gpu"]}
    if choice.chance(15):
        port = {"hostPort": choice.pick((80, 443)), "containerPort": 80}
        if choice.chance(30):
            port["hostIP"] = choice.pick(("127.0.0.1", "0.0.0.0"))
        if choice.chance(30):
            port["protocol"] = choice.pick(("UDP", "TCP"))
        found["ports"] = [port]
    return found


def toleration(choice: Choice) -> Object:
    """Return a toleration."""
    found: Object = {"operator": choice.pick(("Exists", "Equal"))}
    if found["operator"] == "Equal" or choice.chance(60):
        found["key"] = choice.pick((*TAINTS, "node.kubernetes.io/unschedulable"))
    if found["operator"] == "Equal" and choice.chance(70):
        found["value"] = choice.pick(("x", "y"))
    if choice.chance(50):
        found["effect"] = choice.pick(EFFECTS)
    return found


def _affinity(choice: Choice) -> Object:
    found: Object = {}
    if choice.chance(35):
        found["nodeAffinity"] = _node_affinity(choice)
    for kind in ("podAffinity", "podAntiAffinity"):
        if not choice.chance(30):
            continue
        part: Object = {}
        if choice.chance(60):
            part["requiredDuringSchedulingIgnoredDuringExecution"] = some(choice, 1, 2, pod_term)
        if choice.chance(60):
            part["preferredDuringSchedulingIgnoredDuringExecution"] = some(
                choice,
                1,
                2,
                lambda c: {"weight": c.pick((1, 10, 100)), "podAffinityTerm": pod_term(c)},
            )
        found[kind] = part
    return found


def _node_affinity(choice: Choice) -> Object:
    found: Object = {}
    if choice.chance(60):
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": some(choice, 1, 2, node_term)
        }
    if choice.chance(60):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = some(
            choice, 1, 2, lambda c: {"weight": c.pick((1, 10, 100)), "preference": node_term(c)}
        )
    return found


def node_term(choice: Choice) -> Object:
    """Return a node selector term; sometimes an empty one."""
    found: Object = {}
    if not choice.chance(10):
        found["matchExpressions"] = some(choice, 1, 2, node_expression)
    if choice.chance(15):
        found["matchFields"] = some(choice, 1, 2, _field)
    return found


def _field(choice: Choice) -> Object:
    return {
        "key": "metadata.name",
        "operator": choice.pick(("In", "In", "NotIn")),
        "values": [choice.pick(("n0", "n1", "n9"))],
    }


def node_expression(choice: Choice) -> Object:
    """Return a match expression of a node selector."""
    operator = choice.pick(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    found: Object = {"key": choice.pick(KEYS), "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = some(choice, 1, 2, lambda c: c.pick(("a", "b", "ssd", "n0", "7")))
    if operator in ("Gt", "Lt"):
        found["values"] = [choice.pick(("5", "10"))]
    return found


def pod_term(choice: Choice) -> Object:
    """Return a term of pod affinity or anti-affinity."""
    found: Object = {"topologyKey": choice.pick(KEYS)}
    if not choice.chance(8):
        found["labelSelector"] = label_selector(choice)
    if choice.chance(25):
        found["namespaces"] = some(choice, 1, 2, lambda c: c.pick(NAMESPACES))
    if choice.chance(20):
        found["namespaceSelector"] = choice.pick(
            ({}, {"matchLabels": {"kind": "prod"}}, {"matchLabels": {"kind": "test"}})
        )
    return found


def label_selector(choice: Choice) -> Object:
    """Return a label selector; sometimes an empty one."""
    if choice.chance(8):
        return {}
    if choice.chance(60):
        return {"matchLabels": {"app": choice.pick(APPS)}}
    operator = choice.pick(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: Object = {"key": choice.pick(("app", "tier")), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = some(choice, 1, 2, lambda c: c.pick((*APPS, "front")))
    return {"matchExpressions": [expression]}


def spreads(choice: Choice) -> list[Object]:
    """Return spread constraints; no two of them of one key and kind, as the API demands."""
    found = {}
    for _ in range(choice.number(1, 3)):
        one: Object = {
            "maxSkew": choice.pick((1, 2, 5)),
            "topologyKey": choice.pick(KEYS),
            "whenUnsatisfiable": choice.pick(("DoNotSchedule", "ScheduleAnyway")),
        }
        if not choice.chance(8):
            one["labelSelector"] = label_selector(choice)
            if choice.chance(20):
                one["matchLabelKeys"] = ["tier"]
        if one["whenUnsatisfiable"] == "DoNotSchedule" and choice.chance(25):
            one["minDomains"] = choice.pick((1, 2, 4))
        if choice.chance(25):
            one["nodeAffinityPolicy"] = choice.pick(("Honor", "Ignore"))
        if choice.chance(25):
            one["nodeTaintsPolicy"] = choice.pick(("Honor", "Ignore"))
        found[one["topologyKey"], one["whenUnsatisfiable"]] = one
    return list(found.values())


def namespaces(choice: Choice) -> list[Object]:
    """Return the namespaces, with labels; rarely one is not known (any more)."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kind": choice.pick(("prod", "test"))}},
        }
        for name in NAMESPACES
        if not choice.chance(2)
    ]


def selecting(choice: Choice) -> list[Object]:
    """Return Services and owners, by whose selectors pods without constraints are spread."""
    found: list[Object] = []
    for index in range(choice.number(0, 2)):
        selector = {"app": choice.pick(APPS)}
        if choice.chance(30):
            selector["tier"] = "front"
        if choice.chance(10):  # its endpoints are made by hand
            selector = {}
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"s{index}", "namespace": choice.pick(NAMESPACES)},
                "spec": {"selector": selector},
            }
        )
    for index in range(choice.number(0, 2)):
        labels = {"app": choice.pick(APPS)}
        found.append(
            {
                "apiVersion": "apps/v1",
                "kind": choice.pick(OWNERS),
                "metadata": {"name": f"o{index}", "namespace": choice.pick(NAMESPACES)},
                "spec": {"selector": {"matchLabels": labels}},
            }
        )
    return found


def some(choice: Choice, least: int, most: int, make: Callable[[Choice], T]) -> list[T]:
    """Return between ``least`` and ``most`` things."""
    return [make(choice) for _ in range(choice.number(least, most))]
