"""Gt and Lt read integers as Go's ``strconv.ParseInt(text, 10, 64)`` does, and nothing else."""

import pytest

from quorate.core.check.verify_nodes import _int64
from quorate.core.model import Requirement, SelectorTerm
from quorate.core.model.selectors import parse_int64
from quorate.core.rules.faults import impossible_terms
from tests.unit.core.world import World

INTEGERS = [
    ("0", 0),
    ("7", 7),
    ("+7", 7),
    ("-7", -7),
    ("-0", 0),
    ("0012", 12),
    ("0" * 60 + "12", 12),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
]
NO_INTEGERS = [
    "",
    "+",
    "-",
    "--1",
    "+-1",
    "1_6",
    "_1",
    "1_",
    " 1",
    "1 ",
    "1\n",
    "1.0",
    "1e3",
    "0x10",
    "x",
    "\u0661",
    "\uff11",
    "²",
    "9223372036854775808",
    "-9223372036854775809",
    "9" * 60,
    "9" * 5000,
]


@pytest.mark.parametrize("read", [parse_int64, _int64], ids=["planner", "verifier"])
@pytest.mark.parametrize(("text", "number"), [*INTEGERS, *((text, None) for text in NO_INTEGERS)])
def test_an_integer_is_what_go_reads_as_one(read, text, number):
    assert read(text) == number


@pytest.mark.parametrize(
    ("label", "bound", "goes"),
    [("16", "8", True), ("1_6", "8", False), ("16", "0_8", False), ("\uff11\uff16", "8", False)],
)
def test_a_node_is_taken_only_where_kube_scheduler_would_take_it(label, bound, goes):
    w = World()
    w.node("n0", labels={"cores": label})
    term = SelectorTerm((Requirement("cores", "Gt", (bound,)),))
    w.pod("p", spec={"required_terms": (term,)})
    assert (w.cycle() == {"p": "n0"}) is goes


def test_more_than_one_bound_is_none():
    w = World()
    w.node("n0", labels={"cores": "16"})
    term = SelectorTerm((Requirement("cores", "Gt", ("8", "9")),))
    w.pod("p", spec={"required_terms": (term,)})
    assert w.cycle() == {}


def test_a_bound_that_only_python_reads_is_called_no_integer():
    term = SelectorTerm((Requirement("cores", "Gt", ("1_6",)),))
    assert impossible_terms((term,), (), "terms") == (
        'terms[0].matchExpressions[0].values "1_6" is no integer, which Gt needs'
    )
