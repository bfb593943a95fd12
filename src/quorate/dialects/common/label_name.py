"""Membership in dialects whose pods name an object in one label. Called by ``x_k8s``, ``sigs``."""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.model import GangKey, Membership
from quorate.dialects.base import PodFacts


def named_by_label(
    dialect: str, label: str, other: str = ""
) -> Callable[[PodFacts], Membership | None]:
    """Return the function that reads the gang's name there; an empty label names none.

    ``other`` is a second spelling of the label, for pods that lack the first.
    """

    def membership(facts: PodFacts) -> Membership | None:
        name = facts.labels.get(label) or (other and facts.labels.get(other))
        return Membership(GangKey(facts.namespace, dialect, name)) if name else None

    return membership
