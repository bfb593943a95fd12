"""Check a plan's volumes again before anything is sent, by code of its own, claim by claim.

Called by ``verify``; shares nothing with the planner. In: one gang's binds and the cluster. Out:
what is wrong with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import Node, SelectorTerm
from quorate.core.model.plan import Bind, GangBinds, Prepare
from quorate.core.model.storage import ClaimKey, ClaimRef

Holds = Callable[[SelectorTerm, str, dict[str, str]], bool]
"""Whether a node selector term holds for a node's name and labels."""


def volume_problems(gang: GangBinds, cluster: Cluster, holds: Holds) -> list[str]:
    """Return a sentence for each claim that must not be bound so."""
    prepared = [one for bind in gang.binds for one in bind.prepare]
    wrong = [problem for one in prepared if (problem := _prepare_problem(one, cluster))]
    named = Counter(one.volume for one in prepared if one.volume)
    wrong += [f"volume {name} is given away twice" for name in sorted(named) if named[name] > 1]
    planned = {one.key: one for one in prepared}
    for bind in gang.binds:
        wrong += _bind_problems(bind, planned, cluster, holds)
    return wrong


def _prepare_problem(one: Prepare, cluster: Cluster) -> str:
    claim = cluster.storage.claims.get(one.key)
    if claim is None or claim.uid != one.uid:
        return f"claim {one.key} does not exist any more"
    if not one.volume:
        return ""
    volume = cluster.storage.volumes.get(one.volume)
    if volume is None:
        return f"volume {one.volume} does not exist any more"
    kept: ClaimRef | None = volume.claim
    if kept is not None and (kept.namespace, kept.name) != (one.namespace, one.claim):
        return f"volume {one.volume} is kept for claim {kept.namespace}/{kept.name}"
    if volume.capacity < (claim.size or 0):
        return f"volume {one.volume} is too small for claim {one.key}"
    return ""


def _bind_problems(
    bind: Bind, planned: dict[ClaimKey, Prepare], cluster: Cluster, holds: Holds
) -> list[str]:
    """Check that each claim has its volume, or is to get one, and that the node may use it."""
    entry = cluster.pods.get(bind.uid)
    row = cluster.nodes.rows.get(bind.node)
    node: Node | None = cluster.nodes.nodes[row] if row is not None else None
    if entry is None or node is None or "VolumeBinding" in entry.pod_class.profile.disabled:
        return []
    problems = []
    for use in entry.pod.claims:
        key = ClaimKey(entry.pod.namespace, use.name)
        claim = cluster.storage.claims.get(key)
        if claim is None:
            problems.append(f"claim {key} does not exist")
            continue
        if not claim.is_bound and key not in planned:
            problems.append(f"claim {key} is not bound, and nothing is done about it")
            continue
        name = claim.volume if claim.is_bound else planned[key].volume
        volume = cluster.storage.volumes.get(name)
        if volume is None or volume.affinity is None:
            continue
        if not any(holds(term, node.name, dict(node.labels)) for term in volume.affinity):
            problems.append(f"volume {volume.name} cannot be used on node {node.name}")
    return problems
