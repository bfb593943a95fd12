"""A tiny world for tables: nodes, pods and gangs in one line each, and an API server that obeys.

``cycle`` decides, verifies the plan, and reports the outcome of every bind, as the shell would.
"""

from collections.abc import Callable, Iterable

import msgspec

from quorate.core.check.verify import verify_plan
from quorate.core.model import GangKey, GangSpec, Membership, Namespace, Node, Pod, PodSpec, Taint
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    Change,
    ClaimWritten,
    GangChanged,
    GangGone,
    NodeChanged,
    NodeGone,
    ObjectChanged,
    PodBound,
    PodChanged,
    PodGone,
)
from quorate.core.model.plan import Bind, Plan
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Explanation
from quorate.core.scheduler import Scheduler
from quorate.core.turn import cycle
from quorate.core.words.object_words import ApiWords

GI = 2**30
GPU = "nvidia.com/gpu"
TEAM = "team"
X_K8S, SIGS, VOLCANO, LABELS = "x-k8s", "sigs", "volcano", "coscheduler"
APIS = {
    X_K8S: ApiWords("PodGroup", "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"),
    SIGS: ApiWords("PodGroup", "scheduling.sigs.k8s.io/v1alpha1", "pod-group.scheduling.sigs"),
    VOLCANO: ApiWords(
        "PodGroup",
        "scheduling.volcano.sh/v1beta1",
        "scheduling.k8s.io/group-name",
        awaited_under="volcano",
    ),
    LABELS: ApiWords("", "", "label example.com/gang", "label example.com/min-available"),
}

Outcome = Callable[[Bind], Change]


def amounts(*, cpu=None, memory=None, gpu=None, pods=None, **others):
    """Resources as the model has them: cores, GiB and plain counts; sorted by name."""
    given = {"cpu": cpu, "memory": memory, GPU: gpu, "pods": pods, **others}
    unit = {"cpu": 1000, "memory": GI}
    return tuple(
        sorted((name, round(n * unit.get(name, 1))) for name, n in given.items() if n is not None)
    )


def pairs(mapping):
    return tuple(sorted((mapping or {}).items()))


def taint(text: str) -> Taint:
    """Return ``key=value:effect`` or ``key:effect`` as a taint."""
    head, effect = text.rsplit(":", 1)
    key, _, value = head.partition("=")
    return Taint(key=key, effect=effect, value=value)


def key(name: str, dialect: str = X_K8S, namespace: str = TEAM) -> GangKey:
    return GangKey(namespace, dialect, name)


def accept(bind: Bind) -> Change:
    return PodBound(bind.uid, bind.node)


def fail(failure: BindFailure, message: str = "no") -> Outcome:
    return lambda bind: BindFailed(bind.uid, bind.node, failure, message)


