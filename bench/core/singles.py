"""Cases of ``core_bench``: pods of no gang, placed one after the other as kube-scheduler does.

The shapes are those of Kubernetes' own scheduler_perf. Pods come in batches, as the watch brings
them; after each batch all its binds succeed, so that each cycle starts from a changed cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from bench.core.measuring import Case, Core, Row, Stopwatch, freeze
from quorate.core.model import (
    ClaimUse,
    HostPort,
    LabelSelector,
    Node,
    Owner,
    Pod,
    PodClaim,
    PodSelector,
    PodSpec,
    PodTerm,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    SpreadConstraint,
    WeightedPodTerm,
)
from quorate.core.model.changes import Change, NodeChanged, ObjectChanged, PodChanged
from quorate.core.model.devices import (
    ClaimSpec,
    Device,
    DeviceChoice,
    DeviceClass,
    DeviceRequest,
    DeviceTraits,
    ResourceClaim,
    ResourceSlice,
)
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.storage import Claim, ClaimRef, CSINode, StorageClass, Volume

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
BATCH = 100
_NAME = "default-scheduler"
_POLICY = Policy(scheduler_names=(_NAME,), profiles=((_NAME, KUBE_SCHEDULER),))
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


class Kind(NamedTuple):
    """``fields`` are those of the pods' spec; the others say what else there is."""

    fields: dict[str, Any] = {}  # noqa: RUF012 - never written to
    running: dict[str, Any] = {}  # noqa: RUF012
    """Fields of the spec of 1,000 more running pods of the same labels."""
    claims: str = ""
    replicas: int = 0
    """Sets of replicas that the pods are of."""
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

