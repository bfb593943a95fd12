"""Every rule that rules nodes out is checked apart: a plan that breaks it is refused."""

import pytest

from quorate.core.check.verify import verify_gang
from quorate.core.model import ClaimUse
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.storage import ClaimRef
from quorate.core.rules.table import FILTERS
from tests.unit.core.check.refusals import REFUSALS
from tests.unit.core.storage_world import ZONE, StorageWorld
from tests.unit.core.world import TEAM

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
NAMES = [rule.name for rule in FILTERS]


def planned(case):
    """Return the world after the case's plan and its change, what was said before, and after."""
    w = StorageWorld(scheduler_names=("quorate", "kube"), profiles=(("kube", KUBE_SCHEDULER),))
    w.node("n0", **case.node)
    case.before(w)
    w.pod("p", scheduler="kube", **case.pod)
    plan = w.scheduler.decide(w.now_s)
    [gang] = plan.gangs or plan.preparing
    before = verify_gang(gang, w.cluster)
    case.change(w)
    return before, verify_gang(gang, w.cluster)


def test_every_rule_has_a_case_and_every_case_a_rule():
    assert sorted(REFUSALS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_that_breaks_the_rule_is_refused(name):
    case = REFUSALS[name]
    assert planned(case) == ([], [case.said])


@pytest.mark.parametrize(("room", "said"), [(2, []), (1, ["node n0 would hold 2 volumes of"])])
def test_volumes_that_a_gang_brings_are_counted_together_and_each_once(room, said):
    w = StorageWorld()
    w.node("n0")
    for name in ("shared", "own"):
        w.volume(f"v-{name}", storage_class="fast", claim=ClaimRef(TEAM, name, f"uid-{name}"))
        w.claim(name, volume=f"v-{name}", bound=True, access_modes=("ReadWriteMany",))
    which = w.object("g", 2)
    w.pod("g-0", which, claims=(ClaimUse("shared"), ClaimUse("own")))
    w.pod("g-1", which, claims=(ClaimUse("shared"),))
    [gang] = w.decide().gangs
    w.limit("n0", room)
    found = verify_gang(gang, w.cluster)
    assert [one[: len(begin)] for one, begin in zip(found, said, strict=True)] == said


@pytest.mark.parametrize(
    ("node", "volume", "is_refused"),
    [
        ({}, {ZONE: "b"}, False),
        ({ZONE: "a"}, {ZONE: "b__a"}, False),
        ({ZONE: "a"}, {ZONE: "b__"}, False),
        ({ZONE: "a"}, {OLD_ZONE: "a"}, False),
        ({ZONE: "a"}, {OLD_ZONE: "b"}, True),
        ({OLD_ZONE: "b", ZONE: "a"}, {OLD_ZONE: "b"}, False),
        ({REGION: "r"}, {ZONE: "a"}, True),
    ],
)
def test_zones_of_volumes_are_compared_as_kube_scheduler_does(node, volume, is_refused):
    w = StorageWorld()
    w.node("n0", labels=node)
    w.volume("v", storage_class="fast", claim=ClaimRef(TEAM, "c", "uid-c"))
    w.claim("c", volume="v", bound=True)
    w.pod("p", claims=(ClaimUse("c"),))
    [gang] = w.decide().gangs
    w.volume("v", storage_class="fast", labels=tuple(volume.items()))
    found = verify_gang(gang, w.cluster)
    assert found == ["volume v is not in the zone of node n0"] * is_refused
