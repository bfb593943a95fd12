"""Pods that are alike: replicas of one controller, spread over nodes and zones by a score.

In: waiting pods. Out: soft spread constraints of those without constraints of their own, under
profiles that spread. Owned by ``cluster.cluster``. ``Neighbours`` counts the pods that bear the
same labels while one of them waits, and for some time after: the next one comes soon.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.neighbours import Neighbours
from quorate.core.model import (
    LabelSelector,
    Pod,
    PodSelector,
    Requirement,
    SpreadConstraint,
    policy,
)

_REPLICATED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds of owners whose pods do the same work."""
_OF_ONE_POD = frozenset(
    {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "controller-revision-hash",
    }
)
"""Labels in which replicas of one StatefulSet differ."""
_Spreads = tuple[SpreadConstraint, ...]


def selector_of(pod: Pod) -> PodSelector | None:
    """Return what selects the pods that are alike to this one; None: it is no replica."""
    if pod.owner is None or pod.owner.kind not in _REPLICATED:
        return None
    requirements = [
        Requirement(key, "In", (value,)) for key, value in pod.labels if key not in _OF_ONE_POD
    ]
    if not requirements:
        return None
    return PodSelector((pod.namespace,), LabelSelector(tuple(requirements)))


class AlikePods:
    """The waiting pods that are spread by their labels, and the selectors that count them."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._selectors: dict[str, PodSelector] = {}
        """By uid of a waiting pod."""
        self._waiting: dict[PodSelector, set[str]] = {}
        """The uids of the waiting pods, by selector in use."""
        self._constraints: dict[PodSelector, _Spreads] = {}
        self._idle: dict[PodSelector, None] = {}
        """Selectors in use for which no pod waits, the longest idle first."""

    def waits(self, entry: PodEntry) -> None:
        """Note that a pod waits for a node."""
        pod, profile = entry.pod, entry.pod_class.profile
        if profile.packs_gangs or profile.packing == "most-allocated" or pod.spec.spread:
            return
        selector = selector_of(pod)
        if selector is None:
            return
        if selector not in self._waiting:
            self._waiting[selector] = set()
            self._constraints[selector] = (
                SpreadConstraint(3, "kubernetes.io/hostname", hard=False, selector=selector),
                SpreadConstraint(5, "topology.kubernetes.io/zone", hard=False, selector=selector),
            )
            self._neighbours.use(selector)
        self._idle.pop(selector, None)
        self._waiting[selector].add(pod.uid)
        self._selectors[pod.uid] = selector

    def wait_no_more(self, uids: Iterable[str]) -> None:
        """Note that these pods no longer wait."""
        for uid in uids if self._selectors else ():
            selector = self._selectors.pop(uid, None)
            if selector is None:
                continue
            self._waiting[selector].discard(uid)
            if not self._waiting[selector]:
                self._idle[selector] = None
                if len(self._idle) > policy.ALIKE_IDLE_MAX:
                    self._forget(next(iter(self._idle)))

    def constraints(self, uid: str) -> _Spreads:
        """Return the constraints by which a waiting pod is spread; none if it is no replica."""
        selector = self._selectors.get(uid)
        return () if selector is None else self._constraints[selector]

    @property
    def in_use(self) -> KeysView[PodSelector]:
        """The selectors of replicas that are counted."""
        return self._waiting.keys()

    def _forget(self, selector: PodSelector) -> None:
        del self._idle[selector], self._waiting[selector], self._constraints[selector]
        self._neighbours.disuse(selector)
