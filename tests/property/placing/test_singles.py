"""Pods placed one at a time, totals kept: each goes where one that keeps nothing would put it."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.nodes.encoding import PodClasses, Resources
from quorate.core.model import LabelSelector, Node, PodSpec, Requirement
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.policy import Policy
from quorate.core.model.profile import CPU_AND_MEMORY, KUBE_SCHEDULER, FitStrategy, Profile
from quorate.core.model.selecting_objects import Service
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.rules.scoring import allocation_score, allocation_score_on
from quorate.core.scheduler import Scheduler
from tests.property.seeds import drawn
from tests.unit.core.one_by_one import OneByOne
from tests.unit.core.random_worlds import Play, scripts

WEB = LabelSelector((Requirement("app", "In", ("web",)),))


class SinglesPlay(Play):
    """All pods are placed as kube-scheduler does; some are in gangs, which are placed whole."""

    def __init__(self):
        super().__init__()
        as_kube = ("quorate", KUBE_SCHEDULER)
        self.policy = Policy(profiles=(as_kube,))
        self.scheduler, self.twin = Scheduler(self.policy), Scheduler(self.policy)
        self.scheduler.planner._singles = OneByOne()
        self.tell(ObjectChanged(Service("team", "web", WEB)))

    def do_node(self, node):
        images = ((("image",), 500 << 20),) if self.made % 2 else ()
        super().do_node(msgspec.structs.replace(node, images=images))


@drawn(250)
@given(scripts())
def test_kept_totals_are_those_from_scratch(script):
    play = SinglesPlay()
    for name, *arguments in script:
        if name == "member":  # pods of no gang come in bunches
            _, count, spec, said = arguments
            spec = msgspec.structs.replace(spec, images=("image",))
            play.do_member(None, count, spec, said)
        else:
            play.run([(name, *arguments)])
    play.do_decide(100.0)


def test_the_property_looks_at_placements():
    """It does not pass because nothing is asked."""
    play, before = SinglesPlay(), OneByOne.asked
    play.do_node(Node("n0", (("cpu", 9), ("pods", 9)), (("zone", "a"),)))
    play.do_member(None, 3, PodSpec(requests=(("cpu", 1),)), ((), "team"))
    plan = play.do_decide()
    assert len(plan.gangs) == OneByOne.asked - before == 3


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
