"""Random hostile objects: the API server decides what is let in; the scheduler lives with it."""

import hypothesis
import pytest

from tests.hostile.harness.attacker import Attacker
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.strategies import OBJECTS
from tests.hostile.harness.target import Target
from tests.property.seeds import SEED, times

pytestmark = pytest.mark.explore
EXAMPLES = times(30)


class Shown(list):
    """Objects, of which hypothesis shows the beginning: they may have megabytes."""

    def __repr__(self) -> str:
        return super().__repr__()[:4_000]


@hypothesis.seed(SEED)
@hypothesis.settings(
    max_examples=EXAMPLES,
    phases=[hypothesis.Phase.generate],  # to shrink takes minutes on a real API server
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(objects=OBJECTS.map(Shown))
def write_and_see(objects: Shown, attacker: Attacker, target: Target, neighbour: Neighbour) -> None:
    before = target.state()
    for one in objects:
        attacker.create(one)
        if one["kind"] in ("PodGroup", "ResourceClaim", "PersistentVolumeClaim"):
            attacker.patch(one, {"metadata": one["metadata"], "spec": one["spec"]})
    neighbour.start_gangs(1)
    target.check(before)


def test_no_random_object_that_the_api_server_lets_in_stops_the_others(
    attacker: Attacker, target: Target, neighbour: Neighbour
):
    target.forget_peak()
    write_and_see(attacker=attacker, target=target, neighbour=neighbour)
    print(f"{attacker.accepted} writes accepted in {EXAMPLES} examples, {attacker.refused}")
    assert attacker.accepted > EXAMPLES
