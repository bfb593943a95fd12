"""Looking for victims takes steps; what a turn has none left for is looked at in the next ones."""

import random

import pytest

from quorate.core.model import Toleration, policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.reasons import Reason
from quorate.core.model.steps import costs
from quorate.core.preempt import preemption
from tests.unit.core.terms import HOST, ZONE, apart, pods, spread
from tests.unit.core.world import World

NODES = 24
RULES = {
    "none": None,
    "apart by host": apart(pods(app="high")),
    "spread": spread(pods(app="high"), skew=2),
    "apart by zone, from some": apart(pods(app="rare"), by=ZONE),
}
UNMEETABLE = apart(pods(app="low"), by=ZONE)


def world(seed=0, zones=3, rare=(3, 7)) -> World:
    """Return full nodes, of which pods of no priority are on each."""
    chance = random.Random(seed)
    w = World(profiles=(("kube", KUBE_SCHEDULER),), scheduler_names=("quorate", "kube"))
    for index in range(NODES):
        name = f"n{index}"
        w.node(name, cpu=3, labels={HOST: name, ZONE: f"z{index % zones}"})
        for place in range(3):
            w.running(
                f"low{index}-{place}",
                name,
                priority=chance.randrange(4),
                labels={"app": "rare" if index in rare else "low"},
                start_time=f"2026-01-01T00:00:{chance.randrange(60):02}Z",
            )
    w.decide()
    return w


def add_high(w, name="high", priority=100, **more):
    w.pod(name, scheduler="kube", cpu=2, priority=priority, labels={"app": "high"}, **more)


def gang_of(w, name):
    return w.cluster.pods[w.pods[name].uid].gang.key


@pytest.fixture
def looked_at(monkeypatch):
    """Return the rows on which pods are thought away, as it happens."""
    rows, real = [], preemption.Trial

    def trial(pod_class, row, *others):
        rows.append(row)
        return real(pod_class, row, *others)

    monkeypatch.setattr(preemption, "Trial", trial)
    return rows


@pytest.fixture
def short_turns(monkeypatch):
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 30)
    monkeypatch.setattr(policy, "SEARCH_STEPS_MIN", 10)


def decided(w, turns=200):
    """Decide until there is nothing more to do; return the preemptions and how often."""
    found = []
    for turn in range(1, turns + 1):
        plan = w.decide()
        found += plan.preemptions
        if plan.wake_at_s != w.now_s:
            return found, turn
    raise AssertionError("it goes on for ever")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_the_same_node_is_cleared_of_the_same_pods_as_in_one_turn(rule, seed, monkeypatch):
    at_once, bit_by_bit = world(seed), world(seed)
    for w in (at_once, bit_by_bit):
        add_high(w, spec=RULES[rule])
    [expected], _ = decided(at_once)
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 30)
    monkeypatch.setattr(policy, "SEARCH_STEPS_MIN", 10)
    [found], turns = decided(bit_by_bit)
    assert turns > 1
    assert (found.node, found.victims) == (expected.node, expected.victims)


@pytest.mark.parametrize(("few", "looked"), [(1, 2), (7, 7), (NODES, NODES)])
def test_of_many_nodes_no_more_than_enough_are_looked_at(few, looked, looked_at, monkeypatch):
    """A tenth of the nodes is two."""
    monkeypatch.setattr(policy, "PREEMPTION_CANDIDATES_FEW", few)
    w = world()
    add_high(w)
    decided(w)
    assert len(set(looked_at)) == looked


def test_a_turn_looks_at_few_nodes_and_each_node_is_looked_at_once(short_turns, looked_at):
    w = world()
    add_high(w, spec=UNMEETABLE)
    turns = []
    while not turns or w.scheduler.planner.queue.searching:
        before = len(looked_at)
        w.decide()
        turns.append(len(looked_at) - before)
    assert sorted(looked_at) == list(range(NODES))
    assert max(turns) <= 12
    assert not w.scheduler.planner._interrupted, "no turn is made longer for it"
    assert "high" not in w.binds
    assert w.why(gang_of(w, "high")).reason is Reason.NOT_ENOUGH_ROOM


def test_each_turn_looks_at_a_node_though_what_is_known_takes_all_its_steps(monkeypatch):
    """The node that was chosen is looked at once more; there was never a step left for it."""
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 2)
    monkeypatch.setattr(policy, "SEARCH_STEPS_MIN", 1)
    monkeypatch.setattr(costs, "KNOWN_NODES_PER_STEP", 1)
    w = world()
    add_high(w)
    found, _ = decided(w)
    assert len(found) == 1


def test_alike_pods_go_on_with_what_one_found_out(short_turns, looked_at):
    w = world()
    for index in range(3):
        add_high(w, f"high{index}")
    found, _ = decided(w)
    assert len({one.node for one in found}) == 3
    assert len(looked_at) <= NODES + 2 * 3, "what is chosen, and what was cleared, once more"


def test_it_goes_on_though_something_happens_in_each_turn(short_turns, looked_at):
    w = world()
    add_high(w, spec=UNMEETABLE)
    for turn in range(40):
        w.node(f"n{turn % NODES}", cpu=3 + turn, labels={HOST: f"n{turn}", ZONE: "z0"})
        w.decide()
    assert set(looked_at) == set(range(NODES))


def test_a_node_that_is_another_by_then_is_looked_at_again(short_turns, looked_at):
    w = world(seed=1)
    add_high(w)
    w.decide()
    before = set(looked_at)
    assert before
    assert before < set(range(NODES))
    for row in before:
        for place in range(3):
            w.edit(f"low{row}-{place}", priority=1000)
    [found], _ = decided(w)
    assert found.node not in {f"n{row}" for row in before}
    assert {victim.name.partition("-")[0] for victim in found.victims} == {"low" + found.node[1:]}


def test_in_vain_it_begins_anew_if_there_is_news(short_turns, looked_at):
    w = world(zones=NODES // 2, rare=())
    add_high(w, spec=UNMEETABLE)
    w.decide()
    assert {1} < set(looked_at) < set(range(1 + NODES // 2))
    for place in range(3):  # on the other node of the zone of n1
        w.edit(f"low{1 + NODES // 2}-{place}", labels=(("app", "rare"),))
    [found], _ = decided(w)
    assert found.node == "n1"
    assert len(found.victims) == 3


def test_ordinary_gangs_are_placed_meanwhile(short_turns):
    w = world()
    for index in range(6):
        add_high(w, f"high{index}", priority=100 + index, spec=UNMEETABLE)
    w.node("free", cpu=8, labels={HOST: "free"}, taints=("only=it:NoSchedule",))
    w.decide()
    w.gang("low", 2, cpu=1, spec={"tolerations": (Toleration("only", "Exists"),)})
    turns = 0
    while "low-0" not in w.binds:
        w.cycle()
        turns += 1
    assert turns <= 12
