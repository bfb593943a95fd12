"""Goal: a gang that is named in the wrong place starts nothing in part, and says where it stands.

Method: the Jobs of case 09, each of 4 pods, on 3 nodes of which each holds one.
"""

import pytest

from tests.e2e.harness.telling import is_told_everywhere
from tests.e2e.harness.workloads import case
from tools.objects import GANG_LABEL
from tools.testing import wait_for

PLACES = {
    "a": f"annotation {GANG_LABEL} is read by no scheduler; use label {GANG_LABEL}: a",
    "b": (
        "annotation gang.scheduling.koordinator.sh/name is Koordinator's, and quorate does not "
        "read it; use label pod-group.scheduling.sigs.k8s.io/name: b together with label "
        "pod-group.scheduling.sigs.k8s.io/min-available"
    ),
    "c": (
        "label scheduling.k8s.io/group-name is read by no scheduler; use annotation "
        "scheduling.k8s.io/group-name: c"
    ),
    "d": (
        f"label {GANG_LABEL} of Job d is read by no scheduler; use label {GANG_LABEL}: d in its "
        "pod template"
    ),
}


def made(world, name: str) -> list[dict]:
    """Make the Job of this name, after its gang's object; return its pods when all are there."""
    world.nodes(3, labels={"pool": "cpu"}, allocatable={"cpu": "4"})
    *objects, workload = case("09-annotation.yaml", name)
    world.apply(*(one for one in objects if "volcano" not in one["apiVersion"]), workload)
    wait_for(lambda: len(world.pods()) == 4, "the Job has made its pods")
    return world.pods()


@pytest.mark.core
@pytest.mark.parametrize("name", PLACES)
def test_nothing_starts_in_part_and_each_place_has_the_same_words(world, name):
    """Of b and d 3 of 4 pods ran; ``why d`` said "create the other 4"."""
    first, *_ = made(world, name)
    told = is_told_everywhere(
        world, first["metadata"]["name"], "UnknownGangLabel", PLACES[name].partition("; ")[0]
    )
    assert told["message"] == PLACES[name]
    wait_for(
        lambda: world.conditions() == [("UnknownGangLabel", PLACES[name])] * 4,
        "each pod says where its gang is named",
    )
    assert world.bound() == 0


@pytest.mark.parametrize("name", ["a", "d"])
def test_the_gang_names_the_pods_that_were_meant_for_it(world, name):
    made(world, name)
    world.wait_condition(PLACES[name])
    told = world.why(f"gang/{name}")
    said, _, use = PLACES[name].partition("; ")
    assert told["message"] == f"0 of 4 members exist; 4 pods are meant for it: {said}"
    assert (
        told["hint"] == f"{use.removesuffix(' in its pod template')} in the template of Job {name}"
    )
