"""Check many cases, and say which rules they met: agreement of what never happens means nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quorate.core.rules.rule import Rule
from quorate.core.rules.table import FILTERS
from tools.oracle import Oracle
from tools.parity.cases import draw_case
from tools.parity.compare import differences
from tools.parity.ours import answer
from tools.parity.seeded import Seeded

Case = dict[str, Any]


class Tally:
    """What was compared: cases, verdicts by rule, and the cases that differ."""

    def __init__(self) -> None:
        self.cases = 0
        self.refusals: Counter[str] = Counter()
        """Nodes that a rule of kube-scheduler refused."""
        self.sentences = 0
        self.cleared: Counter[str] = Counter()
        """Cases in which preemption clears a node, and what was to be seen in them."""
        self.different: list[tuple[int, list[str]]] = []

    def note(self, theirs: Mapping[str, Any]) -> None:
        """Count what kube-scheduler said of one case."""
        self.cases += 1
        for verdicts in theirs["filter"].values():
            self.refusals.update(r for r, v in (verdicts or {}).items() if v["code"] != "Success")
        self.sentences += not theirs.get("feasible")
        self._note_preemption(theirs.get("preemption") or {})

    def _note_preemption(self, said: Mapping[str, Any]) -> None:
        candidates = (said.get("candidates") or {}).values()
        self.cleared["a node"] += bool(said.get("node"))
        self.cleared["one of several"] += len(candidates) > 1
        self.cleared["against a budget"] += any(one.get("pdbViolations") for one in candidates)
        self.cleared["of several pods"] += any(len(one["victims"]) > 1 for one in candidates)

    def summary(self) -> str:
        """Return one line."""
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(self.refusals.items()))
        cleared = ", ".join(f"{what} {count}" for what, count in self.cleared.items())
        return (
            f"{self.cases} cases, {len(self.different)} differ; refusals: {rules}; "
            f"sentences: {self.sentences}; "
            f"preemption cleared: {cleared}"
        )


def check_seeds(
    oracle: Oracle,
    seeds: Iterable[int],
    rules: Iterable[Rule] = FILTERS,
    on_case: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Compare the case of each seed."""
    tally = Tally()
    for seed in seeds:
        case = draw_case(Seeded(seed))
        theirs = oracle.ask(case)
        tally.note(theirs)
        if found := differences(answer(case, rules), theirs):
            tally.different.append((seed, found))
        on_case(tally)
    return tally


def differs(oracle: Oracle, case: Case) -> list[str]:
    """Return the differences of one case; a case that the oracle refuses has none."""
    theirs = oracle.ask(case)
    return differences(answer(case), theirs)
