"""After any move of any world: what the core counts by change is what a recount gives."""

from quorate.core.model.changes import PodChanged
from tests.property.worlds.behind.rest import is_empty
from tests.property.worlds.findings import expect
from tests.property.worlds.running import some_worlds
from tests.property.worlds.themes import THEMES

LACK = ("Insufficient", "Too many pods")
GANGS = ("gangs", "life", "full", "rules", "moved")


def test_the_cores_own_check_finds_nothing_after_any_move():
    """That it can find something is proven in tests/unit/core/check/test_invariants.py."""
    for world, script in some_worlds(250, *THEMES):
        for number, _ in enumerate(world.each(script)):
            if number % 7 == 0:
                world.check_invariants()


def test_each_node_is_counted_once_by_what_rules_it_out():
    """But for resources: of them it may lack several."""
    seen = 0
    for world, script in some_worlds(100, *GANGS, bounds={}):
        world.play(script)
        explainer = world.scheduler.explainer(world.now_s)
        for gang in world.scheduler.cluster.gangs.values():
            said = explainer.explain(gang.key) if gang.waits else None
            for blocker in said.blockers if said else ():
                check_counts(blocker, said.nodes)
                seen += 1
    assert seen > 10


def check_counts(blocker, nodes):
    assert 0 <= blocker.fit < blocker.pods
    lacks = [rule.nodes for rule in blocker.ruled_out if rule.message.startswith(LACK)]
    others = [rule.nodes for rule in blocker.ruled_out if not rule.message.startswith(LACK)]
    assert all(0 < count <= nodes for count in lacks + others)
    assert sum(others) + max(lacks, default=0) <= nodes <= sum(others) + sum(lacks)


def test_telling_everything_again_changes_no_plan():
    for world, script in some_worlds(60, *GANGS, bounds={}):
        world.play(script)
        world.hear(*world.server.changes(), *map(PodChanged, world.server.pods.values()))
        expect(is_empty(world.decide(None, 0.0)), "what is known already is news")
