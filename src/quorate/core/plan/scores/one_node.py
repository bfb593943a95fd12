"""The two scores of allocation for one node, in plain numbers.

Says what ``allocation_score`` says of that node, for a tenth of the time: most placements change
one node. Sources and formulas are those of ``node_resources_fit`` and of
``node_resources_balanced_allocation``.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.core.cluster.nodes.encoding import CPU, MEMORY, PodClass, Resources
from quorate.core.plan.scores.node_resources_balanced_allocation import asks_for_some

_NATIVE = ("cpu", "memory", "ephemeral-storage")


def allocation_score_on(
    pod_class: PodClass,
    free: Sequence[int],
    size: Sequence[int],
    scored: Sequence[int],
    resources: Resources,
) -> int | None:
    """Return the weighted sum of both; None where only arrays have the formula.

    ``free`` and ``size`` (allocatable) are by resource, ``scored`` is cpu and memory in use.
    """
    profile = pod_class.profile
    weights, total = dict(profile.weights), 0
    asked = dict(pod_class.demands)
    if weight := weights.get("NodeResourcesFit", 0):
        if profile.fit.type == "RequestedToCapacityRatio":
            return None
        total += weight * _fit(pod_class, asked, free, size, scored, resources)
    if weight := weights.get("NodeResourcesBalancedAllocation", 0):
        names = [name for name, _ in profile.balanced if name in resources.columns]
        if not any(asked.get(resources.columns[n]) for n in names) and not asks_for_some(pod_class):
            return total
        native = [n for n in names if n in _NATIVE or asked.get(resources.columns[n])]
        if len(native) != 2:
            return None
        first, second = (resources.columns[name] for name in native)
        total += weight * _balanced((first, second), asked, free, size)
    return total


def _fit(
    pod_class: PodClass,
    asked: dict[int, int],
    free: Sequence[int],
    size: Sequence[int],
    scored: Sequence[int],
    resources: Resources,
) -> int:
    shape, strategy = pod_class.shape, pod_class.profile.fit
    pending = shape.scored_pending or shape.scored
    total = weights = 0
    for name, weight in strategy.resources:
        column = resources.columns.get(name)
        if column is None:
            continue
        has = size[column]
        if column in (CPU, MEMORY):
            index = 0 if column == CPU else 1
            wanted = scored[index] + pending[index]
        elif not asked.get(column) and name not in _NATIVE:
            continue
        else:
            wanted = has - free[column] + asked.get(column, 0)
        if has > 0:
            left = has - wanted if strategy.type == "LeastAllocated" else min(wanted, has)
            total += weight * (max(left, 0) * 100 // has)
            weights += weight
    return total // weights if weights else 0


def _balanced(
    columns: tuple[int, int], asked: dict[int, int], free: Sequence[int], size: Sequence[int]
) -> int:
    if any(size[column] <= 0 for column in columns):
        return 75  # a resource alone is even
    evenness = []
    for counts in (1, 0):
        one, other = (
            min(float(size[c] - free[c] + counts * asked.get(c, 0)) / float(size[c]), 1.0)
            for c in columns
        )
        evenness.append(int((1 - abs(one - other) / 2) * 100.0))
    return 50 + (50 + evenness[0] - evenness[1]) // 2
