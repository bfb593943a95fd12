"""Pods placed one at a time, totals kept: each goes where one that keeps nothing would put it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.nodes.encoding import PodClasses, Resources
from quorate.core.model import PodSpec
from quorate.core.model.profile import Profile
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.rules.scoring import allocation_score, allocation_score_on
from tests.property.seeds import drawn
from tests.property.worlds.running import some_worlds
from tests.property.worlds.world import World
from tests.unit.core.one_by_one import OneByOne


class SinglesWorld(World):
    """Each single pod is placed twice."""

    def _lead(self):
        super()._lead()
        self.scheduler.planner._singles = OneByOne()


def test_kept_totals_are_those_from_scratch():
    """It does not pass because nothing is asked."""
    before = OneByOne.asked
    themes = "kube", "kube rules", "kube nodes"
    for world, script in some_worlds(250, *themes, of=SinglesWorld, bounds={}):
        world.setting.taste.kinds = 3
        world.play(script)
    assert OneByOne.asked - before > 100


amounts = st.integers(0, 2**40)


@drawn(300)
@given(st.data(), st.sampled_from(["least-allocated", "most-allocated"]))
def test_one_node_scores_as_it_does_among_others(data, packing):
    resources = Resources()
    requests = tuple((name, data.draw(amounts)) for name in ("cpu", "memory"))
    spec = PodSpec(requests=requests, scored=(data.draw(amounts), data.draw(amounts)))
    pod_class = PodClasses(resources).of(spec, Profile(packing=packing))
    size = [data.draw(st.one_of(st.just(0), amounts)) for _ in range(len(resources.names))]
    free = [one - data.draw(amounts) // 2 for one in size]
    scored = [data.draw(amounts), data.draw(amounts)]
    found = allocation_score_on(pod_class, NodeAmounts(free, size, scored))
    among = Amounts(np.array([free]), np.array([size]), np.array([scored]))
    assert found == allocation_score(pod_class, among)[0]
