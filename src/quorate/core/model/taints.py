"""Taints of nodes and devices, and what tolerates them."""

from __future__ import annotations

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
