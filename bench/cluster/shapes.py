"""The shapes of scheduler_perf: which pods stand on 5,000 nodes, and which have to be placed.

Out: JSON bodies of nodes, volumes and pods. Called by ``shape_bench``; nothing here talks to a
cluster. Templates and labels are those of Kubernetes 1.36's test/integration/scheduler_perf; the
numbers of pods are chosen so that a shape takes a few seconds, and the nodes are in three zones
throughout, so that all shapes but one share them. Every pod is in one namespace.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.cluster.cases import GANG_LABEL, NAMESPACE, Case
from tools.controlplane.nodes import manifest

Body = dict[str, Any]
MakeSpec = Callable[[int], Body]
"""The part of a pod that makes the shape, by the pod's number."""

NODES = 5000  #: of all shapes but those that say otherwise
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-1", "zone-2", "zone-3")
HOSTNAME = "kubernetes.io/hostname"
PRIORITY_CLASS = "important"
_NODE = {"cpu": "4", "memory": "32Gi", "pods": "110"}
_POD = {"cpu": "100m", "memory": "500Mi"}
_DRIVER = "ebs.csi.aws.com"
_VOLUMES_PER_NODE = 39
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _plain(_number: int) -> Body:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """``measured`` pods beside ``standing`` ones, which the driver places beforehand.

    ``hopeless`` pods fit nowhere; they are created before the measured ones and stay. With
    ``churns`` a node, a pod that fits nowhere and a Service are made anew each second meanwhile.
    ``target`` is the least throughput that is wanted, as a multiple of kube-scheduler's. Pods are
    created at once, or at the pace of ``created_per_s``: then each pod's own wait counts.
    """

    name: str
    title: str
    target: float = 1.0
    measured: int
    spec: MakeSpec = _plain
    standing: int = 0
    standing_spec: MakeSpec = _plain
    hopeless: int = 0
    churns: bool = False
    has_volumes: bool = False
    own_resources: bool = False  #: each node has a resource that no other has
    timeout_s: float = 60.0
    created_per_s: float = 0.0
    nodes: int = NODES

    def as_case(self) -> Case:
        """Describe the measured pods as one gang, whose last bind ends the run."""
        case = _case(self.name, self.title, self.measured, self.timeout_s)
        return dataclasses.replace(case, nodes=self.nodes, created_per_s=self.created_per_s)

    def warm_up(self) -> Case:
        """Describe what shows that a scheduler has started; not measured."""
        return _case("warm-up", "", 2, 60.0)


def _case(name: str, title: str, pods: int, timeout_s: float) -> Case:
    return Case(
        name=name,
        title=title,
        nodes=NODES,
        gangs=1,
        members=pods,
        clock="first-created",
        timeout_s=timeout_s,
    )


# Pods


def pods(shape: Shape, run: str, count: int) -> list[Body]:
    """Describe the pods to be measured; the label says of which run they are."""
    made = [_pod(f"{run}-{number}", shape.spec(number)) for number in range(count)]
    for pod in made:
        pod["metadata"]["labels"][GANG_LABEL] = f"{run}-0"
    return made


def standing_pods(shape: Shape) -> Iterator[Body]:
    """Describe the pods that have nodes from the start, dealt out to the nodes in turn."""
    for number in range(shape.standing):
        pod = _pod(f"standing-{number}", shape.standing_spec(number))
        pod["spec"]["nodeName"] = f"node-{number % NODES}"
        yield pod


def hopeless_pods(count: int, prefix: str) -> list[Body]:
    """Describe pods that ask for more than any node has, with a priority above all others.

    The label holds ``prefix``.
    """
    requests = {"requests": {**_POD, "cpu": "9"}}
    made = [_pod(f"{prefix}-{number}", {}) for number in range(count)]
    for pod in made:
        pod["metadata"]["labels"][GANG_LABEL] = prefix
        pod["spec"]["priorityClassName"] = PRIORITY_CLASS
        pod["spec"]["containers"][0]["resources"] = requests
    return made


def _pod(name: str, own: Body) -> Body:
    """``own`` may hold labels, resources of the container, and fields of the spec."""
    own = dict(own)
    metadata = {"name": name, "namespace": NAMESPACE, "labels": dict(own.pop("labels", {}))}
    resources = own.pop("resources", {"requests": _POD, "limits": _POD})
    container = {
        "name": "pause",
        "image": "pause:3.10",
        "ports": [{"containerPort": 80}],
        "resources": resources,
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _spread(when_unsatisfiable: str) -> MakeSpec:
    labels = {"color": "blue"}
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": labels},
    }
    return lambda _number: {"labels": labels, "topologySpreadConstraints": [constraint]}


def _near(kind: str, topology_key: str, color: str, *, preferred: bool = False) -> MakeSpec:
    """Return pods that want to be near (or not near) pods of their own colour."""
    labels = {"color": color}
    term: Body = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology_key}
    if preferred:
        rule = {_PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}
    else:
        rule = {_REQUIRED: [term]}
    return lambda _number: {"labels": labels, "affinity": {kind: rule}}


