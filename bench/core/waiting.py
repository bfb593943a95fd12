"""Cases of ``core_bench``: many gangs, or pods of no gang, wait on a full cluster, and news comes.

Gangs are of mixed sizes and of many kinds of pods. Coupled gangs have three roles whose pods keep
apart by host and together by rack, so that no role can be placed without looking at the others.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from functools import partial

import msgspec

from bench.core.measuring import Case, Core, Figure, Row, Settled, Stopwatch, freeze
from bench.core.world import (
    GI,
    HOST,
    KUBE_POLICY,
    NAMESPACE,
    gang,
    gang_key,
    node,
    nodes,
    pod,
    uid,
)
from quorate.core.model import (
    GangSpec,
    LabelSelector,
    Node,
    Owner,
    Pod,
    PodSelector,
    PodSpec,
    PodTerm,
    Requirement,
)
from quorate.core.model.changes import (
    Change,
    GangChanged,
    NodeChanged,
    OwnerChanged,
    PodChanged,
    PodGone,
)
from quorate.core.model.policy import Policy

_GANG_SIZES = (2, 2, 4, 4, 8, 8, 16, 32, 64)
_ENDED_PODS = 8
_NEWS = 3
_PODS_OF_AN_OWNER = 20
_DRAIN_S = 15.0
"""CPU seconds after which no other pod is placed where room for all has come."""
_SINGLE_CPUS = tuple(range(100, 120))
"""Millicores that pods of no gang ask for: one kind of pods each."""
_ROLE = 30
"""Pods of a role. They keep apart by host, and a rack has 20: not all find room in one."""
_ROLES = {"leader": 2_000, "worker": 4_000, "store": 6_000}


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    gangs, kinds, hosts = (60, 10, 40) if quick else (10_000, 1_000, 10_000)
    waiting, few, on = (300, 100, 20) if quick else (100_000, 1_000, 2_000)
    coupled, among = (2, 30) if quick else (100, 1_000)
    profiles = (("gangs", Policy(), "gangs' profile"), ("kube", KUBE_POLICY, "kube-scheduler's"))
    return (
        Case(
            "gangs-wait",
            _gangs_rows(f"{gangs:,} gangs of {kinds:,} kinds wait on {hosts:,} nodes"),
            partial(_gangs_wait, gangs=gangs, kinds=kinds, hosts=hosts),
        ),
        *(
            Case(
                f"singles-wait-{name}",
                _singles_rows(f"{waiting:,} pods of no gang wait, {words}", few),
                partial(_singles_wait, policy=policy, waiting=waiting, few=few, hosts=on),
            )
            for name, policy, words in profiles
        ),
        Case(
            "coupled-wait",
            _coupled_rows(f"{coupled} coupled gangs of {3 * _ROLE} wait on {among:,} nodes"),
            partial(_coupled_wait, gangs=coupled, hosts=among),
            limit_s=60.0,
        ),
    )


def _gangs_rows(waiting: str) -> tuple[Row, ...]:
    return (
        Row(f"{waiting}, one pod ends: decide, median", "ms", 5),
        Row(f"{waiting}, one pod ends: decide, slowest", "ms"),
        Row(f"{waiting}, one pod ends: gangs touched that do not start, most", "", 0),
        Row(f"{waiting}, one pod ends: explaining the touched gangs", "ms", 100),
    )


def _gangs_wait(
    stopwatch: Stopwatch, *, gangs: int, kinds: int, hosts: int
) -> Iterator[float | Figure]:
    chance = random.Random(1)
    core = stopwatch.core()
    core.observe(nodes(hosts))
    running = [f"run-{index}-{gpu}" for index in range(hosts) for gpu in range(8)]
    core.observe(PodChanged(_foreign(name, index // 8)) for index, name in enumerate(running))
    for index in range(gangs):
        requests = ("cpu", 1_000 + 10 * (index % kinds)), ("memory", GI), ("nvidia.com/gpu", 1)
        size = chance.choice(_GANG_SIZES)
        core.observe(gang(f"gang-{index}", size, PodSpec(requests=requests), float(index)))
    freeze()
    core.settle(0.0)
    settled: list[Settled] = []
    for number, name in enumerate(chance.sample(running, _ENDED_PODS), start=1):
        core.observe([PodGone(uid(name))])
        settled.append(core.settle(float(number)))
    yield 1e3 * statistics.median(one.cpu_s for one in settled)
    yield 1e3 * max(one.cpu_s for one in settled)
    yield max(len(one.touched - one.started) for one in settled)
    yield 1e3 * stopwatch.cpu_s(lambda: _explain(core, settled[-1], float(_ENDED_PODS)))


def _foreign(name: str, index: int) -> Pod:
    """Return a pod with a GPU that another scheduler has placed."""
    running = pod(name, node_name=f"node-{index}")
    return msgspec.structs.replace(running, scheduler="default-scheduler")


def _explain(core: Core, one: Settled, now_s: float) -> None:
    """Say of every touched gang why it stands where it stands, as the reporter does."""
    explainer = core.scheduler.explainer(now_s)
    for key in sorted(one.touched):
        explanation = explainer.explain(key)
        if explanation is not None:
            explainer.view(key, explanation)


def _singles_rows(waiting: str, few: int) -> tuple[Row, ...]:
    return (
        Row(f"{waiting}: room for one comes: decide", "ms", 20),
        Row(f"{waiting}: a node comes that is too small: decide", "ms", 20),
        Row(f"{waiting}: OwnerChanged: observe", "us", 50),
        Row(f"{waiting}: OwnerChanged: pods touched", "", _PODS_OF_AN_OWNER),
        Row(f"{waiting}: room for all comes: each of them", "us"),
        Row(f"{waiting}: room for all comes: each of them, / where {few:,} wait", "x", 1.25),
    )


def _singles_wait(
    stopwatch: Stopwatch, *, policy: Policy, waiting: int, few: int, hosts: int
) -> Iterator[float | Figure]:
    core = _waiting_singles(stopwatch, policy, waiting, hosts)
    enough, too_little = max(_SINGLE_CPUS), min(_SINGLE_CPUS) - 1
    yield 1e3 * _median_news_s(core, hosts, enough, binds=1)
    yield 1e3 * _median_news_s(core, hosts + _NEWS, too_little, binds=0)
    now_s = _come_to_rest(core)
    asked = [_ask_owner(core, number, now_s) for number in range(_NEWS)]
    observed_s, touched = zip(*asked, strict=True)
    yield 1e6 * statistics.median(observed_s)
    yield statistics.median(touched)
    freeze()
    many_s = _drain_s(core, hosts, waiting - _NEWS)
    yield 1e6 * many_s
    others = (_waiting_singles(stopwatch, policy, few, hosts) for _ in range(3))
    yield many_s / statistics.median(_drain_s(other, hosts, few) for other in others)


def _waiting_singles(stopwatch: Stopwatch, policy: Policy, count: int, hosts: int) -> Core:
    """Return a core with pods of no gang, of many kinds, which fit on none of the nodes yet."""
    core = stopwatch.core(policy)
    core.observe(NodeChanged(node(index, cpu=50)) for index in range(hosts))
    core.observe(_singles(count))
    freeze()
    core.settle(0.0)
    return core


def _singles(count: int) -> Iterator[Change]:
    specs = [
        PodSpec(requests=(("cpu", cpu), ("memory", 2**26)), scored=(cpu, 2**26))
        for cpu in _SINGLE_CPUS
    ]
    for index in range(count):
        spec = specs[index % len(specs)]
        yield PodChanged(pod(f"single-{index}", spec, created_s=float(index), owner=_owner(index)))


def _owner(index: int) -> Owner:
    return Owner("apps/v1", "Deployment", f"deployment-{index // _PODS_OF_AN_OWNER}")


def _median_news_s(core: Core, first: int, cpu: int, *, binds: int) -> float:
    """Return the median CPU seconds of deciding after one more node with so much cpu has come."""
    settled = []
    for index in range(first, first + _NEWS):
        core.observe([NodeChanged(node(index, cpu=cpu))])
        settled.append(core.settle(1.0))
    assert all(len(one.binds) == binds for one in settled)
    return statistics.median(one.cpu_s for one in settled)


def _come_to_rest(core: Core) -> float:
    """Decide until all pods have been told of the nodes' news; return the time by then."""
    now_s: float | None = 2.0
    while now_s is not None:
        at_s, now_s = now_s, core.decide(now_s)[0].wake_at_s
    return at_s


