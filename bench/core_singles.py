"""Cases of ``core_bench``: pods of no gang, placed one after the other as kube-scheduler does.

The shapes are those of Kubernetes' own scheduler_perf. Pods come in batches, as the watch brings
them; after each batch all its binds succeed, so that each cycle starts from a changed cluster.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from quorate.core.changes import Change, NodeChanged, ObjectChanged, PodBound, PodChanged
from quorate.core.model import (
    ClaimUse,
    HostPort,
    LabelSelector,
    Node,
    Pod,
    PodClaim,
    PodSelector,
    PodShape,
    PodTerm,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    SpreadConstraint,
    WeightedPodTerm,
)
from quorate.core.model.devices import (
    ClaimSpec,
    Device,
    DeviceChoice,
    DeviceClass,
    DeviceRequest,
    DeviceTraits,
    Nodes,
    ResourceClaim,
    ResourceSlice,
)
from quorate.core.model.selects import Service
from quorate.core.model.storage import Claim, ClaimRef, CSINode, StorageClass, Volume
from quorate.core.policy import Policy
from quorate.core.profile import KUBE_SCHEDULER
from quorate.core.scheduler import Scheduler

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
BATCH = 100
_NAME = "default-scheduler"
_REQUESTS = (("cpu", 100), ("memory", 500 * 2**20))
_SCORED = (100, 500 * 2**20)
_MODES = ("ReadWriteOnce",)
_DRIVER, _SIZE = "csi.example", 2**30
_LABELS = "metadata.labels"


def _labels(app: str) -> LabelSelector:
    return LabelSelector((Requirement("app", "In", (app,)),))


def _selector(app: str) -> PodSelector:
    return PodSelector(("default",), _labels(app))


def _term(app: str, key: str) -> PodTerm:
    return PodTerm(_selector(app), key)


def _prefers(weight: int) -> tuple[WeightedPodTerm, ...]:
    return (WeightedPodTerm(weight, _term("web", HOST)),)


def _in_zones(*zones: str) -> SelectorTerm:
    return SelectorTerm((Requirement(ZONE, "In", zones),))


class Case(NamedTuple):
    """``fields`` are those of the pods' shape; the others say what else there is."""

    fields: dict[str, Any] = {}  # noqa: RUF012 - never written to
    running: dict[str, Any] = {}  # noqa: RUF012
    """Fields of the shape of 1,000 more running pods of the same labels."""
    claims: str = ""
    services: int = 0
    mixed: bool = False
    cpu: int = 4_000
    backlog: int = 0


def _hard_zone_spread() -> SpreadConstraint:
    return SpreadConstraint(5, ZONE, hard=True, selector=_selector("web"))


_SPREAD_SOFT = (
    SpreadConstraint(1, ZONE, hard=False, selector=_selector("web")),
    SpreadConstraint(1, HOST, hard=False, selector=_selector("web")),
)
_NODE_AFFINITY = {
    "required_terms": (_in_zones("z0", "z1", "z2", "z3"),),
    "preferred_terms": (PreferredTerm(10, _in_zones("z1")), PreferredTerm(1, _in_zones("z2"))),
}
_GPU = (*_REQUESTS, ("example.com/gpu", 1))
_PORT = (HostPort("TCP", "0.0.0.0", 8080),)

CASES: dict[str, Case] = {
    "plain": Case(),
    "hard zone spread": Case({"spread": (_hard_zone_spread(),)}),
    "soft zone and host spread": Case({"spread": _SPREAD_SOFT}),
    "default spread, 10 Services": Case(services=10),
    "affinity by zone": Case({"affinity": (_term("web", ZONE),)}),
    "affinity by host": Case({"affinity": (_term("web", HOST),)}, cpu=400_000),
    "anti-affinity by host": Case({"anti_affinity": (_term("web", HOST),)}),
    "preferred affinity": Case(
        {"preferred_affinity": _prefers(1)}, {"preferred_affinity": _prefers(1)}
    ),
    "preferred anti-affinity": Case(
        {"preferred_affinity": _prefers(-1)}, {"preferred_affinity": _prefers(-1)}
    ),
    "matched by others' anti-affinity": Case(
        {}, {"anti_affinity": (_term("db", HOST), _term("web", ZONE + "-none"))}
    ),
    "node affinity": Case(_NODE_AFFINITY),
    "extended resources": Case({"requests": _GPU}),
    "host ports": Case({"host_ports": _PORT}),
    "bound claims": Case(claims="bound"),
    "claims that wait": Case(claims="waiting"),
    "claims of local volumes": Case(claims="local"),
    "claims of devices": Case(claims="devices"),
    "mixed": Case(mixed=True),
    "backlog of 2,000 beside plain": Case(backlog=2_000),
    "backlog of 2,000, spread, beside spread": Case(
        {"spread": (_hard_zone_spread(),)}, backlog=2_000
    ),
}
_MIXED = (
    "plain",
    "hard zone spread",
    "soft zone and host spread",
    "affinity by zone",
    "anti-affinity by host",
    "preferred affinity",
    "node affinity",
)


