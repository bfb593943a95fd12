"""The PodDisruptionBudgets, by namespace. Owned by ``cluster.priorities.precedence``."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.model.budgets import PodDisruptionBudget


class Budgets:
    """All budgets that exist."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take a budget's newest version."""
        self._by_namespace.setdefault(budget.namespace, {})[budget.name] = budget

    def remove(self, namespace: str, name: str) -> None:
        """Forget a budget."""
        there = self._by_namespace.get(namespace, {})
        there.pop(name, None)
        if not there:
            self._by_namespace.pop(namespace, None)

    def split(self, pods: Iterable[PodEntry]) -> tuple[list[PodEntry], list[PodEntry]]:
        """Return the pods whose eviction violates a budget, and the others.

        Earlier pods use budgets first; both lists keep the order. A pod whose eviction the API
        server has counted already uses none (kube-scheduler's filterPodsWithPDBViolation).
        """
        left: dict[tuple[str, str], int] = {}
        violating: list[PodEntry] = []
        others: list[PodEntry] = []
        for entry in pods:
            violates = False
            for budget in self._of(entry):
                key = budget.namespace, budget.name
                left[key] = left.get(key, budget.allowed) - 1
                violates = violates or left[key] < 0
            (violating if violates else others).append(entry)
        return violating, others

    def _of(self, entry: PodEntry) -> list[PodDisruptionBudget]:
        """Return the budgets that the pod's eviction uses; here an empty selector matches none."""
        pod = entry.pod
        budgets = self._by_namespace.get(pod.namespace)
        if not budgets or not pod.labels:
            return []
        labels = dict(pod.labels)
        return [
            budget
            for budget in budgets.values()
            if budget.selector is not None
            and budget.selector.requirements
            and pod.name not in budget.disrupted
            and budget.selector.matches(labels)
        ]
