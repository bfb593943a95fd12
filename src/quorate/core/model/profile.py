"""How one scheduler name's pods are filtered and scored: a profile, as kube-scheduler has them.

Made by ``shell.configuration.config`` from a profile of a KubeSchedulerConfiguration; read by
filters and scores.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from quorate.core.model import PreferredTerm, SelectorTerm, SpreadConstraint

WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""kube-scheduler's scores and their weights (1.36, default_plugins.go)."""

CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))


class FitStrategy(msgspec.Struct, frozen=True, omit_defaults=True):
    """``NodeResourcesFitArgs.scoringStrategy``.

    ``shape`` holds points ``(utilisation 0..100, score 0..10)`` of RequestedToCapacityRatio.
    """

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[tuple[str, int], ...] = CPU_AND_MEMORY
    shape: tuple[tuple[int, int], ...] = ()


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The choices for one scheduler name. The defaults are kube-scheduler's.

    ``packs_gangs`` means quorate's own score of resources (``Policy.packing``), which looks at
    whole gangs, instead of kube-scheduler's two. ``added_required`` None adds nothing.
    ``default_spread`` holds the soft and hard constraints of pods that have none of their own;
    None means kube-scheduler's system defaults.
    """

    packs_gangs: bool = False
    weights: tuple[tuple[str, int], ...] = tuple(WEIGHTS.items())
    disabled: tuple[str, ...] = ()
    """Names of filters that are not applied."""
    fit: FitStrategy = FitStrategy()
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    balanced: tuple[tuple[str, int], ...] = CPU_AND_MEMORY
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    added_required: tuple[SelectorTerm, ...] | None = None
    added_preferred: tuple[PreferredTerm, ...] = ()
    default_spread: tuple[SpreadConstraint, ...] | None = None
    preemption_nodes_percentage_min: int = 10
    preemption_nodes_min: int = 100

    def weight(self, rule: str) -> int:
        """Return the weight of a score; 0 when it is disabled."""
        return dict(self.weights).get(rule, 0)


KUBE_SCHEDULER = Profile()
GANGS = Profile(packs_gangs=True, default_spread=())
