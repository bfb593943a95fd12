"""Cases of ``core_bench``: what tenants wrote came and went, and should have left nothing behind.

Names of resources, keys of labels, specs, selectors and priorities come with pods, wave by wave;
the pods of a wave are deleted before the next one comes. Resident memory is compared with that
before the first wave; a wave of ordinary pods has come and gone by then, since the allocator keeps
some of what a wave took. A gang of 8 and a node's change are measured in turn in that core and in
one to which only the ordinary wave came, so that both have the same share of the machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from bench.core.measuring import Case, Core, Figure, Row, Stopwatch, freeze, rss_mb
from bench.core.world import (
    HOST,
    KUBE_POLICY,
    NAMESPACE,
    gang,
    gang_key,
    node,
    nodes,
    pod,
)
from quorate.core.model import (
    LabelSelector,
    Pod,
    PodSelector,
    PodSpec,
    PodTerm,
    Requirement,
    SelectorTerm,
)
from quorate.core.model.changes import GangGone, NodeChanged, PodChanged, PodGone
from quorate.core.model.policy import Policy

_PROBES = 31
_GANG = 8
_TIME_X, _MEMORY_X = 1.25, 1.15
_LIMIT_S = 25.0
"""CPU seconds after which no other wave comes. What is measured then is at least as large."""


class _Churn(NamedTuple):
    """``make`` returns the pod with an index, for a cluster with so many nodes."""

    what: str
    pods: int
    make: Callable[[int, int], Pod]
    waves: int = 10
    policy: Policy = Policy()

    @property
    def wave(self) -> int:
        """How many pods come at once."""
        return -(-self.pods // self.waves)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    churns = (
        _Churn("resource names", 5_000, _with_own_resource),
        _Churn("label keys", 10_000, _with_own_label_key),
        _Churn("specs", 50_000, _with_own_spec),
        _Churn("selectors", 10_000, _with_own_selector),
        _Churn("priorities", 500, _with_own_priority, waves=1, policy=KUBE_POLICY),
    )
    if quick:
        return tuple(_case(churn._replace(pods=50), hosts=30) for churn in churns)
    return tuple(_case(churn, hosts=5_000) for churn in churns)


def _case(churn: _Churn, hosts: int) -> Case:
    came = f"{churn.pods:,} {churn.what} came and went"
    rows = (
        Row(f"{came}: each of these changes: observe", "us", 50),
        Row(f"{came}: resident memory, after / before", "x", _MEMORY_X),
        Row(f"{came}: decide a gang of {_GANG}, / none came", "x", _TIME_X),
        Row(f"{came}: a node changes, / none came", "x", _TIME_X),
    )
    run = partial(_compare, churn=churn, hosts=hosts)
    return Case(f"{churn.what.replace(' ', '-')}-came", rows, run, limit_s=2 * _LIMIT_S)


def _compare(stopwatch: Stopwatch, *, churn: _Churn, hosts: int) -> Iterator[float | Figure]:
    core = _core(stopwatch, churn, hosts)
    before_mb = rss_mb()
    came, observed_s = _churn(core, churn, hosts)
    at_least = came < churn.pods
    yield 1e6 * observed_s / (2 * came)
    yield Figure(rss_mb() / before_mb, at_least)
    unchurned = _core(stopwatch, churn, hosts)
    freeze()
    gangs_s = [(_gang_s(core), _gang_s(unchurned)) for _ in range(_PROBES)]
    yield Figure(_ratio(gangs_s), at_least)
    nodes_s = [(_node_s(core, number), _node_s(unchurned, number)) for number in range(_PROBES)]
    yield Figure(_ratio(nodes_s), at_least)


def _core(stopwatch: Stopwatch, churn: _Churn, hosts: int) -> Core:
    core = stopwatch.core(churn.policy)
    core.observe(nodes(hosts))
    _wave_s(core, [_ordinary(index, hosts) for index in range(2 * churn.wave)], _LIMIT_S)
    _gang_s(core)  # the first one finds everything new
    _node_s(core, -1)
    return core


def _ratio(pairs: list[tuple[float, float]]) -> float:
    """Return the median of the first ones by that of the second ones."""
    first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
    return float(first / second)


def _churn(core: Core, churn: _Churn, hosts: int) -> tuple[int, float]:
    """Tell of pods, wave by wave, and delete them again.

    Returns how many pods there were, and the CPU seconds of hearing that they came and went.
    """
    came, observed_s, decided_s = 0, 0.0, 0.0
    while came < churn.pods and observed_s + decided_s < _LIMIT_S:
        until = min(came + churn.wave, churn.pods)
        pods = [churn.make(index, hosts) for index in range(came, until)]
        spent_s = _wave_s(core, pods, _LIMIT_S - decided_s - observed_s)
        observed_s, decided_s = observed_s + spent_s[0], decided_s + spent_s[1]
        came = until
    return came, observed_s


def _wave_s(core: Core, pods: list[Pod], limit_s: float) -> tuple[float, float]:
    """Tell of pods, and delete them again; return the CPU seconds of hearing, and of deciding."""
    came_s = core.observe_s([PodChanged(one) for one in pods])
    rest = core.settle(1.0, limit_s)
    gone_s = core.observe_s([PodGone(one.uid) for one in pods])
    core.settle(1.0)
    return came_s + gone_s, rest.whole_s


def _gang_s(core: Core) -> float:
    """Return the CPU seconds of deciding on a gang that comes, starts and goes."""
    core.observe(gang("probe", _GANG))
    rest = core.settle(2.0)
    assert len(rest.binds) == _GANG
    core.observe(PodGone(name) for name, _ in rest.binds)
    core.observe([GangGone(gang_key("probe"))])
    core.settle(2.0)
    return rest.cpu_s


def _node_s(core: Core, number: int) -> float:
    """Return the CPU seconds of hearing that a node's label differs, and of deciding then."""
    changed = NodeChanged(node(0, labels=(("probe", f"value-{number}"),)))
    return core.observe_s([changed]) + core.settle(2.0).cpu_s


