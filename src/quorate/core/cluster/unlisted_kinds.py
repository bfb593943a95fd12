"""Kinds of objects that cannot be listed, and the gangs that need them and therefore wait.

In: the news that the shell cannot list a kind (a permission is missing, its API fails), with
messages. Out: what a gang lacks. Called by ``cluster`` with itself, by ``gate`` and ``explain``.
What is known of such a kind is outdated, so pods that need it are not placed; others are. It costs
nothing while all kinds can be listed.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.state import ClusterState
from quorate.core.model import Pod, Queue, changes
from quorate.core.model.changes import KindProblem

BUDGETS = "PodDisruptionBudget"
"""The kind that protects pods from preemption: nothing is preempted while budgets are unknown."""
_VOLUMES = ("Claim", "Volume", "StorageClass", "CSINode")
_DEVICES = ("ResourceClaim", "ResourceSlice", "DeviceClass")
_NAMESPACES = ("Namespace",)


def kind_served(cluster: ClusterState, change: changes.KindServed) -> None:
    """Note whether a kind can be listed."""
    note(cluster, change.kind, change.problem, change.hint)


def note(cluster: ClusterState, kind: str, problem: str, hint: str) -> None:
    """Note the problem of a kind or dialect ("": none), and touch the gangs that it concerns.

    When a kind can be listed again, all waiting gangs are touched: a gang may have needed it
    because of other objects that are gone by now.
    """
    now = KindProblem(problem, hint) if problem else None
    if cluster.unserved.get(kind) == now:
        return
    if now is None:
        del cluster.unserved[kind]
        cluster.touched.update(key for key, gang in cluster.gangs.items() if gang.waits)
        return
    cluster.unserved[kind] = now
    for key, gang in cluster.gangs.items():
        if gang.waits and _matters(kind, gang, cluster):
            cluster.touched.add(key)


def problem_for(gang: GangEntry, cluster: ClusterState) -> KindProblem | None:
    """Return what the gang or its waiting pods need and cannot be listed, or None.

    It takes O(1) while all kinds can be listed, else O(members).
    """
    unserved = cluster.unserved
    if not unserved:
        return None
    if gang.key.dialect in unserved and (gang.spec is None or not gang.started):
        return unserved[gang.key.dialect]  # a started gang goes on by its last known object
    for kinds, needs in _NEEDS:
        kind = next((kind for kind in kinds if kind in unserved), None)
        if kind is not None and any(needs(entry, cluster) for entry in _waiting(gang)):
            return unserved[kind]
    return None


def _waiting(gang: GangEntry) -> list[PodEntry]:
    return [entry for entry in gang.members.values() if entry.where is Where.WAITING]


def _matters(kind: str, gang: GangEntry, cluster: ClusterState) -> bool:
    if kind in (gang.key.dialect, BUDGETS):
        return True
    if kind == Queue.__name__:
        return gang.spec is not None and bool(gang.spec.queue)
    for kinds, needs in _NEEDS:
        if kind in kinds:
            return any(needs(entry, cluster) for entry in _waiting(gang))
    return False


def _uses_volumes(entry: PodEntry, cluster: ClusterState) -> bool:
    del cluster
    return bool(entry.pod.claims)


def _uses_devices(entry: PodEntry, cluster: ClusterState) -> bool:
    """Whether it names claims."""
    del cluster
    return any(one.claim != "" for one in entry.pod.device_claims)


def _is_told_apart_by_namespace(entry: PodEntry, cluster: ClusterState) -> bool:
    """Whether labels of namespaces decide where it may go, by its own terms or by others' terms.

    Preferred terms do not count.
    """
    spec = entry.pod.spec
    own = any(one.selector.by_namespace_labels for one in (*spec.affinity, *spec.anti_affinity))
    return own or _is_repelled(entry.pod, cluster)


def _is_repelled(pod: Pod, cluster: ClusterState) -> bool:
    """Whether required anti-affinity of another pod may select this one, in some namespace."""
    selectors = cluster.neighbours.repelling_by_namespace_labels
    labels = dict(pod.labels) if selectors else {}
    return any(one.labels is not None and one.labels.matches(labels) for one in selectors)


_NEEDS: tuple[tuple[tuple[str, ...], Callable[[PodEntry, ClusterState], bool]], ...] = (
    (_VOLUMES, _uses_volumes),
    (_DEVICES, _uses_devices),
    (_NAMESPACES, _is_told_apart_by_namespace),
)
"""Kinds, and a function that says whether a pod needs them."""
HANDLERS: dict[type[changes.Change], Callable[..., None]] = {changes.KindServed: kind_served}
