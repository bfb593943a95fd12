"""Which nodes a gang may go to: masks, and nodes that are avoided, and what is kept of them."""

from quorate.core.model import policy
from tests.unit.core.world import LABELS, World, key

# Nodes that are avoided for a while


def refused_on(w: World, name: str, node: str) -> None:
    """Let a kubelet refuse a member that the gang lost: no other one goes there for a while."""
    w.pod(f"{name}-lost", key(name, LABELS), min_count=1, cpu=0, node=node)
    w.edit(f"{name}-lost", phase="Failed", refusal="OutOfcpu")


def test_nodes_that_are_avoided_no_more_are_forgotten_with_the_next_news():
    w = World(avoid_s=10.0)
    w.gang("a", 1, dialect=LABELS, cpu=4)
    for index in range(20):
        w.node(f"n{index}", cpu=1)
        refused_on(w, "a", f"n{index}")
        w.decide(after_s=1.0)
        w.delete("a-lost")
    assert len(w.cluster.gangs[key("a", LABELS)].memory.avoid) == 10


# Masks of many groups


def selecting_world(groups):
    """Nodes too small for gangs that each ask for one node by name, and a label nobody has."""
    w = World()
    for index in range(40):
        w.node(f"n{index}", cpu=1, labels={"host": f"n{index}"})
    for index in range(groups):
        spec = {"node_selector": (("host", f"n{index}"),)}
        w.gang(f"g{index:02}", 1, dialect=LABELS, cpu=2, spec=spec)
    w.gang("later", 1, dialect=LABELS, spec={"node_selector": (("x", "1"),)})
    for _ in range(100):
        if w.decide().wake_at_s is None:
            return w
    raise AssertionError("it comes to rest")


def test_masks_that_change_each_turn_leave_steps_to_count_anew(monkeypatch):
    """Each turn comes to some rows, however many masks it had to bring up to date."""
    w = selecting_world(30)
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", 4)
    monkeypatch.setattr(policy, "CHECK_STEPS_MAX", 2)
    w.node("n9", cpu=1, labels={"host": "n9", "x": "1"})
    for turn in range(60):
        plan = w.decide()
        if plan.gangs:
            assert [gang.key.name for gang in plan.gangs] == ["later"]
            return
        w.node("n3", cpu=1, labels={"host": "n3", "turn": str(turn)})
    raise AssertionError("the gang is never woken")


def test_masks_of_specs_that_came_and_went_are_given_back():
    w = World()
    for index in range(40):
        w.node(f"n{index}", cpu=1, labels={"host": f"n{index}"})
    w.pod("stays", cpu=2, spec={"node_selector": (("host", "n0"),)})
    w.decide()
    masks, slots = w.scheduler.planner._rule_cache, w.scheduler.queue.blocked.slots
    few = len(masks)
    for wave in range(3):
        names = [f"p{wave}-{index}" for index in range(200)]
        for index, name in enumerate(names):
            w.pod(name, cpu=2, spec={"node_selector": (("host", f"n{index}"),)})
        while w.decide().wake_at_s is not None:
            pass
        assert len(masks) >= 200
        w.delete(*names)
        w.decide()
        assert len(masks) <= few + 64
        assert len(slots) <= 64 + 1
