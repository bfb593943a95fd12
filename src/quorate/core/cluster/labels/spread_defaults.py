"""Default spread constraints: for waiting pods without their own, by Services and controllers.

In: waiting pods, Services, controllers. Out: the constraints of a pod. Owned by
``cluster.cluster``. They are computed when one of these objects changes, so planning only reads
them. ``Neighbours`` counts a selector while a waiting pod is spread by it. Source: DefaultSelector
of kube-scheduler 1.36's plugins/helper, which joins the selectors of all Services that select the
pod and the selector of its controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.neighbours import Neighbours
from quorate.core.model import (
    GangKey,
    LabelSelector,
    Pod,
    PodSelector,
    Requirement,
    SpreadConstraint,
    policy,
)
from quorate.core.model.profile import Profile
from quorate.core.model.selecting_objects import Selects

_NOBODY = PodSelector((), None)
SYSTEM_DEFAULTS = (
    SpreadConstraint(3, "kubernetes.io/hostname", hard=False, selector=_NOBODY),
    SpreadConstraint(5, "topology.kubernetes.io/zone", hard=False, selector=_NOBODY),
)
_CONTROLLERS = ("ReplicationController", "ReplicaSet", "StatefulSet")
_Named = tuple[str, str, str]
"""Kind, namespace and name."""


class _AlikePods:
    """Pods with the same namespace, labels, owner and scheduler: they have the same defaults."""

    __slots__ = ("constraints", "controller", "entries", "key", "labels", "pod", "profile")

    def __init__(self, key: object, pod: Pod, profile: Profile) -> None:
        self.key = key
        self.pod = pod
        """One of these pods, or a former one."""
        self.profile = profile
        self.labels = dict(pod.labels)
        self.controller = _controller_of(pod)
        self.entries: dict[str, PodEntry] = {}
        """The waiting ones, by uid."""
        self.constraints: tuple[SpreadConstraint, ...] = ()


class SpreadDefaults:
    """The selectors of Services and controllers, and the waiting pods that they spread."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._selectors: dict[_Named, LabelSelector] = {}
        self._services: dict[tuple[str, ...], dict[str, LabelSelector]] = {}
        """Services by namespace and one label that they require, or by namespace alone."""
        self._kinds: dict[object, _AlikePods] = {}
        self._in_namespace: dict[str, dict[_AlikePods, None]] = {}
        self._kind_of: dict[str, _AlikePods] = {}
        """By uid of a waiting pod."""
        self._idle: dict[_AlikePods, None] = {}
        """Kinds without a waiting pod, the longest idle first."""

    # Objects

    def put(self, found: Selects) -> set[GangKey]:
        """Take an object's newest version; return the gangs whose default constraints changed."""
        return self._set((type(found).__name__, found.namespace, found.name), found.selector)

    def remove(self, kind: str, namespace: str, name: str) -> set[GangKey]:
        """Forget an object; return as ``put`` does."""
        return self._set((kind, namespace, name), None)

    def _set(self, named: _Named, after: LabelSelector | None) -> set[GangKey]:
        before = self._selectors.pop(named, None)
        if after is not None:
            self._selectors[named] = after
        if before == after:
            return set()
        kind, namespace, name = named
        if kind == "Service":
            for selector in (before, after):
                if selector is not None:
                    self._index(namespace, name, selector, is_there=selector is after)
        touched: set[GangKey] = set()
        for one in self._in_namespace.get(namespace, ()):
            if kind == "Service":
                either = (it is not None and it.matches(one.labels) for it in (before, after))
                is_concerned = any(either)
            else:
                is_concerned = one.controller == named
            if is_concerned and self._work_out(one):
                gangs = (entry.gang for entry in one.entries.values())
                touched.update(gang.key for gang in gangs if gang is not None)
        return touched

    def _index(self, namespace: str, name: str, selector: LabelSelector, *, is_there: bool) -> None:
        """Index a Service by the first label value that it requires, or remove it."""
        exact = (one for one in selector.requirements if one.operator == "In")
        label = next(((one.key, one.values[0]) for one in exact if len(one.values) == 1), ())
        there = self._services.setdefault((namespace, *label), {})
        if is_there:
            there[name] = selector
            return
        del there[name]
        if not there:
            del self._services[namespace, *label]

    # Pods

    def waits(self, entry: PodEntry) -> None:
        """Note that a pod waits for a node."""
        pod, profile = entry.pod, entry.pod_class.profile
        if profile.packs_gangs or profile.default_spread == () or pod.spec.spread:
            return
        key = pod.namespace, pod.labels, pod.owner, pod.scheduler
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _AlikePods(key, pod, profile)
            self._in_namespace.setdefault(pod.namespace, {})[kind] = None
            self._work_out(kind)
        self._idle.pop(kind, None)
        kind.entries[pod.uid] = entry
        self._kind_of[pod.uid] = kind

    def wait_no_more(self, uids: Iterable[str]) -> None:
        """Note that these pods no longer wait."""
        for uid in uids if self._kind_of else ():
            self.waits_no_more(uid)

    def waits_no_more(self, uid: str) -> None:
        """Note that a pod no longer waits."""
        kind = self._kind_of.pop(uid, None)
        if kind is None:
            return
        del kind.entries[uid]
        if not kind.entries:
            self._idle[kind] = None
            if len(self._idle) > policy.SPREAD_IDLE_MAX:
                self._forget(next(iter(self._idle)))

    def of(self, entry: PodEntry) -> tuple[SpreadConstraint, ...]:
        """Return the default constraints of a waiting pod; ``Neighbours`` counts their selectors.

        The result is empty if the pod has its own constraints, or if nothing selects it.
        """
        kind = self._kind_of.get(entry.pod.uid)
        return () if kind is None else kind.constraints

    def constraints(self, pod: Pod, profile: Profile) -> tuple[SpreadConstraint, ...]:
        """Return the default constraints of a pod without its own; empty if nothing selects it."""
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

    # Inside

    def _work_out(self, kind: _AlikePods) -> bool:
        """Compute the constraints of a kind; return whether they changed."""
        before, kind.constraints = kind.constraints, self.constraints(kind.pod, kind.profile)
        if kind.constraints == before:
            return False
        for one in kind.constraints[:1]:  # all constraints have the same selector
            self._neighbours.use(one.selector)
        for one in before[:1]:
            self._neighbours.disuse(one.selector)
        return True

    def _forget(self, kind: _AlikePods) -> None:
        del self._idle[kind], self._kinds[kind.key]
        alike = self._in_namespace[kind.pod.namespace]
        del alike[kind]
        if not alike:
            del self._in_namespace[kind.pod.namespace]
        for one in kind.constraints[:1]:
            self._neighbours.disuse(one.selector)

    def _services_of(self, pod: Pod) -> Iterator[LabelSelector]:
        """Yield the selectors of Services that may select the pod."""
        places: Iterable[tuple[str, ...]] = ((pod.namespace, *label) for label in pod.labels)
        for place in chain([(pod.namespace,)], places):
            yield from self._services.get(place, {}).values()

    def _selector(self, pod: Pod) -> PodSelector | None:
        labels = dict(pod.labels)
        found: set[Requirement] = set()
        for selector in self._services_of(pod):
            if selector.matches(labels):
                found.update(selector.requirements)
        controller = _controller_of(pod)
        own = self._selectors.get(controller) if controller is not None else None
        found.update(own.requirements if own is not None else ())
        if not found:
            return None
        ordered = sorted(found, key=lambda one: (one.key, one.operator, one.values))
        return PodSelector((pod.namespace,), LabelSelector(tuple(ordered)))


def _controller_of(pod: Pod) -> _Named | None:
    """Return the pod's controller if its selector counts, else None."""
    if pod.owner is None:
        return None
    kind, name = pod.owner.kind, pod.owner.name
    if kind == "Deployment":
        kind, name = "ReplicaSet", f"{name}-{dict(pod.labels).get('pod-template-hash', '')}"
    return (kind, pod.namespace, name) if kind in _CONTROLLERS else None
