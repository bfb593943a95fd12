"""Cases of ``core_bench``: a gang whose pods all mount one bound volume, such as a dataset."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from bench.core.measuring import Case, Row, Stopwatch, freeze
from bench.core.world import NAMESPACE, gang, nodes
from quorate.core.model import ClaimUse
from quorate.core.model.changes import Change, ObjectChanged, PodChanged
from quorate.core.model.storage import Claim, ClaimRef, StorageClass, Volume

_RUNS = 3
_DRIVER = "nfs.example"
_MODES = ("ReadWriteMany",)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    pods, sizes = (20, (30, 60)) if quick else (1_000, (5_000, 10_000))
    shared = [f"gang of {pods:,} shares one volume, {hosts:,} nodes" for hosts in sizes]
    rows = [
        (Row(f"{one}: decide", "ms"), Row(f"{one}, with / without it", "x", 2)) for one in shared
    ]
    run = partial(_measured, pods=pods, sizes=sizes)
    return (Case("shared-volume", (*rows[0], *rows[1]), run),)


def _measured(stopwatch: Stopwatch, *, pods: int, sizes: tuple[int, ...]) -> Iterator[float]:
    for hosts in sizes:
        runs = [
            (
                _once_s(stopwatch, pods, hosts, shared=True),
                _once_s(stopwatch, pods, hosts, shared=False),
            )
            for _ in range(_RUNS)
        ]
        shared_s, without_s = (statistics.median(column) for column in zip(*runs, strict=True))
        yield 1e3 * shared_s
        yield shared_s / without_s


def _once_s(stopwatch: Stopwatch, pods: int, hosts: int, *, shared: bool) -> float:
    core = stopwatch.core()
    core.observe(nodes(hosts))
    core.observe(_dataset())
    core.observe(_mounting(change) if shared else change for change in gang("gang", pods))
    freeze()
    return core.place(pods)[1]


def _dataset() -> Iterator[Change]:
    """Yield a claim that is bound to a volume which all nodes reach."""
    common: dict[str, Any] = {"storage_class": "shared", "access_modes": _MODES}
    yield ObjectChanged(StorageClass("shared", _DRIVER))
    yield ObjectChanged(
        Claim(NAMESPACE, "data", "uid-data", volume="data", bound=True, size=1, **common)
    )
    of = ClaimRef(NAMESPACE, "data", "uid-data")
    known: dict[str, Any] = {"phase": "Bound", "claim": of, "driver": _DRIVER, "handle": "data"}
    yield ObjectChanged(Volume("data", "1", capacity=1, **common, **known))


def _mounting(change: Change) -> Change:
    """Return the news of a pod with the claim added to it; of others, the news as it is."""
    if isinstance(change, PodChanged):
        return PodChanged(msgspec.structs.replace(change.pod, claims=(ClaimUse("data"),)))
    return change
