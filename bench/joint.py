"""Measure the joint search: gangs of up to 64 members in up to 8 classes on up to 200 nodes.

Prints, for gangs of ``joint_cases``, how many are placed by greedy order, how many by search, how
many provably do not fit, how many searches were cut short, and the CPU time of the decisions.
Usage: python -m bench.joint [gangs] [seed].
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable

from bench.joint_cases import Case, planted_case, random_case
from quorate.core.model.policy import Policy
from quorate.core.model.steps import Steps
from quorate.core.place import gang, greedy

CASES: dict[str, Callable[[int], Case]] = {
    "random": random_case,
    "planted": planted_case,
    "planted and one more": lambda seed: planted_case(seed, extra=1),
}


def main() -> None:
    gangs, seed = (int(text) for text in (*sys.argv[1:], "200", "1")[:2])
    for name, make in CASES.items():
        outcomes: Counter[str] = Counter()
        seconds = []
        for number in range(seed * 1_000_000, seed * 1_000_000 + gangs):
            outcome, took_s = decide(make(number))
            outcomes[outcome] += 1
            seconds.append(took_s)
        seconds.sort()
        median, late = (seconds[int(len(seconds) * part)] * 1e3 for part in (0.5, 0.95))
        times = f"median {median:.0f}, p95 {late:.0f}, slowest {seconds[-1] * 1e3:.0f} ms"
        print(f"{name}: {gangs} gangs: {dict(sorted(outcomes.items()))}; {times}")


def decide(case: Case) -> tuple[str, float]:
    """Return what became of the gang, and the CPU time of the decision in seconds."""
    demand, room = case
    if not demand.need:
        return "empty", 0.0
    classes = greedy.largest_first(demand.classes, room)
    first = greedy.place_in_order(classes, demand, room, "most-allocated", Steps(0))
    started_s = time.process_time()
    found = gang.place_gang(demand, room, "most-allocated", Policy().search_steps_max)
    took_s = time.process_time() - started_s
    if isinstance(found, gang.DoesNotFit):
        return "cut short" if found.exhausted else "does not fit", took_s
    return "greedy" if first.placed >= demand.need else "search", took_s


if __name__ == "__main__":
    main()
