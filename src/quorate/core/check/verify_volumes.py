"""Check a plan's volumes again before anything is sent, by code of its own, rule by rule.

Called by ``verify``; shares nothing with the planner. In: one gang's binds and the cluster. Out:
what is wrong with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from quorate.core.check.verify_nodes import term_holds
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model import Node, Pod
from quorate.core.model.plan import Bind, GangBinds, Prepare
from quorate.core.model.storage import ClaimKey, ClaimRef

_Planned = dict[ClaimKey, Prepare]
"""What is to be written for claims before the pods are bound."""
_Said = list[str]


def volume_problems(gang: GangBinds, cluster: Cluster) -> list[str]:
    """Return a sentence for each claim that must not be bound so."""
    prepared = [one for bind in gang.binds for one in bind.prepare]
    wrong = [problem for one in prepared if (problem := _prepare_problem(one, cluster))]
    named = Counter(one.volume for one in prepared if one.volume)
    wrong += [f"volume {name} is given away twice" for name in sorted(named) if named[name] > 1]
    planned = {one.key: one for one in prepared}
    for bind in gang.binds:
        wrong += _bind_problems(bind, planned, cluster)
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


def _bound_problems(bind: Bind, pod: Pod, node: Node, cluster: Cluster, planned: _Planned) -> _Said:
    """Check that each claim has its volume, or is to get one, and that the node may use it."""
    problems = []
    for key in _claims_of(pod):
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
        if not any(term_holds(term, node.name, dict(node.labels)) for term in volume.affinity):
            problems.append(f"volume {volume.name} cannot be used on node {node.name}")
    return problems


def _sharing_problems(
    bind: Bind, pod: Pod, node: Node, cluster: Cluster, _planned: _Planned
) -> _Said:
    """Check claims that one pod at a time may use, and disks that a node mounts once."""
    problems = []
    for key in _claims_of(pod, ephemeral=False):
        claim = cluster.storage.claims.get(key)
        if claim is None or "ReadWriteOncePod" not in claim.access_modes:
            continue
        users = cluster.storage.users_of.get(key, {}).values()
        others = [one.pod.name for one in users if one.pod.uid != bind.uid and one.row >= 0]
        if others:
            used = f"is used by pod {min(others)}, and one pod at a time may use it"
            problems.append(f"claim {key} {used}")
    if not pod.shape.disks:
        return problems
    mounted = [
        disk
        for entry in cluster.pods_on(node.name)
        if entry.pod.uid != bind.uid and entry.pod.uid in cluster.storage.users
        for disk in cluster.storage.users[entry.pod.uid].uses.disks
    ]
    problems += [
        f"disk {disk.id} is mounted on node {node.name} already"
        for disk in pod.shape.disks
        if any(disk.conflicts(other) for other in mounted)
    ]
    return problems


def _limit_problems(
    bind: Bind, _pod: Pod, node: Node, cluster: Cluster, _planned: _Planned
) -> _Said:
    """Count the volumes of each driver of which the pod brings one to the node."""
    users, row = cluster.storage.users, cluster.nodes.rows[node.name]
    if bind.uid not in users:
        return []
    there: set[VolumeId] = set()
    for entry in cluster.pods_on(node.name):
        if entry.pod.uid != bind.uid and entry.pod.uid in users:
            there |= users[entry.pod.uid].ids
    brought = users[bind.uid].ids - there
    there |= users[bind.uid].ids | cluster.storage.nodes.attached_to(node.name)
    problems = []
    for driver in sorted({driver for driver, _ in brought}):
        limits = cluster.storage.nodes.limits.get(driver)
        count = sum(one[0] == driver for one in there)
        if limits is not None and count > limits[row]:
            takes = f"would hold {count} volumes of {driver}, and takes {limits[row]}"
            problems.append(f"node {node.name} {takes}")
    return problems


_ZONES = {
    f"failure-domain.beta.kubernetes.io/{one}": f"topology.kubernetes.io/{one}"
    for one in ("zone", "region")
}
"""Labels that were used before, with their names of today."""


def _zone_problems(
    _bind: Bind, pod: Pod, node: Node, cluster: Cluster, _planned: _Planned
) -> _Said:
    """Compare the zones and regions of volumes with those of the node, if it has any."""
    labels = dict(node.labels)
    if not any(old in labels or new in labels for old, new in _ZONES.items()):
        return []
    problems = []
    for key in _claims_of(pod, ephemeral=False):
        claim = cluster.storage.claims.get(key)
        volume = cluster.storage.volumes.get(claim.volume) if claim is not None else None
        if volume is None:
            continue
        for name, value in volume.labels:
            allowed = {one.strip() for one in value.split("__")}
            if name not in (*_ZONES, *_ZONES.values()) or "" in allowed:
                continue
            if labels.get(name, labels.get(_ZONES.get(name, name))) not in allowed:
                problems.append(f"volume {volume.name} is not in the zone of node {node.name}")
    return list(dict.fromkeys(problems))


_CHECKS: dict[str, Callable[[Bind, Pod, Node, Cluster, _Planned], _Said]] = {
    "VolumeRestrictions": _sharing_problems,
    "NodeVolumeLimits": _limit_problems,
    "VolumeBinding": _bound_problems,
    "VolumeZone": _zone_problems,
}
"""By the name of the rule."""


def _bind_problems(bind: Bind, planned: _Planned, cluster: Cluster) -> _Said:
    """Check the volumes of one pod by the rules of its profile."""
    entry = cluster.pods.get(bind.uid)
    row = cluster.nodes.rows.get(bind.node)
    node: Node | None = cluster.nodes.nodes[row] if row is not None else None
    if entry is None or node is None:
        return []
    return [
        problem
        for rule, check in _CHECKS.items()
        if rule not in entry.pod_class.profile.disabled
        for problem in check(bind, entry.pod, node, cluster, planned)
    ]


def _claims_of(pod: Pod, *, ephemeral: bool = True) -> list[ClaimKey]:
    """Return the claims of the pod, with or without those that were made for it alone."""
    return [
        ClaimKey(pod.namespace, use.name) for use in pod.claims if ephemeral or not use.ephemeral
    ]
