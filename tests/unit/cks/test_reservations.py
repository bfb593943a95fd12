"""The life-cycle's table and what follows from it, for every order of what can happen to a node."""

import itertools

import msgspec
import pytest

from quorate.cks.reservations import (
    INSTANCE_TYPE,
    REASON,
    TYPE,
    Node,
    Reason,
    amended,
    hashed,
    is_of_reservation,
    judge,
    unsteady,
)
from quorate.cks.rules import Rules
from quorate.cks.states import PRODUCTION, STEPS, TRIAGE, diagram
from quorate.core.model.life_cycle import CONTROL_PLANE
from tests.paths import ROOT

RULES = Rules(organizations=("acme", "zeta"))
STATE, RESERVED, DESIRED = RULES.state_label, RULES.reserved_label, RULES.desired_label
OURS = {"key": "example.com/ours", "value": "yes", "effect": "NoExecute", "timeAdded": "2026"}
VERIFIED = {"key": RESERVED, "value": "f00", "effect": "NoExecute"}
"""A taint of others, with the key of ours and another effect."""
PAGE = ROOT / "docs" / "operators" / "coreweave.md"
OWNERS = (CONTROL_PLANE, *RULES.organizations)
EVENTS = [
    *((STATE, state) for state in (*STEPS, "broken", "acme", None)),
    *((DESIRED, desired) for desired in (*OWNERS, "nobody", TRIAGE, None)),
    *((RESERVED, reserved) for reserved in ("zeta", None)),
    ("taints", []),
    ("vacant", True),
    ("vacant", False),
]
"""What the platform, and who edits by hand, can do to a node: one label or all its taints; and pods
that come and go."""


class Machine:
    """A node, and what the rules make of it after each thing that happens."""

    def __init__(self, labels: dict | None = None, **capacity: str) -> None:
        self.labels = dict(labels or {})
        self.annotations: dict[str, str] = {}
        self.taints = [OURS, VERIFIED]
        self.capacity = {"cpu": "8", **capacity}
        self.vacant = True
        self.writes = 0

    def node(self) -> Node:
        body = {
            "metadata": {
                "name": "n",
                "resourceVersion": "7",
                "labels": self.labels,
                "annotations": self.annotations,
            },
            "spec": {"taints": self.taints},
            "status": {"capacity": self.capacity},
        }
        return msgspec.convert(body, Node)

    def happens(self, what: str, value: object) -> None:
        if what in ("taints", "vacant"):
            setattr(self, what, value)
        elif value is None:
            self.labels.pop(what, None)
        else:
            self.labels[what] = value

    def settle(self) -> None:
        """Judge and write until nothing is left to write."""
        for self.writes in range(5):
            verdict = judge(self.node(), RULES, is_vacant=self.vacant)
            patch = verdict and amended(self.node(), verdict, RULES)
            if not patch:
                return
            assert patch["metadata"].pop("resourceVersion") == "7"
            for name in ("labels", "annotations"):
                for key, value in patch["metadata"].get(name, {}).items():
                    getattr(self, name).pop(key, None)
                    if value is not None:
                        getattr(self, name)[key] = value
            self.taints = patch.get("spec", {}).get("taints", self.taints)
        pytest.fail(f"it does not settle: {self.labels} {self.taints}")

    def reason(self) -> str:
        return self.annotations.get(REASON, "").partition(":")[0]


def test_every_order_of_three_events_leaves_a_node_with_whom_it_may_be():
    seen = set()
    for events in itertools.product(EVENTS, repeat=3):
        machine = Machine({STATE: PRODUCTION, RESERVED: "acme", DESIRED: "acme"})
        machine.settle()
        for what, value in events:
            machine.happens(what, value)
            before = machine.labels.get(RESERVED)
            machine.settle()
            is_what_it_may_be(machine, before)
            seen.add((machine.labels.get(RESERVED), machine.reason()))
    assert {reason for _, reason in seen} == {*map(str, Reason), ""} - {"Unsteady"}
    assert {reserved for reserved, _ in seen} == {*OWNERS, *STEPS, None} - {PRODUCTION}


def is_what_it_may_be(machine: Machine, before: str | None) -> None:
    state, reserved, desired = (machine.labels.get(key) for key in (STATE, RESERVED, DESIRED))
    if not {STATE, RESERVED, DESIRED} & machine.labels.keys():
        return  # it is not part of the life-cycle any more, and is left as it is
    assert machine.writes <= 2
    own = [one for one in machine.taints if one not in (OURS, VERIFIED)]
    assert own == [
        {"key": RESERVED, "value": hashed(reserved), "effect": "NoSchedule"},
        {"key": "is_cpu_compute", "effect": "NoSchedule"},
    ]
    if reserved in RULES.organizations:
        assert (state, desired) == (PRODUCTION, reserved)
        assert machine.vacant or before == reserved, "pods of others are still there"
        assert not machine.reason()
    elif state != PRODUCTION:
        assert reserved == (state if state in STEPS else TRIAGE)
        assert bool(machine.reason()) == (state not in STEPS)
    else:
        assert reserved == CONTROL_PLANE
        assert bool(machine.reason()) == (desired != CONTROL_PLANE)