class World:
    """One scheduler and what it has been told. ``now_s`` is moved by hand."""

    def __init__(self, **policy):
        self.scheduler = Scheduler(Policy(**policy), APIS)
        self.now_s = 1000.0
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.specs: dict[GangKey, GangSpec] = {}
        self.binds: dict[str, int] = {}
        """How often each pod has been planned, by name."""

    @property
    def cluster(self):
        return self.scheduler.cluster

    def observe(self, *changes: Change) -> None:
        self.scheduler.observe(changes)

    # Nodes

    def node(
        self,
        name,
        *,
        cpu=8,
        memory=64,
        pods=110,
        labels=None,
        taints=(),
        cordoned=False,
        features=(),
        **more,
    ):
        """Add a node, or put another version in its place."""
        self.nodes[name] = Node(
            name=name,
            allocatable=amounts(cpu=cpu, memory=memory, pods=pods, **more),
            labels=pairs(labels),
            taints=tuple(taint(text) for text in taints),
            unschedulable=cordoned,
            declared_features=features,
        )
        self.observe(NodeChanged(self.nodes[name]))

    def lose_node(self, name):
        del self.nodes[name]
        self.observe(NodeGone(name))

    def namespace(self, name, labels=None):
        """Add a namespace, or give it other labels."""
        self.observe(ObjectChanged(Namespace(name, pairs(labels))))

    # Pods

    def make(
        self,
        name,
        gang: GangKey | None = None,
        *,
        cpu=1,
        memory=None,
        gpu=None,
        requests=None,
        min_count=None,
        uid="",
        namespace=TEAM,
        scheduler="quorate",
        spec=None,
        labels=None,
        created_s=0.0,
        **more,
    ) -> Pod:
        """Return a pod of which nobody was told; ``spec`` are the other fields of its PodSpec."""
        wanted = amounts(cpu=cpu, memory=memory, gpu=gpu, **(requests or {}))
        return Pod(
            uid=uid or f"uid-{name}",
            namespace=namespace,
            name=name,
            scheduler=scheduler,
            spec=PodSpec(requests=wanted, **(spec or {})),
            membership=Membership(gang, min_count) if gang else None,
            labels=pairs(labels),
            created_s=created_s,
            **more,
        )

    def pod(self, name, gang: GangKey | None = None, **fields) -> Pod:
        """Add a pod; the fields are those of ``make``."""
        pod = self.make(name, gang, **fields)
        self.tell(pod)
        return pod

    def tell(self, pod: Pod) -> None:
        """The watch delivers this version of the pod."""
        self.pods[pod.name] = pod
        self.observe(PodChanged(pod))

    def edit(self, name, **fields) -> None:
        """The watch delivers the pod with other fields."""
        self.tell(msgspec.structs.replace(self.pods[name], **fields))

    def delete(self, *names) -> None:
        for name in names:
            self.observe(PodGone(self.pods.pop(name).uid))

    def running(self, name, node, **more) -> None:
        """Add a pod of another scheduler that runs on ``node``."""
        more.setdefault("scheduler", "default-scheduler")
        self.pod(name, node=node, phase="Running", **more)

    # Gangs

    def object(self, name, min_count, *, dialect=X_K8S, namespace=TEAM, **fields) -> GangKey:
        """Add or replace a gang's object."""
        which = key(name, dialect, namespace)
        self.specs[which] = GangSpec(key=which, min_count=min_count, **fields)
        self.observe(GangChanged(self.specs[which]))
        return which

    def drop_object(self, which: GangKey) -> None:
        del self.specs[which]
        self.observe(GangGone(which))

    def gang(self, name, min_count, pods=None, *, gang_spec=None, dialect=X_K8S, **more) -> GangKey:
        """Add a gang's object and its pods ``name-0``, ``name-1``, ...; all pods are alike."""
        namespace = more.get("namespace", TEAM)
        if dialect == LABELS:
            which = key(name, dialect, namespace)
            more["min_count"] = min_count
        else:
            which = self.object(
                name, min_count, dialect=dialect, namespace=namespace, **(gang_spec or {})
            )
        for index in range(min_count if pods is None else pods):
            self.pod(f"{name}-{index}", which, **more)
        return which

    # Cycles

    def decide(self, after_s: float = 0.0) -> Plan:
        """Decide, and check the plan; outcomes are the caller's."""
        self.now_s += after_s
        plan = self.scheduler.decide(self.now_s)
        assert not any(verify_plan(plan.gangs, self.cluster))
        for gang in plan.gangs:
            for bind in gang.binds:
                self.binds[bind.name] = self.binds.get(bind.name, 0) + 1
        return plan

    def settle(self, plan: Plan, outcome: Outcome = accept, **of_pod: Outcome) -> None:
        """Report the outcome of every bind; ``of_pod`` names pods that fare otherwise."""
        for bind in binds_of(plan):
            change = of_pod.get(bind.name.replace("-", "_"), outcome)(bind)
            if isinstance(change, PodBound):
                self.observe(*self.claims_of(bind))
            self.observe(change)
            if isinstance(change, PodBound) and bind.name in self.pods:
                self.pods[bind.name] = msgspec.structs.replace(self.pods[bind.name], node=bind.node)

    def cycle(self, outcome: Outcome = accept, *, after_s=0.0, **of_pod: Outcome) -> dict[str, str]:
        """Decide and bind; return where each planned pod was to go."""
        plan = self.decide(after_s)
        self.settle(plan, outcome, **of_pod)
        return {bind.name: bind.node for bind in binds_of(plan)}

    def claims_of(self, bind: Bind) -> list[Change]:
        """Return what is told of the claims that are written before a bind."""
        found: list[Change] = []
        for give in bind.gives:
            claim = self.cluster.devices.claims.get((give.namespace, give.claim))
            new = {"allocation": give.allocation, "reserved_for": (*claim.reserved_for, bind.uid)}
            version = str(int(claim.version) + 1)
            found.append(ClaimWritten(msgspec.structs.replace(claim, version=version, **new)))
        return found

    def where(self, name) -> str:
        """Return the node that the pod is counted on, or nothing."""
        return self.cluster.pods[self.pods[name].uid].node

    def why(self, which: GangKey) -> Explanation:
        found = self.scheduler.explainer(self.now_s).explain(which)
        assert found is not None
        return found

    def tries(self, plan: Plan, which: GangKey) -> bool:
        """Whether the plan looked at the gang again (holds when no node came or went)."""
        return which in plan.touched

    def used(self, node, resource="cpu") -> int:
        row = self.cluster.nodes.rows[node]
        column = self.cluster.resources.columns[resource]
        return int(self.cluster.nodes.used(row)[column])


def world(nodes=1, *, cpu=8, **policy) -> World:
    """Return a world of alike nodes n0, n1, ..."""
    w = World(**policy)
    for index in range(nodes):
        w.node(f"n{index}", cpu=cpu)
    return w


def binds_of(plan: Plan) -> list[Bind]:
    return [bind for gang in plan.gangs for bind in gang.binds]


def names(things: Iterable) -> list[str]:
    return [thing.name for thing in things]


def gangs_tried(w: World, monkeypatch) -> list[str]:
    """Return a list to which each gang is added for which a placement is looked for."""
    found, try_gang = [], cycle.Cycle.try_gang

    def note(self, gang, **how):
        found.append(gang.key.name.partition("@")[0])
        return try_gang(self, gang, **how)

    monkeypatch.setattr(cycle.Cycle, "try_gang", note)
    return found


class Unwalked(dict):
    """Members that nobody may walk through."""

    def values(self):
        raise AssertionError("all members are walked through")