KINDS: dict[str, Kind] = {
    "plain": Kind(),
    "hard zone spread": Kind({"spread": (_hard_zone_spread(),)}),
    "soft zone and host spread": Kind({"spread": _SPREAD_SOFT}),
    "replicas of 10 sets": Kind(replicas=10),
    "affinity by zone": Kind({"affinity": (_term("web", ZONE),)}),
    "affinity by host": Kind({"affinity": (_term("web", HOST),)}, cpu=400_000),
    "anti-affinity by host": Kind({"anti_affinity": (_term("web", HOST),)}),
    "preferred affinity": Kind(
        {"preferred_affinity": _prefers(1)}, {"preferred_affinity": _prefers(1)}
    ),
    "preferred anti-affinity": Kind(
        {"preferred_affinity": _prefers(-1)}, {"preferred_affinity": _prefers(-1)}
    ),
    "matched by others' anti-affinity": Kind(
        {}, {"anti_affinity": (_term("db", HOST), _term("web", ZONE + "-none"))}
    ),
    "node affinity": Kind(_NODE_AFFINITY),
    "extended resources": Kind({"requests": _GPU}),
    "host ports": Kind({"host_ports": _PORT}),
    "bound claims": Kind(claims="bound"),
    "claims that wait": Kind(claims="waiting"),
    "claims of local volumes": Kind(claims="local"),
    "claims of devices": Kind(claims="devices"),
    "mixed": Kind(mixed=True),
    "backlog of 2,000 beside plain": Kind(backlog=2_000),
    "backlog of 2,000, spread, beside spread": Kind(
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


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    nodes, running, pods = (300, 200, BATCH) if quick else (5_000, 20_000, 1_000)
    hosts, large = (40, 5) if quick else (1_000, 20)
    return (
        Case(
            "singles",
            tuple(Row(f"a pod, {name}", "us") for name in KINDS),
            partial(_singles, nodes=nodes, running=running, pods=pods),
        ),
        Case(
            "preempting",
            (
                Row(f"a pod that preempts at {hosts:,} nodes", "us"),
                Row(f"a pod that preempts at {hosts:,} nodes, spread over zones", "us"),
            ),
            partial(_preempting, nodes=hosts, pods=large),
        ),
    )


def _singles(stopwatch: Stopwatch, *, nodes: int, running: int, pods: int) -> Iterator[float]:
    """Measure from hearing of a pod until its bind is known, verification too."""
    for kind in KINDS.values():
        core = stopwatch.core(_POLICY)
        core.observe(_world(kind, nodes, running))
        core.observe(_backlog(kind))
        core.settle(0.0)
        arriving = _pods(kind, pods + BATCH)
        _batch_s(core, arriving)  # the first one finds everything new
        freeze()
        yield 1e6 * sum(_batch_s(core, arriving) for _ in range(pods // BATCH)) / pods


def _batch_s(core: Core, arriving: Iterator[tuple[list[Change], Pod]]) -> float:
    news: list[Change] = []
    for changes, pod in islice(arriving, BATCH):
        news += [*changes, PodChanged(pod)]
    observed_s = core.observe_s(news)
    rest = core.settle(1.0)
    assert len(rest.binds) == BATCH, f"{len(rest.binds)} pods of {BATCH} were placed"
    return observed_s + rest.whole_s


def _world(kind: Kind, nodes: int, running: int) -> Iterator[Change]:
    size = ("cpu", kind.cpu), ("memory", 2**35 if kind.cpu < 10_000 else 2**50), ("pods", 2_500)
    for index in range(nodes):
        name = f"node-{index}"
        more = (("example.com/gpu", 8),) if "requests" in kind.fields else ()
        labels = (HOST, name), (ZONE, f"z{index % 8}")
        yield NodeChanged(Node(name, allocatable=(*size, *more), labels=labels))
        if kind.claims == "bound":
            yield ObjectChanged(CSINode(name, ((_DRIVER, 39),)))
        if kind.claims == "devices":
            devices = tuple(Device(f"dev-{n}", DeviceTraits("gpu.example")) for n in range(8))
            yield ObjectChanged(ResourceSlice(name, "gpu.example", name, 1, 1, name, devices))
    plain = PodSpec(requests=_REQUESTS, scored=_SCORED)
    for index in range(running):
        yield PodChanged(_pod(f"old-{index}", plain, "db", f"node-{index % nodes}"))
    yield ObjectChanged(StorageClass("fast", _DRIVER, "WaitForFirstConsumer"))
    yield ObjectChanged(
        StorageClass("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    )
    yield ObjectChanged(DeviceClass("gpu"))
    if kind.running:
        tied = PodSpec(requests=_REQUESTS, scored=_SCORED, **kind.running)
        for index in range(1_000):
            yield PodChanged(_pod(f"tied-{index}", tied, "web", f"node-{5 * index % nodes}"))


def _pods(kind: Kind, count: int) -> Iterator[tuple[list[Change], Pod]]:
    """Yield pods, each with what has to be known before it."""
    kinds = [KINDS[name] for name in _MIXED] if kind.mixed else [kind]
    specs = [
        PodSpec(**({"requests": _REQUESTS, "scored": _SCORED} | dict(one.fields))) for one in kinds
    ]
    for index in range(count):
        app = f"web-{index % kind.replicas}" if kind.replicas else "web"
        uses: dict[str, Any] = {}
        if kind.replicas:
            uses["owner"] = Owner("apps/v1", "ReplicaSet", app)
        changes: list[Change] = []
        if kind.claims == "devices":
            uses["device_claims"] = (PodClaim("gpu", f"claim-{index}", own=True),)
            changes = [ObjectChanged(_device_claim(index))]
        elif kind.claims:
            uses["claims"] = (ClaimUse(f"claim-{index}"),)
            changes = [ObjectChanged(found) for found in _claim(kind.claims, index)]
        yield changes, _pod(f"new-{index}", specs[index % len(specs)], app, **uses)


def _claim(of: str, index: int) -> list[Claim | Volume]:
    key = f"claim-{index}"
    common: dict[str, Any] = {"size": _SIZE, "access_modes": _MODES, "uid": f"uid-{key}"}
    if of == "waiting":
        return [Claim("default", key, storage_class="fast", **common)]
    here: dict[str, Any] = {"capacity": _SIZE, "access_modes": _MODES, "phase": "Available"}
    if of == "local":
        node = SelectorTerm((Requirement(HOST, "In", (f"node-{index}",)),))
        volume = Volume(f"pv-{index}", "1", "local", affinity=(node,), **here)
        return [volume, Claim("default", key, storage_class="local", **common)]
    ref = ClaimRef("default", key, f"uid-{key}")
    handle: dict[str, Any] = {"driver": _DRIVER, "handle": f"pv-{index}"}
    volume = Volume(f"pv-{index}", "1", "fast", claim=ref, **handle, **here)
    fields: dict[str, Any] = {"storage_class": "fast", "volume": f"pv-{index}", "bound": True}
    return [volume, Claim("default", key, **fields, **common)]


def _device_claim(index: int) -> ResourceClaim:
    request = DeviceRequest("gpu", (DeviceChoice("gpu", "gpu"),))
    uid = f"uid-claim-{index}"
    spec = ClaimSpec((request,))
    return ResourceClaim("default", f"claim-{index}", uid, "1", spec, f"uid-new-{index}")


def _backlog(kind: Kind) -> Iterator[Change]:
    """Yield pods that fit nowhere, of 20 specs."""
    fields: dict[str, Any] = dict(kind.fields)
    for index in range(kind.backlog):
        large = (("cpu", 1_000_000 + index % 20), ("memory", 2**20))
        spec = PodSpec(**(fields | {"requests": large, "scored": (1_000_000, 2**20)}))
        yield PodChanged(_pod(f"large-{index}", spec, "web"))


def _pod(name: str, spec: PodSpec, app: str, node: str = "", **more: object) -> Pod:
    labels = (("app", app),)
    pod = Pod(f"uid-{name}", "default", name, _NAME, spec, node=node, labels=labels)
    return msgspec.structs.replace(pod, **more) if more else pod


def _preempting(stopwatch: Stopwatch, *, nodes: int, pods: int) -> Iterator[float]:
    """Measure deciding on pods that are promised room on a full cluster, and on their victims."""
    for tied in (False, True):
        spread = (_hard_zone_spread(),) if tied else ()
        spec = PodSpec(requests=(("cpu", 3_000),), spread=spread, scored=(3_000, 0))
        small = PodSpec(requests=(("cpu", 1_000),), scored=(1_000, 0))
        core = stopwatch.core(_POLICY)
        core.observe(_world(Kind(), nodes, 0))
        core.observe(
            PodChanged(_pod(f"small-{i}", small, "web" if i % 3 else "db", f"node-{i % nodes}"))
            for i in range(4 * nodes)
        )
        core.settle(0.0)
        core.observe(PodChanged(_pod(f"large-{i}", spec, "web", priority=100)) for i in range(pods))
        freeze()
        rest = core.settle(1.0)
        assert rest.nominated == pods, f"{rest.nominated} of {pods}"
        yield 1e6 * rest.cpu_s / pods
