"""Taints of nodes and devices, and what tolerates them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Taint(msgspec.Struct, frozen=True, omit_defaults=True):
    """``node.spec.taints[]``."""

    key: str
    effect: str
    value: str = ""


class Toleration(msgspec.Struct, frozen=True, omit_defaults=True):
    """``pod.spec.tolerations[]``. An empty key or effect matches any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations matches the taint (core/v1 ToleratesTaint).

    An empty effect or key matches any; ``Exists`` ignores the value. The alpha operators Lt and Gt
    match nothing.
    """
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (
            toleration.operator == "Exists"
            or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
        )
        for toleration in tolerations
    )