def _ask_owner(core: Core, number: int, now_s: float) -> tuple[float, int]:
    """Tell how many pods an owner makes; return the CPU seconds of that, and pods touched."""
    owner = _owner(_PODS_OF_AN_OWNER * (1 + number))
    observed_s = core.observe_s([OwnerChanged(NAMESPACE, owner, _PODS_OF_AN_OWNER)])
    return observed_s, len(core.settle(now_s).touched)


def _drain_s(core: Core, hosts: int, waiting: int) -> float:
    """Make room for all pods at once; return the CPU seconds for each pod that is placed.

    Where it takes too long, those count that were placed until then.
    """
    core.observe(nodes(hosts))
    one = core.settle(3.0, _DRAIN_S)
    assert not one.is_over or len(one.binds) == waiting
    return one.whole_s / len(one.binds)


def _coupled_rows(waiting: str) -> tuple[Row, ...]:
    return (
        Row(f"{waiting}, one pod ends: longest turn", "ms", 100),
        Row(f"{waiting}, one pod ends: turns", ""),
        Row(f"{waiting}, one pod ends: sum of all turns", "ms"),
    )


def _coupled_wait(stopwatch: Stopwatch, *, gangs: int, hosts: int) -> Iterator[float | Figure]:
    chance = random.Random(1)
    core = stopwatch.core()
    core.observe(_uneven_nodes(chance, hosts))
    for number in range(gangs):
        core.observe(_coupled_gang(f"gang-{number}"))
    freeze()
    assert not core.settle(0.0).started, "they wait"
    core.observe([PodGone(uid("run-0"))])
    one = core.settle(1.0)
    yield 1e3 * one.longest_s
    yield one.turns
    yield 1e3 * one.cpu_s