def measured(name: str, nodes: int = 5_000, running: int = 20_000, pods: int = 1_000) -> float:
    """Return seconds for each pod: from hearing of it until its bind is known, verification too."""
    case = CASES[name]
    scheduler = Scheduler(Policy(scheduler_names=(_NAME,), profiles=((_NAME, KUBE_SCHEDULER),)))
    scheduler.observe(_world(case, nodes, running))
    scheduler.observe(_backlog(case))
    scheduler.decide(0.0)
    arriving = _pods(case, pods + BATCH)
    _batch(scheduler, arriving)  # the first one finds everything new
    gc.collect()
    gc.freeze()  # as the shell does: what was listed is not looked through again and again
    started_s = time.perf_counter()
    for _ in range(pods // BATCH):
        _batch(scheduler, arriving)
    took_s = time.perf_counter() - started_s
    gc.unfreeze()
    return took_s / pods


def _batch(scheduler: Scheduler, arriving: Iterator[tuple[list[Change], Pod]]) -> None:
    batch = list(islice(arriving, BATCH))
    for changes, pod in batch:
        scheduler.observe([*changes, PodChanged(pod)])
    placed = 0
    while placed < BATCH:  # a plan has so many pods at most
        plan, problems = scheduler.verified(scheduler.decide(1.0))
        assert not problems, problems
        binds = [bind for gang in (*plan.gangs, *plan.preparing) for bind in gang.binds]
        assert binds, f"{placed} pods of {BATCH} were placed"
        placed += len(binds)
        scheduler.observe(PodBound(bind.uid, bind.node) for bind in binds)


def _world(case: Case, nodes: int, running: int) -> Iterator[Change]:
    size = ("cpu", case.cpu), ("memory", 2**35 if case.cpu < 10_000 else 2**50), ("pods", 2_500)
    for index in range(nodes):
        name = f"node-{index}"
        more = (("example.com/gpu", 8),) if "requests" in case.fields else ()
        labels = (HOST, name), (ZONE, f"z{index % 8}")
        yield NodeChanged(Node(name, allocatable=(*size, *more), labels=labels))
        if case.claims == "bound":
            yield ObjectChanged(CSINode(name, ((_DRIVER, 39),)))
        if case.claims == "devices":
            devices = tuple(Device(f"dev-{n}", DeviceTraits("gpu.example")) for n in range(8))
            own = Nodes(name=name)
            yield ObjectChanged(ResourceSlice(name, "gpu.example", name, 1, 1, own, devices))
    plain = PodShape(requests=_REQUESTS, scored=_SCORED)
    for index in range(running):
        yield PodChanged(_pod(f"old-{index}", plain, "db", f"node-{index % nodes}"))
    for number in range(case.services):
        yield ObjectChanged(Service("default", f"web-{number}", _labels(f"web-{number}")))
    yield ObjectChanged(StorageClass("fast", _DRIVER, "WaitForFirstConsumer"))
    yield ObjectChanged(
        StorageClass("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    )
    yield ObjectChanged(DeviceClass("gpu"))
    if case.running:
        tied = PodShape(requests=_REQUESTS, scored=_SCORED, **case.running)
        for index in range(1_000):
            yield PodChanged(_pod(f"tied-{index}", tied, "web", f"node-{5 * index % nodes}"))


def _pods(case: Case, count: int) -> Iterator[tuple[list[Change], Pod]]:
    """Yield pods, each with what has to be known before it."""
    cases = [CASES[name] for name in _MIXED] if case.mixed else [case]
    shapes = [
        PodShape(**({"requests": _REQUESTS, "scored": _SCORED} | dict(one.fields))) for one in cases
    ]
    for index in range(count):
        app = f"web-{index % case.services}" if case.services else "web"
        uses: dict[str, Any] = {}
        changes: list[Change] = []
        if case.claims == "devices":
            uses["device_claims"] = (PodClaim("gpu", f"claim-{index}", own=True),)
            changes = [ObjectChanged(_device_claim(index))]
        elif case.claims:
            uses["claims"] = (ClaimUse(f"claim-{index}"),)
            changes = [ObjectChanged(found) for found in _claim(case.claims, index)]
        yield changes, _pod(f"new-{index}", shapes[index % len(shapes)], app, **uses)


def _claim(kind: str, index: int) -> list[Claim | Volume]:
    key = f"claim-{index}"
    common: dict[str, Any] = {"size": _SIZE, "access_modes": _MODES, "uid": f"uid-{key}"}
    if kind == "waiting":
        return [Claim("default", key, storage_class="fast", **common)]
    here: dict[str, Any] = {"capacity": _SIZE, "access_modes": _MODES, "phase": "Available"}
    if kind == "local":
        node = SelectorTerm((Requirement(HOST, "In", (f"node-{index}",)),))
        volume = Volume(f"pv-{index}", "1", "local", affinity=(node,), **here)
        return [volume, Claim("default", key, storage_class="local", **common)]
    ref = ClaimRef("default", key, f"uid-{key}")
    handle = {"driver": _DRIVER, "handle": f"pv-{index}"}
    volume = Volume(f"pv-{index}", "1", "fast", claim=ref, **handle, **here)
    fields = {"storage_class": "fast", "volume": f"pv-{index}", "bound": True}
    return [volume, Claim("default", key, **fields, **common)]


def _device_claim(index: int) -> ResourceClaim:
    request = DeviceRequest("gpu", (DeviceChoice("gpu", "gpu"),))
    uid = f"uid-claim-{index}"
    spec = ClaimSpec((request,))
    return ResourceClaim("default", f"claim-{index}", uid, "1", spec, f"uid-new-{index}")


def _backlog(case: Case) -> Iterator[Change]:
    """Yield pods that fit nowhere, of 20 shapes."""
    fields: dict[str, Any] = dict(case.fields)
    for index in range(case.backlog):
        large = (("cpu", 1_000_000 + index % 20), ("memory", 2**20))
        shape = PodShape(**(fields | {"requests": large, "scored": (1_000_000, 2**20)}))
        yield PodChanged(_pod(f"large-{index}", shape, "web"))


def _pod(name: str, shape: PodShape, app: str, node: str = "", **more: object) -> Pod:
    labels = (("app", app),)
    pod = Pod(f"uid-{name}", "default", name, _NAME, shape, node=node, labels=labels)
    return msgspec.structs.replace(pod, **more) if more else pod


def preempting(tied: bool, nodes: int = 1_000, pods: int = 20) -> float:
    """Return seconds for each pod that is promised room on a full cluster, and its victims."""
    shape = PodShape(
        requests=(("cpu", 3_000),), spread=(_hard_zone_spread(),) if tied else (), scored=(3_000, 0)
    )
    small = PodShape(requests=(("cpu", 1_000),), scored=(1_000, 0))
    scheduler = Scheduler(Policy(scheduler_names=(_NAME,), profiles=((_NAME, KUBE_SCHEDULER),)))
    scheduler.observe(_world(Case(), nodes, 0))
    scheduler.observe(
        PodChanged(_pod(f"small-{i}", small, "web" if i % 3 else "db", f"node-{i % nodes}"))
        for i in range(4 * nodes)
    )
    scheduler.decide(0.0)
    scheduler.observe(
        PodChanged(_pod(f"large-{i}", shape, "web", priority=100)) for i in range(pods)
    )
    started_s = time.perf_counter()
    plan = scheduler.decide(1.0)
    assert len(plan.preemptions) == pods, f"{len(plan.preemptions)} of {pods}"
    return (time.perf_counter() - started_s) / pods


def rows(pods: int) -> Iterator[tuple[str, float]]:
    """Yield the name and the seconds for each pod of every case."""
    for name in CASES:
        yield f"a pod, {name}", measured(name, pods=pods)
    yield "a pod that preempts at 1,000 nodes", preempting(tied=False)
    yield "... and is spread over zones", preempting(tied=True)
