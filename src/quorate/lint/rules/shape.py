"""Rules about a cluster's shape: whether a pod fits on an empty node, a gang on all empty nodes.

The core decides, so filters and messages are the scheduler's own. Without ``--shape`` these rules
find nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from quorate.core.model import GangKey, GangSpec, Membership, Pod
from quorate.core.model.changes import Change, GangChanged, GangGone, PodChanged, PodGone
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.scheduler import Scheduler
from quorate.dialects.base import Malformed
from quorate.lint.finding import Finding
from quorate.lint.manifests import Gang, Manifests
from quorate.lint.pod_sources import PodSource
from quorate.lint.rules.gangs import min_place
from quorate.shell.watch.nodes import decode_node

_DIALECT = "lint"
_NAMESPACE = "lint"


class ShapeNodesError(ValueError):
    """The shape's nodes cannot be read; the text says which and why."""


class EmptyCluster:
    """The core with a shape's nodes and no pods; it tries to place one gang at a time."""

    def __init__(self, manifests: Manifests) -> None:
        """Load the shape's nodes. Raises ShapeNodesError."""
        self._scheduler = Scheduler(Policy())
        self._asked = 0
        self.slots = 0
        self.nodes = 0
        try:
            changes = [decode_node(msgspec.json.encode(n)) for n in manifests.options.nodes or ()]
        except Malformed as error:
            raise ShapeNodesError(str(error)) from error
        for change in changes:
            self.nodes += 1
            self.slots += dict(change.node.allocatable).get("pods", 0)
        self._scheduler.observe(changes)

    def ask(
        self,
        sources: Iterable[PodSource],
        least: int,
        min_resources: tuple[tuple[str, int], ...] = (),
    ) -> Explanation | None:
        """Return why these pods cannot start together; None if ``least`` of them can.

        Leaves the cluster empty.
        """
        self._asked += 1
        key = GangKey(_NAMESPACE, _DIALECT, f"gang-{self._asked}")
        pods = [_pod(source, number, key) for number, source in enumerate(sources)]
        spec = GangSpec(key=key, min_count=least, min_resources=min_resources)
        changes: list[Change] = [GangChanged(spec), *(PodChanged(pod) for pod in pods)]
        self._scheduler.observe(changes)
        found = self._scheduler.explainer(0.0).explain(key)
        started = any(gang.key == key for gang in self._scheduler.decide(0.0).gangs)
        self._scheduler.observe([*(PodGone(pod.uid) for pod in pods), GangGone(key)])
        return None if started else found


def fits(manifests: Manifests) -> Iterator[Finding]:
    """Pods that no empty node of the shape holds, and gangs that the whole empty shape does not."""
    if manifests.options.nodes is None:
        return
    cluster = EmptyCluster(manifests)
    told: set[int] = set()
    for source in manifests.sources:
        if _is_hopeless(source) or source.spec.get("nodeName"):
            told.add(id(source))
        elif found := cluster.ask([source], 1):
            told.add(id(source))
            yield _too_large(source, found, manifests.options.shape_name)
    for gang in manifests.gangs:
        least, count = gang.min_count, gang.count
        if least is None or count is None or not 0 < least <= count:
            continue
        if told.isdisjoint(id(source) for source in gang.sources):
            yield from _joint(manifests, cluster, gang, least)


def _too_large(source: PodSource, found: Explanation, shape: str) -> Finding:
    blocker = next(iter(found.blockers), None)
    miss = blocker.nearest_miss if blocker else ""
    why = found.message.replace("1 member must start now and 0 fit: ", "")
    return source.object.error(
        "no-node-fits",
        (*source.path, "spec"),
        f"no node of shape {shape} holds one of these pods: {why}",
        f"nearest: {miss}" if miss else found.hint,
    )


def _joint(
    manifests: Manifests, cluster: EmptyCluster, gang: Gang, least: int
) -> Iterator[Finding]:
    """Try to start the gang's min in the empty cluster."""
    one, path = min_place(gang)
    shape = manifests.options.shape_name
    words = f"shape {shape}, empty, cannot hold the {least} members that must start together"
    if least > cluster.slots:
        yield one.error(
            "gang-above-shape",
            path,
            f"{words}: its {cluster.nodes} nodes take {cluster.slots} pods in all",
            "lower min, or use a larger shape",
        )
        return
    min_resources = gang.group.spec.min_resources if gang.group else ()
    found = cluster.ask(_members(gang, least), least, min_resources)
    if found is None:
        return
    if found.reason is Reason.MIN_RESOURCES_SHORT:
        yield one.error(
            "min-resources-above-shape",
            ("spec", "minResources"),
            f"shape {shape}, empty, has too little: {found.message}",
            "lower spec.minResources, or use a larger shape",
        )
        return
    yield one.error(
        "gang-above-shape",
        path,
        f"{words}: {found.message}",
        "ask for less, lower min, or use a larger shape",
    )


def _members(gang: Gang, least: int) -> Iterator[PodSource]:
    """Yield the source of each pod, at most ``least`` times each: no more have to start."""
    for source in gang.sources:
        for _ in range(min(source.count or 0, least)):
            yield source


def _is_hopeless(source: PodSource) -> bool:
    """Whether the pod cannot be read, so that its needs are unknown."""
    return bool(source.pod.defect and source.pod.defect_reason == Reason.POD_INVALID.value)


def _pod(source: PodSource, number: int, key: GangKey) -> Pod:
    """Return a member without gates or defect: only its needs can keep it from fitting."""
    name = source.object.name or "pod"
    return msgspec.structs.replace(
        source.pod,
        uid=f"{key.name}-{number}",
        name=name if source.object.kind == "Pod" else f"{name}-{number}",
        namespace=_NAMESPACE,
        scheduler="quorate",
        node="",
        phase="Pending",
        priority=0,
        gates=(),
        membership=Membership(key),
        defect="",
        defect_reason="",
    )