def test_taints_of_others_stay_as_they_are_and_where_they_are():
    machine = Machine({STATE: PRODUCTION, DESIRED: "acme"})
    machine.settle()
    assert machine.taints[:2] == [OURS, VERIFIED]
    machine.happens("taints", [*machine.taints[::-1], {**OURS, "key": "example.com/more"}])
    machine.settle()
    assert machine.writes == 0


@pytest.mark.parametrize(
    ("labels", "capacity", "taint"),
    [
        ({}, {}, "is_cpu_compute"),
        ({}, {"nvidia.com/gpu": "8"}, "is_gpu"),
        ({}, {"nvidia.com/gpu": "0"}, "is_cpu_compute"),
        ({RULES.class_label: "gpu"}, {}, "is_gpu"),
        ({RULES.class_label: "cpu"}, {"nvidia.com/gpu": "8"}, "is_cpu_compute"),
        ({RULES.class_label: "tpu"}, {"nvidia.com/gpu": "8"}, "is_gpu"),
    ],
)
def test_a_node_with_gpus_and_one_without_have_the_taint_that_is_theirs(labels, capacity, taint):
    machine = Machine({STATE: PRODUCTION, **labels}, **capacity)
    machine.taints = [
        {"key": "is_gpu", "value": "yes", "effect": "PreferNoSchedule"},
        {"key": "is_cpu_compute", "value": "by-hand", "effect": "NoSchedule"},
    ]
    machine.settle()
    expected = {
        "is_gpu": {"key": "is_gpu", "value": "true", "effect": "PreferNoSchedule"},
        "is_cpu_compute": {"key": "is_cpu_compute", "effect": "NoSchedule"},
    }
    assert machine.taints[0]["key"] == RESERVED
    assert machine.taints[1:] == [expected[taint]]


def test_the_older_label_of_the_instance_type_is_kept_equal():
    machine = Machine({STATE: PRODUCTION, INSTANCE_TYPE: "gd-8xh100ib-i128", TYPE: "H100"})
    machine.settle()
    assert machine.labels[TYPE] == "gd-8xh100ib-i128"


def test_a_node_outside_of_the_life_cycle_is_left_alone():
    node = Machine({INSTANCE_TYPE: "m5", TYPE: "m4"}).node()
    assert judge(node, RULES) is None


def test_whose_a_node_is_survives_that_its_state_changes():
    machine = Machine({STATE: PRODUCTION, RESERVED: "acme"})
    machine.happens(STATE, TRIAGE)
    machine.settle()
    assert (machine.labels[RESERVED], machine.labels[DESIRED]) == (TRIAGE, "acme")
    machine.happens(STATE, PRODUCTION)
    machine.settle()
    assert machine.labels[RESERVED] == "acme"


def test_a_node_that_is_given_to_and_fro_is_nobodys_and_whose_it_was_is_known():
    node = Machine({STATE: PRODUCTION, RESERVED: "acme"}).node()
    patch = amended(node, unsteady("acme"), RULES)
    assert patch["metadata"]["labels"] == {RESERVED: TRIAGE, DESIRED: "acme"}
    assert patch["metadata"]["annotations"][REASON].startswith("Unsteady: ")


def test_a_node_of_an_organization_that_has_left_is_closed_before_it_is_given_away():
    node = Machine({STATE: PRODUCTION, RESERVED: "left", DESIRED: "acme"}).node()
    assert judge(node, RULES, is_vacant=True).reserved == CONTROL_PLANE


@pytest.mark.parametrize(
    ("changed", "taints", "is_of_it"),
    [
        ({TYPE: "H100"}, None, False),
        ({RESERVED: "zeta"}, None, True),
        ({}, [], True),
        ({}, [{"key": RESERVED, "value": hashed("acme"), "effect": "NoSchedule"}], False),
    ],
)
def test_what_is_said_besides_is_told_from_the_reservation(changed, taints, is_of_it):
    labels = {STATE: PRODUCTION, RESERVED: "acme", DESIRED: "acme", INSTANCE_TYPE: "gd-8x"}
    machine = Machine({**labels, TYPE: "gd-8x"})
    machine.settle()
    machine.labels |= changed
    machine.taints = machine.taints if taints is None else taints
    node = machine.node()
    patch = amended(node, judge(node, RULES), RULES)
    assert is_of_reservation(node, patch, RULES) == is_of_it


def test_every_state_can_be_reached_and_each_but_one_can_be_left():
    following = {after for steps in STEPS.values() for after in steps}
    assert following == {*STEPS}
    assert [state for state, steps in STEPS.items() if not steps] == ["zap-fail"]


def test_the_page_draws_the_table():
    assert f"```mermaid\n{diagram()}\n```" in PAGE.read_text()
