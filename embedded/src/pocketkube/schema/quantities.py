"""Quantities such as 500m and 1Gi: read as billionths of a unit, and written as they are stored.

Source: k8s.io/apimachinery ``pkg/api/resource`` and the default of ResourceList in kubernetes
``pkg/apis/core/v1`` of 1.36. Unlike there, no text is kept as it was given: ``+5`` becomes 5.
Answers are remembered: few texts, many pods.
"""

from __future__ import annotations

import re
from functools import lru_cache

NANO = 10**9
BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)

_MILLI_IN_NANO = 10**6
_PATTERN = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?"
)
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIXES = {power: suffix for suffix, power in _POWERS.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = "e"
_POWER_MAX = 100  # no machine has as much; and the arithmetic would take for ever


@lru_cache(maxsize=16384)
def _read(text: str) -> tuple[int, str]:
    """Return a quantity in billionths, rounded away from zero, and its suffix."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(BAD_QUANTITY)
    sign, whole, fraction, suffix, exponent = (part or "" for part in match.groups())
    power = int(exponent[:9]) if exponent else _POWERS.get(suffix, 0)
    if abs(power) > _POWER_MAX:
        raise ValueError(f"quantity {text!r} is out of all bounds")
    amount = int(whole + fraction) * NANO
    if suffix in _BINARY:
        amount *= 1024 ** _BINARY.index(suffix)
    power -= len(fraction)
    scale: int = 10 ** abs(power)
    amount = amount * scale if power >= 0 else -(-amount // scale)
    return -amount if sign == "-" else amount, _EXPONENT if exponent else suffix


def _written(nano: int, suffix: str) -> str:
    """Write billionths in the form that a suffix is of: powers of 1024, exponents, or of 1000."""
    sign, amount = "-" * (nano < 0), abs(nano)
    if suffix in _BINARY[1:] and amount >= 1024 * NANO and amount % NANO == 0:
        amount, index = amount // NANO, 0
        while amount % 1024 == 0 and index < len(_BINARY) - 1:
            amount, index = amount // 1024, index + 1
        return f"{sign}{amount}{_BINARY[index]}"
    power, power_max = -9, _POWER_MAX if suffix == _EXPONENT else max(_SUFFIXES)
    while amount and amount % 1000 == 0 and power < power_max:
        amount, power = amount // 1000, power + 3
    if not amount or not power:
        return f"{sign}{amount}"
    return f"{sign}{amount}e{power}" if suffix == _EXPONENT else f"{sign}{amount}{_SUFFIXES[power]}"


def nano_units(text: str) -> int:
    """Return a quantity in billionths of a unit, rounded away from zero. Raises ValueError."""
    return _read(text)[0]


@lru_cache(maxsize=16384)
def quantity(text: str) -> str:
    """Return a quantity in its canonical form. Raises ValueError."""
    return _written(*_read(text))


@lru_cache(maxsize=16384)
def stored(text: str) -> str:
    """Return a quantity as a resource list stores it, rounded up to thousandths of a unit.

    A text that is no quantity stays as it is, for the checks to refuse.
    """
    try:
        amount, suffix = _read(text)
    except ValueError:
        return text
    return _written(-(-amount // _MILLI_IN_NANO) * _MILLI_IN_NANO, suffix)


def of_nano(amount: int, *, binary: bool = False) -> str:
    """Return billionths of a unit as a quantity; bytes (``binary``) in powers of 1024."""
    return _written(amount, "Ki" if binary else "")


def canonical_list(resources: dict[str, object]) -> None:
    """Write the quantities of a resource list as they are stored, in place."""
    for name, given in resources.items():
        written = stored(given if isinstance(given, str) else str(given))
        if written != given:
            resources[name] = written
