"""Whatever one tenant writes, the scheduler lives on as it is and the other's gangs start."""

import pytest

from tests.hostile.catalogue import CATALOGUE
from tests.hostile.catalogue.rows import STARTS, Attack
from tests.hostile.harness.attacker import Attacker
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.target import Target
from tools.testing import wait_for

GANGS = 3
GANGS_MEANWHILE = 12
"""Of an attack that goes on."""
GATE = (
    "ten_thousand_terms_of_anti_affinity",  # more than a pod may have
    "quantities_at_the_edge",
    "bindings_of_its_own",  # what only schedulers should write
    "owners_of_foreign_kinds_and_in_circles",  # names that lead elsewhere
    "expressions_that_fail",
    "a_min_at_each_edge",  # what the API server refuses, too
    "names_of_gangs_that_steer_a_terminal",
    "members_of_the_neighbours_gang",
    "a_leader_beside_its_workers_over_zones",  # a long search
    "running_members_that_change_their_gang",  # edits that go on
    "claims_of_volumes_of_every_kind",
    "templates_and_shared_claims",  # of devices
    "a_namespace_that_goes_in_the_midst_of_gangs",  # a storm
)
"""One row of each class; the others are for ``make explore``."""
ROWS = [
    pytest.param(row, id=row.name, marks=[] if row.name in GATE else pytest.mark.explore)
    for row in CATALOGUE
]


@pytest.mark.parametrize("attack", ROWS)
def test_nothing_that_a_tenant_writes_stops_the_others(
    attack: Attack, target: Target, neighbour: Neighbour, attacker: Attacker
):
    target.forget_peak()
    before = target.state()
    attack.act(attacker)
    neighbour.start_gangs(GANGS_MEANWHILE if attacker.goes_on else GANGS)
    told(attack, attacker)
    target.check(before)
    print(f"{attacker.accepted} accepted, refused {attacker.refused}")


def told(attack: Attack, attacker: Attacker) -> None:
    """Wait until the tenant's own pods have what is expected of them."""
    for text in attack.told:
        if text == STARTS:
            wait_for(lambda: any("nodeName" in p["spec"] for p in attacker.pods()), text)
        else:
            wait_for(
                lambda text=text: any(text in said for said in attacker.said()),
                f"a condition with {text!r}; {attacker.said()}, refused {attacker.refused}",
            )
    if attack.refused:
        assert attack.refused in attacker.refused, attacker.refused
    for said in attacker.said():
        assert said.isprintable(), said
        assert len(said) < 1200, said


def test_each_row_of_the_gate_is_in_the_catalogue():
    assert set(GATE) <= {row.name for row in CATALOGUE}