def _ordinary(index: int, hosts: int) -> Pod:
    """Return a pod that runs, or one that is too large for all nodes."""
    if index % 2:
        return pod(f"tenant-{index}", node_name=f"node-{index % hosts}")
    return pod(f"tenant-{index}", PodSpec(requests=(("cpu", 65_000),)))


def _with_own_resource(index: int, _hosts: int) -> Pod:
    spec = PodSpec(requests=((f"example.com/resource-{index}", 1),))
    return pod(f"tenant-{index}", spec)


def _with_own_label_key(index: int, _hosts: int) -> Pod:
    return pod(f"tenant-{index}", PodSpec(node_selector=((f"key-{index}", "value"),)))


def _with_own_spec(index: int, hosts: int) -> Pod:
    """Return a pod for one node, as a DaemonSet makes them, that is too large for it."""
    here = Requirement("metadata.name", "In", (f"node-{index % hosts}",))
    requests = (("cpu", 65_000 + index),)
    spec = PodSpec(requests=requests, required_terms=(SelectorTerm(fields=(here,)),))
    return pod(f"tenant-{index}", spec)


def _with_own_selector(index: int, hosts: int) -> Pod:
    """Return a running pod that keeps apart from its like."""
    app = f"app-{index}"
    like = PodSelector((NAMESPACE,), LabelSelector((Requirement("app", "In", (app,)),)))
    spec = PodSpec(requests=(("cpu", 10),), anti_affinity=(PodTerm(like, HOST),))
    at = f"node-{7 * index % hosts}"
    return pod(f"tenant-{index}", spec, node_name=at, labels=(("app", app),))


def _with_own_priority(index: int, hosts: int) -> Pod:
    running = pod(f"tenant-{index}", node_name=f"node-{index % hosts}")
    return msgspec.structs.replace(running, priority=index + 1)
