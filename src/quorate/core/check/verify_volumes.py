"""Check a plan's volumes again before anything is sent, by independent code, rule by rule.

Called by ``verify``; it shares no code with the planner. In: one gang's binds and the cluster.
Out: messages.
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

_Said = list[str]


class _Lookups:
    """What the checks of one gang read; each node is looked up once."""

    def __init__(self, cluster: Cluster, planned: dict[ClaimKey, Prepare]) -> None:
        self.cluster = cluster
        self.planned = planned
        """What the plan writes for claims before the pods are bound."""
        self.done: set[object] = set()
        """The nodes, with claims, that were checked already."""
        self._exclusive: dict[object, list[ClaimKey]] = {}

    def exclusive(self, pod: Pod) -> list[ClaimKey]:
        """Return the claims of the pod that one pod at a time may use."""
        alike = pod.namespace, pod.claims
        found = self._exclusive.get(alike)
        if found is None:
            claims = self.cluster.storage.claims
            found = self._exclusive[alike] = [
                key
                for key in _claims_of(pod, ephemeral=False)
                if key in claims and "ReadWriteOncePod" in claims[key].access_modes
            ]
        return found


def volume_problems(gang: GangBinds, cluster: Cluster) -> list[str]:
    """Return a message for each claim that must not be bound as planned."""
    prepared = [one for bind in gang.binds for one in bind.prepare]
    wrong = [problem for one in prepared if (problem := _prepare_problem(one, cluster))]
    named = Counter(one.volume for one in prepared if one.volume)
    wrong += [f"volume {name} is given away twice" for name in sorted(named) if named[name] > 1]
    planned = {one.key: one for one in prepared}
    lookups = _Lookups(cluster, planned)
    for bind in gang.binds:
        wrong += _bind_problems(bind, lookups)
    return wrong + _limit_problems(gang, cluster)


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


def _bound_problems(pod: Pod, node: Node, lookups: _Lookups) -> _Said:
    """Check that each claim has or gets a volume, and that the node may use it."""
    problems = []
    for key in _claims_of(pod):
        claim = lookups.cluster.storage.claims.get(key)
        if claim is None:
            problems.append(f"claim {key} does not exist")
            continue
        if not claim.is_bound and key not in lookups.planned:
            problems.append(f"claim {key} is not bound, and nothing is done about it")
            continue
        name = claim.volume if claim.is_bound else lookups.planned[key].volume
        volume = lookups.cluster.storage.volumes.get(name)
        if volume is None or volume.affinity is None:
            continue
        if not any(term_holds(term, node.name, dict(node.labels)) for term in volume.affinity):
            problems.append(f"volume {volume.name} cannot be used on node {node.name}")
    return problems


def _sharing_problems(pod: Pod, lookups: _Lookups) -> _Said:
    """Check claims that one pod at a time may use."""
    problems = []
    for key in lookups.exclusive(pod):
        users = lookups.cluster.storage.users_of.get(key, {}).values()
        others = [one.pod.name for one in users if one.pod.uid != pod.uid and one.row >= 0]
        if others:
            used = f"is used by pod {min(others)}, and one pod at a time may use it"
            problems.append(f"claim {key} {used}")
    return problems


def _limit_problems(gang: GangBinds, cluster: Cluster) -> _Said:
    """Count the volumes of each driver that gets a volume of the gang on a node."""
    storage, problems = cluster.storage, []
    nodes: dict[str, set[str]] = {}
    for bind in gang.binds if storage.nodes.limits else ():
        entry = cluster.pods.get(bind.uid)
        if entry is not None:
            nodes.setdefault(bind.node, set()).add(bind.uid)
    for name, ours in nodes.items():
        row = cluster.nodes.rows.get(name)
        if row is None:
            continue
        others: set[VolumeId] = set()
        brought: set[VolumeId] = set()
        for entry in cluster.pods_on(name):
            user = storage.users.get(entry.pod.uid)
            if user is not None:
                (brought if entry.pod.uid in ours else others).update(user.ids)
        there = brought | others
        for driver in sorted({driver for driver, _ in brought - others}):
            limits = storage.nodes.limits.get(driver)
            count = sum(one[0] == driver for one in there)
            if limits is not None and count > limits[row]:
                takes = f"would hold {count} volumes of {driver}, and takes {limits[row]}"
                problems.append(f"node {name} {takes}")
    return problems


_ZONES = {
    f"failure-domain.beta.kubernetes.io/{one}": f"topology.kubernetes.io/{one}"
    for one in ("zone", "region")
}
"""Deprecated labels, with their present names."""


def _zone_problems(pod: Pod, node: Node, lookups: _Lookups) -> _Said:
    """Compare the zones and regions of volumes with those of the node, if it has any."""
    labels = dict(node.labels)
    if not any(old in labels or new in labels for old, new in _ZONES.items()):
        return []
    problems = []
    for key in _claims_of(pod, ephemeral=False):
        claim = lookups.cluster.storage.claims.get(key)
        volume = lookups.cluster.storage.volumes.get(claim.volume) if claim is not None else None
        if volume is None:
            continue
        for name, value in volume.labels:
            allowed = {one.strip() for one in value.split("__")}
            if name not in (*_ZONES, *_ZONES.values()) or "" in allowed:
                continue
            if labels.get(name, labels.get(_ZONES.get(name, name))) not in allowed:
                problems.append(f"volume {volume.name} is not in the zone of node {node.name}")
    return list(dict.fromkeys(problems))


_CHECKS: dict[str, Callable[[Pod, Node, _Lookups], _Said]] = {
    "VolumeBinding": _bound_problems,
    "VolumeZone": _zone_problems,
}
"""By the name of the rule: checks with one result for all pods with the same claims on a node.

VolumeRestrictions is checked for each pod, NodeVolumeLimits for the gang as a whole."""


def _bind_problems(bind: Bind, lookups: _Lookups) -> _Said:
    """Check the volumes of one pod."""
    entry = lookups.cluster.pods.get(bind.uid)
    row = lookups.cluster.nodes.rows.get(bind.node)
    node: Node | None = lookups.cluster.nodes.nodes[row] if row is not None else None
    if entry is None or node is None:
        return []
    pod = entry.pod
    problems = [*_sharing_problems(pod, lookups)]
    alike = bind.node, pod.namespace, pod.claims
    if alike in lookups.done:
        return problems
    lookups.done.add(alike)
    for check in _CHECKS.values():
        problems += check(pod, node, lookups)
    return problems


def _claims_of(pod: Pod, *, ephemeral: bool = True) -> list[ClaimKey]:
    """Return the claims of the pod, with or without its ephemeral ones."""
    return [
        ClaimKey(pod.namespace, use.name) for use in pod.claims if ephemeral or not use.ephemeral
    ]
