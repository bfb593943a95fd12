"""Quantities as a real API server compares and stores those of resource lists.

``agents.needs`` reads what a node can have; here every quantity that the API accepts
is read, signs and all. Source: k8s.io/apimachinery ``pkg/api/resource`` and the default of
ResourceList in kubernetes ``pkg/apis/core/v1`` of 1.36. Answers are remembered: few texts, many
pods.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pocketkube.schema.canonical import quantity

_PATTERN = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?"
)
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_POWER_MAX = 100
NANO = 10**9
_MILLI_IN_NANO = 10**6


@lru_cache(maxsize=16384)
def nano_units(text: str) -> int:
    """Return a quantity in billionths of a unit, rounded away from zero. Raises ValueError."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    sign, whole, fraction, only_fraction, suffix, exponent = match.groups()
    fraction = fraction or only_fraction or ""
    if exponent is not None and abs(int(exponent[:9])) > _POWER_MAX:
        raise ValueError(f"{text!r} is out of all bounds")
    amount = int((whole or "") + fraction) * NANO
    if suffix in _BINARY:
        amount *= 1024 ** _BINARY.index(suffix)
    power = int(exponent) if exponent else _POWERS.get(suffix or "", 0)
    power -= len(fraction)
    scale: int = 10 ** abs(power)
    amount = amount * scale if power >= 0 else -(-amount // scale)
    return -amount if sign == "-" else amount


@lru_cache(maxsize=16384)
def stored(text: str) -> str:
    """Return a quantity as a resource list stores it, rounded up to thousandths of a unit.

    A text that is no quantity stays as it is, for the checks to refuse.
    """
    try:
        written, amount = quantity(text), nano_units(text)
    except ValueError:
        return text
    if amount % _MILLI_IN_NANO:
        written = quantity(f"{-(-amount // _MILLI_IN_NANO)}m")
    return written


def of_nano(amount: int) -> str:
    """Return billionths of a unit as a quantity."""
    return quantity(f"{amount}n")


def canonical_list(resources: dict[str, object]) -> None:
    """Write the quantities of a resource list as they are stored, in place."""
    for name, given in resources.items():
        written = stored(given if isinstance(given, str) else str(given))
        if written != given:
            resources[name] = written