def _uneven_nodes(chance: random.Random, hosts: int) -> Iterator[Change]:
    """Yield nodes of several sizes, in racks of 20, each with a pod that takes some of it."""
    for index in range(hosts):
        name = f"node-{index}"
        cpu, memory = chance.choice((8, 16, 32, 64)), chance.choice((64, 128, 256))
        size = (("cpu", cpu * 1_000), ("memory", memory * GI), ("pods", 110))
        yield NodeChanged(Node(name, size, labels=((HOST, name), ("rack", f"r{index // 20}"))))
        taken = ("cpu", chance.randint(1, 7) * 1_000), ("memory", chance.randint(1, 60) * GI)
        yield PodChanged(pod(f"run-{index}", PodSpec(requests=taken), node_name=name))


def _coupled_gang(name: str) -> Iterator[Change]:
    """Yield a gang of three roles; two thirds of its pods have to start."""
    key = gang_key(name)
    yield GangChanged(GangSpec(key, 2 * _ROLE))
    for app, cpu in _ROLES.items():
        spec = PodSpec(
            requests=(("cpu", cpu), ("memory", GI)),
            anti_affinity=(PodTerm(_selector(f"{name}-{app}"), HOST),),
            affinity=(PodTerm(_selector(f"{name}-leader"), "rack"),),
        )
        labels = (("app", f"{name}-{app}"),)
        for index in range(_ROLE):
            yield PodChanged(pod(f"{name}-{app}-{index}", spec, gang=key, labels=labels))


def _selector(app: str) -> PodSelector:
    return PodSelector((NAMESPACE,), LabelSelector((Requirement("app", "In", (app,)),)))
