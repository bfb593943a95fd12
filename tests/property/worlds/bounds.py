"""Bounds set small: worlds of a few nodes then meet what only large clusters meet otherwise."""

from __future__ import annotations

import contextlib

from quorate.core.model import policy
from quorate.core.model.steps import costs

MODULES = policy, costs

KEPT = frozenset(
    {
        *("INCIDENTS_KEPT_MAX", "INCIDENT_FRAMES_MAX"),
        *("DEVICE_TEXT_BYTES_MAX", "DEVICE_ATTRIBUTES_MAX"),
        *(name for name in vars(costs) if name.startswith("CEL_") and "PER_STEP" not in name),
    }
)
"""Left as they are: the tests read what is kept of incidents; the two of devices are the API's; and
what parts of a CEL selector cost decides nothing but whether the selector is too costly."""


AT_LEAST = {
    "CLASS_VARIANTS_KEPT_MAX": 64,
    "TURN_STEPS_MAX": 1,
    "TOUCHED_PER_TURN_MAX": 1,
    "SEARCH_SIZES_MAX": 1,
    "EXPLAINED_PER_TURN_MAX": 1,
    "RESTART_FAILURES_MAX": 1,
    "LONG_TURN_STEPS_MAX": 6_000,
    "PODS_PER_S": 1,
    "REBUILDING_PASSES_MAX": 1,
    "SLOT_ROWS_AT_ONCE_MIN": 1,
}
"""Below these is nothing: no step in a turn is no turn, twice none is none, nothing is divided
by none. A search goes on as long as its classes are the same: they have to outlive a turn. A gang
that needs more than the longest turn is not placed, and none of these worlds needs so much."""


def constants():
    """Return the names of all bounds of the core that are whole numbers."""
    return sorted(
        name
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and type(value) is int and name not in KEPT
    )


def value(name, drawn):
    """Return what a bound is set to."""
    is_divisor = name.endswith(("_PER_STEP", "_PER_GROUP", "_PER_WORK", "_PER_ROW"))
    return max(drawn, AT_LEAST.get(name, int(is_divisor)))


def small(chance):
    """Draw some bounds with small values; most worlds have few of them."""
    names = constants()
    drawn = chance.sample(names, min(len(names), chance.choice([1, 2, 4, len(names)])))
    return {name: value(name, chance.choice([1, 2, 3, 8])) for name in sorted(drawn)}


@contextlib.contextmanager
def set_to(values):
    """Let bounds have these values for a while."""
    homes = {name: one for one in MODULES for name in values if hasattr(one, name)}
    before = {name: getattr(home, name) for name, home in homes.items()}
    for name, home in homes.items():
        setattr(home, name, values[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(homes[name], name, value)
