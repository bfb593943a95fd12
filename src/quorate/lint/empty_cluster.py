"""Says whether pods could start together on the nodes of a shape, with no other pods there.

The core decides, so filters and messages are the scheduler's own. What files cannot tell is taken
to be as the pods need it: claims of volumes and devices, labels of namespaces, other pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from quorate.core.model import GangKey, GangSpec, Membership, Namespace, Pod, PodSelector, all_of
from quorate.core.model.changes import (
    Change,
    GangChanged,
    GangGone,
    ObjectChanged,
    PodChanged,
    PodGone,
)
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Explanation
from quorate.core.scheduler import Scheduler
from quorate.dialects.base import Malformed
from quorate.lint.manifests import Manifests
from quorate.lint.objects import Json, mapping
from quorate.lint.pod_sources import PodSource
from quorate.lint.pod_values import read_pairs
from quorate.shell.watch.nodes import decode_node

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of namespaces by name."""

_DIALECT = "lint"
_SCHEDULER = "quorate"
_OWN_NAME = "kubernetes.io/metadata.name"
"""The label that the API server gives to each namespace."""


_TURNS_MAX = 200
"""So many turns a gang is given: a search that is bounded by the policy ends in 40."""


class ShapeNodesError(ValueError):
    """The shape's nodes cannot be read; the text says which and why."""


class EmptyCluster:
    """The core with a shape's nodes and no pods; it tries to place one gang at a time.

    ``slots`` is how many pods the nodes take in all.
    """

    def __init__(self, nodes: Iterable[Json], namespaces: Namespaces) -> None:
        """Load nodes, as JSON, and namespaces. Raises ShapeNodesError."""
        self._scheduler = Scheduler(Policy())
        self._asked = 0
        try:
            changes = [decode_node(msgspec.json.encode(one)) for one in nodes]
        except Malformed as error:
            raise ShapeNodesError(str(error)) from error
        self.nodes = len(changes)
        self.slots = sum(dict(one.node.allocatable).get("pods", 0) for one in changes)
        self._scheduler.observe(changes)
        self._scheduler.observe(
            ObjectChanged(Namespace(name, tuple(sorted(labels.items()))))
            for name, labels in namespaces.items()
        )

    def ask(
        self, pods: Sequence[Pod], least: int, min_resources: tuple[tuple[str, int], ...] = ()
    ) -> Explanation | None:
        """Return why these pods of one namespace cannot start together; None if ``least`` can.

        ``least`` is at least 1, and there are as many pods. Leaves the cluster empty.
        """
        self._asked += 1
        key = GangKey(pods[0].namespace, _DIALECT, f"gang-{self._asked}")
        members = [_named(pod, number, key) for number, pod in enumerate(pods)]
        spec = GangSpec(key=key, min_count=least, min_resources=min_resources)
        changes: list[Change] = [GangChanged(spec), *(PodChanged(pod) for pod in members)]
        self._scheduler.observe(changes)
        found = None if self._is_started(key) else self._scheduler.explainer(0.0).explain(key)
        self._scheduler.observe([*(PodGone(pod.uid) for pod in members), GangGone(key)])
        return found

    def _is_started(self, key: GangKey) -> bool:
        """Decide until the gang has its nodes, or nothing but news would change that.

        A search for a joint placement may last several turns.
        """
        for _ in range(_TURNS_MAX):
            plan = self._scheduler.decide(0.0)
            if any(gang.key == key for gang in plan.gangs):
                return True
            if plan.wake_at_s is None or plan.wake_at_s > 0.0:
                return False
        return False


def namespaces_of(manifests: Manifests) -> dict[str, dict[str, str]]:
    """Return the namespaces of all pods, with the labels that the files give them."""
    names = dict.fromkeys(source.namespace for source in manifests.sources)
    found = {name: {_OWN_NAME: name} for name in names}
    for one in manifests.objects:
        if one.kind == "Namespace" and one.group == "" and one.name:
            labels = read_pairs(mapping(one.value.get("metadata")).get("labels"))
            found[one.name] = {**labels, _OWN_NAME: one.name}
    return found


def member(source: PodSource) -> Pod:
    """Return one pod of a source as far as nodes matter: no gates, no defect, no claims.

    Anti-affinity to namespaces by their labels is left out: files need not have those labels.
    """
    spec = source.pod.spec
    apart = tuple(one for one in spec.anti_affinity if not one.selector.by_namespace_labels)
    return msgspec.structs.replace(
        source.pod,
        spec=msgspec.structs.replace(spec, anti_affinity=apart),
        namespace=source.namespace,
        scheduler=_SCHEDULER,
        node="",
        phase="Pending",
        priority=0,
        gates=(),
        claims=(),
        device_claims=(),
        defect="",
        defect_reason="",
    )


def free_of_others(pod: Pod, company: Iterable[Pod], namespaces: Namespaces) -> Pod:
    """Return the pod without required affinity, unless a pod of its company is what it wants."""
    if is_attracted(pod, company, namespaces):
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=()))


def is_attracted(pod: Pod, company: Iterable[Pod], namespaces: Namespaces) -> bool:
    """Whether a pod of the company matches all terms of the pod's required affinity.

    A pod without such terms needs nobody, and is attracted.
    """
    if not pod.spec.affinity:
        return True
    wanted = all_of(pod.spec.affinity)
    return any(_is_meant(wanted, other, namespaces) for other in company)


def _is_meant(wanted: PodSelector, pod: Pod, namespaces: Namespaces) -> bool:
    by_labels = wanted.namespace_selector
    is_near = pod.namespace in wanted.namespaces or (
        by_labels is not None and by_labels.matches(namespaces.get(pod.namespace, {}))
    )
    has_labels = wanted.labels is not None and wanted.labels.matches(dict(pod.labels))
    return is_near and has_labels and all(_is_meant(one, pod, namespaces) for one in wanted.also)


def _named(pod: Pod, number: int, key: GangKey) -> Pod:
    """Return the pod as one member of the gang, with a name and a uid of its own."""
    return msgspec.structs.replace(
        pod,
        uid=f"{key.name}-{number}",
        name=f"{pod.name}-{number}",
        membership=Membership(key),
    )
