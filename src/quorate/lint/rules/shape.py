"""Rules about a cluster's shape: whether a pod fits on an empty node, a gang on all empty nodes.

The core decides, so filters and messages are the scheduler's own. Without ``--shape`` these rules
find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.core.model import Pod
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.words.counting import counted
from quorate.lint.empty_cluster import (
    EmptyCluster,
    Namespaces,
    free_of_others,
    member,
    namespaces_of,
)
from quorate.lint.finding import Finding, Severity
from quorate.lint.manifests import Gang, Manifests
from quorate.lint.pod_sources import PodSource
from quorate.lint.rules.gangs import min_place
from quorate.lint.tree import Path


def fits(manifests: Manifests) -> Iterator[Finding]:
    """Pods that no empty node of the shape holds, and gangs that the whole empty shape does not."""
    if manifests.options.nodes is None:
        return
    namespaces = namespaces_of(manifests)
    cluster = EmptyCluster(manifests.options.nodes, namespaces)
    told: set[tuple[int, Path]] = set()
    for source in manifests.sources:
        if _is_hopeless(source) or source.spec.get("nodeName"):
            told.add(_place(source))
            continue
        pod = member(source)
        if found := cluster.ask([free_of_others(pod, [pod], namespaces)], 1):
            told.add(_place(source))
            yield _too_large(source, found, manifests.options.shape_name)
    for gang in manifests.gangs:
        least, count = gang.min_count, gang.count
        if least is None or count is None or not 0 < least <= count:
            continue
        if told.isdisjoint(map(_place, gang.sources)):
            yield from _joint(manifests, cluster, namespaces, gang, least)


def _place(source: PodSource) -> tuple[int, Path]:
    """Return where a template stands: an operator's gang has sources with counts of their own."""
    return id(source.object), source.path


def _too_large(source: PodSource, found: Explanation, shape: str) -> Finding:
    blocker = next(iter(found.blockers), None)
    miss = blocker.nearest_miss if blocker and not blocker.closed else ""
    why = found.message.replace("1 member must start now and 0 fit: ", "")
    return source.object.error(
        "no-node-fits",
        (*source.path, "spec"),
        f"no node of shape {shape} holds one of these pods: {why}",
        f"nearest: {miss}" if miss else found.hint,
    )


def _joint(
    manifests: Manifests, cluster: EmptyCluster, namespaces: Namespaces, gang: Gang, least: int
) -> Iterator[Finding]:
    """Try to start the gang's min in the empty cluster."""
    one, path = min_place(gang)
    shape = manifests.options.shape_name
    who = "the member" if least == 1 else f"the {least} members that must start together"
    words = f"shape {shape}, empty, cannot hold {who}"
    if least > cluster.slots:
        yield one.error(
            "gang-above-shape",
            path,
            f"{words}: its {counted(cluster.nodes, 'node', 'takes', 'take')} "
            f"{counted(cluster.slots, 'pod')} in all",
            "lower min, or use a larger shape",
        )
        return
    min_resources = gang.group.spec.min_resources if gang.group else ()
    found = cluster.ask(_members(gang, least, namespaces), least, min_resources)
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
    if found.exhausted:
        words = f"no place was found in shape {shape}, empty, for {who}"
    yield one.finding(
        "gang-above-shape",
        Severity.WARNING if found.exhausted else Severity.ERROR,
        path,
        f"{words}: {found.message}",
        "ask for less, lower min, or use a larger shape",
    )


def _members(gang: Gang, least: int, namespaces: Namespaces) -> list[Pod]:
    """Return the pods, at most ``least`` of each source: no more have to start."""
    alike = [(member(source), source.count or 0) for source in gang.sources]
    company = [pod for pod, count in alike if count]
    return [
        free_of_others(pod, company, namespaces)
        for pod, count in alike
        for _ in range(min(count, least))
    ]


def _is_hopeless(source: PodSource) -> bool:
    """Whether the pod cannot be read, so that its needs are unknown."""
    return bool(source.pod.defect and source.pod.defect_reason == Reason.POD_INVALID.value)
