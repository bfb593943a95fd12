"""What pods without spread constraints of their own are spread by: the selectors of their owners.

Owned by ``state.cluster``. Source: DefaultSelector of kube-scheduler 1.36's plugins/helper: the
selectors of all Services that select the pod, and that of its controller.
"""

from __future__ import annotations

from quorate.core.model import (
    LabelSelector,
    Pod,
    PodSelector,
    Requirement,
    SpreadConstraint,
)
from quorate.core.model.selects import Selects
from quorate.core.profile import Profile

_NOBODY = PodSelector((), None)
SYSTEM_DEFAULTS = (
    SpreadConstraint(3, "kubernetes.io/hostname", hard=False, selector=_NOBODY),
    SpreadConstraint(5, "topology.kubernetes.io/zone", hard=False, selector=_NOBODY),
)
_CONTROLLERS = ("ReplicationController", "ReplicaSet", "StatefulSet")


class SpreadDefaults:
    """The selectors of Services and controllers, by kind, namespace and name."""

    def __init__(self) -> None:
        self._selectors: dict[tuple[str, str], dict[str, LabelSelector]] = {}

    def put(self, found: Selects) -> None:
        """Take the newest version of an object."""
        kind = type(found).__name__
        if found.selector is None:
            self.remove(kind, found.namespace, found.name)
        else:
            self._selectors.setdefault((kind, found.namespace), {})[found.name] = found.selector

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object."""
        there = self._selectors.get((kind, namespace), {})
        there.pop(name, None)
        if not there:
            self._selectors.pop((kind, namespace), None)

    def constraints(self, pod: Pod, profile: Profile) -> tuple[SpreadConstraint, ...]:
        """Return the constraints of a pod that has none of its own; none if nothing selects it."""
        defaults = SYSTEM_DEFAULTS if profile.default_spread is None else profile.default_spread
        if not defaults or not self._selectors:
            return ()
        selector = self._selector(pod)
        if selector is None:
            return ()
        return tuple(
            SpreadConstraint(
                one.max_skew,
                one.topology_key,
                one.hard,
                selector,
                one.min_domains,
                one.honor_affinity,
                one.honor_taints,
            )
            for one in defaults
        )

    def _selector(self, pod: Pod) -> PodSelector | None:
        labels = dict(pod.labels)
        found: set[Requirement] = set()
        for selector in self._selectors.get(("Service", pod.namespace), {}).values():
            if selector.matches(labels):
                found.update(selector.requirements)
        if pod.owner is not None:
            kind, name = pod.owner.kind, pod.owner.name
            if kind == "Deployment":
                kind, name = "ReplicaSet", f"{name}-{labels.get('pod-template-hash', '')}"
            if kind in _CONTROLLERS:
                own = self._selectors.get((kind, pod.namespace), {}).get(name)
                found.update(own.requirements if own is not None else ())
        if not found:
            return None
        ordered = sorted(found, key=lambda one: (one.key, one.operator, one.values))
        return PodSelector((pod.namespace,), LabelSelector(tuple(ordered)))
