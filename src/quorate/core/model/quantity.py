"""Kubernetes quantities to integers in base units, and back to text for a person.

Grammar: k8s.io/apimachinery ``resource.Quantity``: a signed decimal with an optional suffix
(n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or a decimal exponent. Fractions round up, as the default
scheduler's ``MilliValue`` and ``Value`` do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""A resource of this prefix and a device class's name is backed by that class."""
QUANTITY_MAX = 2**53
"""Largest amount accepted: 9 PB of memory; a thousand of them still add up within an int64."""

_PATTERN = re.compile(
    r"([+-]?)(?:([0-9]{1,40})(?:\.([0-9]{0,40}))?|\.([0-9]{1,40}))"
    r"(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?"
)
_BINARY: dict[str, int] = {
    f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)
}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SIZES = tuple((suffix, _BINARY[suffix]) for suffix in ("Pi", "Ti", "Gi", "Mi", "Ki"))


class QuantityError(ValueError):
    """A text that is no quantity, or one that no machine could have."""


@lru_cache(maxsize=16384)
def parse_quantity(text: str, *, milli: bool = False) -> int:
    """Return ``text`` as a whole number of units (of thousandths with ``milli``), rounded up.

    Raises ``QuantityError``: not a quantity, negative, or larger than ``QUANTITY_MAX``.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text[:60]!r} is not a quantity such as 500m, 2 or 16Gi")
    sign, whole, fraction, only_fraction, suffix, exponent = match.groups()
    fraction = fraction or only_fraction or ""
    numerator = int((whole or "") + fraction)
    if sign == "-" and numerator:
        raise QuantityError(f"{text[:60]!r} is negative")
    power = int(exponent) if exponent else _DECIMAL.get(suffix, 0)
    power += (3 if milli else 0) - len(fraction)
    numerator *= _BINARY.get(suffix, 1)
    # Integers throughout: floats would lose bytes, and fractions are five times slower.
    scale: int = 10 ** abs(power)
    units = numerator * scale if power >= 0 else -(-numerator // scale)
    if units > QUANTITY_MAX:
        raise QuantityError(f"{text[:60]!r} is larger than any machine")
    return units


@lru_cache(maxsize=16384)
def exact(text: str) -> Fraction:
    """Return ``text`` as it is: of any sign and size. Raises ``QuantityError``."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text[:60]!r} is not a quantity such as 500m, 2 or 16Gi")
    sign, whole, fraction, only_fraction, suffix, exponent = match.groups()
    fraction = fraction or only_fraction or ""
    power = int(exponent) if exponent else _DECIMAL.get(suffix, 0)
    value = Fraction(int((whole or "") + fraction), 10 ** len(fraction))
    value *= _BINARY.get(suffix, 1) * Fraction(10) ** power
    return -value if sign == "-" else value


def parse_amount(resource: str, text: str) -> int:
    """Return ``text`` in the base unit of ``resource``: millicores for cpu, else units."""
    return parse_quantity(text, milli=resource == "cpu")


def is_node_resource(name: str) -> bool:
    """Whether NodeResourcesFit compares this resource with what a node has; others are ignored.

    cpu, memory, ephemeral-storage, hugepages, attachable volumes and extended resources
    (kubernetes pkg/scheduler). ``pods`` is not among them: it is counted, not requested.
    """
    if "/" in name:
        return not name.startswith("requests.") or "kubernetes.io/" in name
    return name in ("cpu", "memory", "ephemeral-storage") or name.startswith(
        ("hugepages-", "attachable-volumes-")
    )


def counts_gpus(name: str) -> bool:
    """Whether a resource counts GPUs, or slices of them: ``nvidia.com/gpu``, ``amd.com/gpu``."""
    domain, _, kind = name.rpartition("/")
    return bool(domain) and (
        kind in ("gpu", "gpu.shared") or kind.startswith("mig-") or domain.startswith("gpu.")
    )


def gpus_in(requests: Iterable[tuple[str, int]]) -> int:
    """Return how many GPUs, or slices of them, are among amounts of resources, in base units."""
    return sum(amount for name, amount in requests if counts_gpus(name))


def format_amount(resource: str, amount: int) -> str:
    """Return ``amount`` (base units of ``resource``) as a person would write it, and exactly."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource == "memory" or resource.endswith("storage") or resource.startswith("hugepages-"):
        for suffix, size in _SIZES:
            # One decimal where it is exact; a rounded one would print "needs 1.0Gi, has 1.0Gi".
            if amount >= size and amount * 10 % size == 0:
                whole, tenths = divmod(amount * 10 // size, 10)
                return f"{whole}.{tenths}{suffix}" if tenths else f"{whole}{suffix}"
    return str(amount)
