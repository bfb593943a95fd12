"""Bounds set small: worlds of a few nodes then meet what only large clusters meet otherwise."""

from __future__ import annotations

import contextlib

from quorate.core.model import policy

KEPT = frozenset({"INCIDENTS_KEPT_MAX"})
"""Left as they are: the tests read what they keep."""


AT_LEAST = {
    "CLASS_VARIANTS_KEPT_MAX": 64,
    "TURN_STEPS_MAX": 1,
    "TOUCHED_PER_TURN_MAX": 1,
    "SEARCH_SIZES_MAX": 1,
    "EXPLAINED_PER_TURN_MAX": 1,
    "RESTART_FAILURES_MAX": 1,
    "LONG_TURN_STEPS_MAX": 6_000,
}
"""Below these is nothing: no step in a turn is no turn, twice none is none, nothing is divided
by none. A search goes on as long as its classes are the same: they have to outlive a turn. A gang
that needs more than the longest turn is not placed, and none of these worlds needs so much."""


def constants():
    """Return the names of all bounds of ``quorate.core.model.policy`` that are whole numbers."""
    return sorted(
        name
        for name, value in vars(policy).items()
        if name.isupper() and type(value) is int and name not in KEPT
    )


def value(name, drawn):
    """Return what a bound is set to."""
    is_divisor = name.endswith(("_PER_STEP", "_PER_GROUP", "_PER_WORK"))
    return max(drawn, AT_LEAST.get(name, int(is_divisor)))


def small(chance):
    """Draw some bounds with small values; most worlds have few of them."""
    names = constants()
    drawn = chance.sample(names, min(len(names), chance.choice([1, 2, 4, len(names)])))
    return {name: value(name, chance.choice([1, 2, 3, 8])) for name in sorted(drawn)}


@contextlib.contextmanager
def set_to(values):
    """Let bounds have these values for a while."""
    before = {name: getattr(policy, name) for name in values if hasattr(policy, name)}
    for name in before:
        setattr(policy, name, values[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(policy, name, value)
