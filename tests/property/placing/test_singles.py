"""Pods placed one at a time, totals kept: each goes where one that keeps nothing would put it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.core.cluster.nodes.encoding import PodClasses, Resources
from quorate.core.model import PodSpec
from quorate.core.model.profile import CPU_AND_MEMORY, FitStrategy, Profile
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.rules.scoring import allocation_score, allocation_score_on
from tests.property.seeds import drawn
from tests.property.worlds.running import some_worlds
from tests.property.worlds.world import World
from tests.unit.core.one_by_one import OneByOne


class SinglesWorld(World):
    """Each single pod is placed twice, and nodes have the image of some pods."""

    def __init__(self, setting):
        super().__init__(setting)
        put_node = self.server.put_node
        self.server.put_node = lambda node: put_node(replace(node, images=self.images()))

    def images(self):
        return (((f"image-{self.server.made % 3}",), 500 << 20),)

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
@given(st.data(), st.sampled_from(["LeastAllocated", "MostAllocated"]))
def test_one_node_scores_as_it_does_among_others(data, strategy):
    resources = Resources()
    [gpu] = map(resources.columns.get, resources.add(["gpu"]))
    weighed = data.draw(st.sampled_from([CPU_AND_MEMORY, (("cpu", 3), ("gpu", 2))]))
    fit = FitStrategy(strategy, weighed)
    kind = Profile(fit=fit, balanced=data.draw(st.sampled_from([CPU_AND_MEMORY, weighed])))
    requests = tuple((name, data.draw(amounts)) for name in ("cpu", "gpu", "memory"))
    spec = PodSpec(requests=requests, scored=(data.draw(amounts), data.draw(amounts)))
    pod_class = PodClasses(resources).of(spec, kind)
    size = [data.draw(st.one_of(st.just(0), amounts)) for _ in range(gpu + 1)]
    free = [one - data.draw(amounts) // 2 for one in size]
    scored = [data.draw(amounts), data.draw(amounts)]
    found = allocation_score_on(pod_class, NodeAmounts(free, size, scored, resources))
    among = Amounts(np.array([free]), np.array([size]), np.array([scored]), resources)
    assert found in (None, allocation_score(pod_class, among)[0])
    assert found is not None or kind.balanced != CPU_AND_MEMORY
