"""The core says of every node and pod what kube-scheduler's own plugins say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.rules.table import FILTERS, KUBE_FILTERS
from tests.property.seeds import first, kept, times
from tools.oracle import Oracle
from tools.parity.cases import draw_case
from tools.parity.checking import check_seeds, differs
from tools.parity.named import NAMED, Named
from tools.parity.ours import answer

T = TypeVar("T")
CASES = times(10_000)
FIRST_SEED = first("parity")
BLOCK = 1000
_ELSEWHERE = ("DynamicResources", "NodeDeclaredFeatures")
"""Rules that test_devices draws cases for."""
DRAWN = [rule for rule in KUBE_FILTERS if rule not in _ELSEWHERE]
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json"))


class Drawn:
    """Decisions of hypothesis, which makes a case that fails as small as it can."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def pick(self, values: Sequence[T]) -> T:
        return self._data.draw(st.sampled_from(values))

    def number(self, least: int, most: int) -> int:
        return self._data.draw(st.integers(least, most))

    def chance(self, percent: int) -> bool:
        return self._data.draw(st.integers(0, 99)) >= 100 - percent


@pytest.mark.parametrize("block", range(0, CASES, BLOCK))
def test_random_cases_agree(oracle: Oracle, block: int) -> None:
    begin = FIRST_SEED + block
    tally = check_seeds(oracle, range(begin, begin + BLOCK))
    said = [f"seed {seed}: {'; '.join(found)}" for seed, found in tally.different]
    assert not said, "\n".join([*said[:20], f"make parity N=1 SEED={tally.different[0][0]}"])


def test_random_cases_that_once_differed_agree(oracle: Oracle) -> None:
    assert check_seeds(oracle, kept("parity")).different == []


@pytest.mark.explore
@settings(max_examples=150)
@given(st.data())
def test_a_case_that_hypothesis_draws_agrees(oracle: Oracle, data: st.DataObject) -> None:
    assert differs(oracle, draw_case(Drawn(data))) == []


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_case_that_once_differed_agrees(oracle: Oracle, path: Path) -> None:
    assert differs(oracle, json.loads(path.read_text())) == []


def test_the_cases_meet_every_rule(oracle: Oracle) -> None:
    """These are always the same cases: some counts of fresh ones would be too low by chance."""
    tally = check_seeds(oracle, range(1, 1001))
    assert tally.different == []
    assert {rule: tally.refusals[rule] for rule in DRAWN if tally.refusals[rule] < 50} == {}
    assert tally.sentences > 100
    assert {what: count for what, count in tally.cleared.items() if count < 10} == {}


@pytest.mark.parametrize("rule", DRAWN)
def test_a_rule_that_were_missing_would_be_noticed(oracle: Oracle, rule: str) -> None:
    others = [one for one in FILTERS if one.name != rule]
    assert check_seeds(oracle, range(1, 101), others).different


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.name)
def test_a_deliberate_difference_is_still_one(oracle: Oracle, named: Named) -> None:
    theirs, ours = oracle.ask(named.case), answer(named.case)
    assert tuple(theirs["feasible"]) == named.their_feasible
    assert tuple(ours.feasible) == named.our_feasible
    assert (theirs.get("preemption") or {}).get("node", "") == named.their_cleared
    assert (ours.preemption.node if ours.preemption else "") == named.our_cleared