def _in_zones(_number: int) -> Body:
    expression = {"key": ZONE, "operator": "In", "values": list(ZONES[:2])}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {_REQUIRED: terms}}}


def _own_resource(number: int) -> Body:
    amounts = {_resource(number): "1"}
    return {"resources": {"requests": amounts, "limits": amounts}}


def _resource(number: int) -> str:
    return f"example.com/bar-{number}"


def _with_claim(prefix: str) -> MakeSpec:
    def spec(number: int) -> Body:
        claim = {"claimName": f"{prefix}-{number}"}
        return {"volumes": [{"name": "vol", "persistentVolumeClaim": claim}]}

    return spec


def _all_alike(
    name: str, title: str, spec: MakeSpec, *, measured: int = 1000, standing: int = 5000
) -> Shape:
    """Return a shape whose pods that stand already are like those that are measured."""
    return Shape(
        name=name,
        title=title,
        target=3.0,
        measured=measured,
        spec=spec,
        standing=standing,
        standing_spec=spec,
    )


_STANDING_CLAIM, _MEASURED_CLAIM = "claim-standing", "claim-measured"

SHAPES = (
    Shape(name="plain", title="plain", measured=4000, standing=1000),
    Shape(
        name="stream",
        title="plain, 330 a second, on 200 nodes",
        measured=5000,
        created_per_s=330.0,
        nodes=200,
    ),
    Shape(
        name="spread-hard",
        title="spread over zones, hard",
        target=3.0,
        measured=1000,
        spec=_spread("DoNotSchedule"),
        standing=5000,
    ),
    Shape(
        name="spread-soft",
        title="spread over zones, soft",
        target=3.0,
        measured=1000,
        spec=_spread("ScheduleAnyway"),
        standing=5000,
    ),
    _all_alike("pod-affinity", "pod affinity by zone", _near("podAffinity", ZONE, "blue")),
    _all_alike(
        "pod-anti-affinity",
        "pod anti-affinity by host",
        _near("podAntiAffinity", HOSTNAME, "green"),
        measured=2000,
        standing=1000,
    ),
    _all_alike(
        "preferred-affinity",
        "preferred pod affinity by host",
        _near("podAffinity", HOSTNAME, "red", preferred=True),
    ),
    _all_alike(
        "preferred-anti-affinity",
        "preferred pod anti-affinity by host",
        _near("podAntiAffinity", HOSTNAME, "yellow", preferred=True),
    ),
    Shape(
        name="node-affinity",
        title="node affinity",
        target=3.0,
        measured=4000,
        spec=_in_zones,
        standing=5000,
    ),
    Shape(name="churn", title="plain, with mixed churn", measured=4000, churns=True),
    Shape(name="unschedulable", title="plain, behind 3,000 hopeless", measured=4000, hopeless=3000),
    Shape(
        name="volumes",
        title="one CSI volume each",
        measured=2000,
        spec=_with_claim(_MEASURED_CLAIM),
        standing=1000,
        standing_spec=_with_claim(_STANDING_CLAIM),
        has_volumes=True,
    ),
    Shape(
        name="extended-resources",
        title="an extended resource of one node each",
        measured=2000,
        spec=_own_resource,
        own_resources=True,
    ),
)


# Nodes, and what else has to be there


def nodes(count: int = NODES, *, own_resources: bool) -> list[Body]:
    """Describe the nodes: alike but for their zones and, where asked for, a resource of each."""
    return [
        manifest(
            f"node-{number}",
            {**_NODE, **({_resource(number): "1"} if own_resources else {})},
            {ZONE: ZONES[number % len(ZONES)]},
            (),
            annotations={},
        )
        for number in range(count)
    ]


def csi_nodes(count: int = NODES) -> list[Body]:
    """Describe how many volumes each node can attach."""
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": f"node-{number}"},
            "spec": {
                "drivers": [
                    {
                        "name": _DRIVER,
                        "nodeID": f"node-{number}",
                        "allocatable": {"count": _VOLUMES_PER_NODE},
                    }
                ]
            },
        }
        for number in range(count)
    ]


def volumes(shape: Shape) -> tuple[Sequence[Body], Sequence[Body]]:
    """Describe a volume for each pod and a claim that is bound to it."""
    names = [f"{_STANDING_CLAIM}-{number}" for number in range(shape.standing)]
    names += [f"{_MEASURED_CLAIM}-{number}" for number in range(shape.measured)]
    return [_volume(name) for name in names], [_claim(name) for name in names]


def _volume(name: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": _DRIVER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": NAMESPACE, "name": name},
        },
    }


def _claim(name: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"pv.kubernetes.io/bind-completed": "true"},
        },
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": name,
            "storageClassName": "",
        },
    }
