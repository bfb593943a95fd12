"""What was measured in this run, for its last lines."""

import statistics
from typing import NamedTuple


class Case(NamedTuple):
    """One attack that was survived: times of the neighbour's gangs without and with it."""

    name: str
    quiet_s: float
    took_s: float
    peak_bytes: int
    accepted: int


CASES: list[Case] = []
ANSWERS: dict[str, int] = {}
"""How many answers were spoilt, by fault."""


def lines() -> list[str]:
    """Return the figures as lines of text."""
    said = []
    if CASES:
        ratios = [case.took_s / case.quiet_s for case in CASES]
        worst = max(CASES, key=lambda case: case.took_s / case.quiet_s)
        writes = sum(case.accepted for case in CASES)
        took_s = 1000 * statistics.median(case.took_s for case in CASES)
        quiet_s = 1000 * statistics.median(case.quiet_s for case in CASES)
        said += [
            f"{len(CASES)} attacks survived, of {writes} writes that the API server accepted",
            f"the neighbour's gangs: {took_s:.0f} ms under attack, {quiet_s:.0f} ms without",
            f"ratio: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f} "
            f"({worst.name}: {1000 * worst.took_s:.0f} ms)",
            f"peak memory: {max(case.peak_bytes for case in CASES) / 2**20:.0f} MiB",
        ]
    if ANSWERS:
        by_fault = ", ".join(f"{fault} {count}" for fault, count in sorted(ANSWERS.items()))
        said.append(f"{sum(ANSWERS.values())} answers spoilt: {by_fault}")
    return said
