"""Whatever happens, in any order: the core's own check finds nothing wrong.

Method: random worlds, everything checked after every move. That each check can find something is
proven in tests/unit/core/check/test_invariants.py.
"""

from hypothesis import given

from quorate.core.check.invariants import check_all
from quorate.core.model.changes import NodeChanged
from tests.property.seeds import drawn
from tests.unit.core.random_worlds import Play, scripts


class Checked(Play):
    """Checks after every move; nodes that shrank and pods that grew are excused."""

    def __init__(self):
        super().__init__()
        self.excused = set()

    def run(self, script):
        for move in script:
            super().run([move])
            self.check()

    def check(self):
        found = check_all(self.scheduler, self.now_s, excused=frozenset(self.excused))
        assert [v for v in found if v.tolerated_s == 0.0] == []
        return found

    def tell(self, *changes):
        for change in changes:
            if isinstance(change, NodeChanged):
                self.excused.add(change.node.name)
        super().tell(*changes)

    def do_resize(self, number, spec):
        pod = self.pod_of(number)
        if pod is not None:
            self.excused.add(pod.node)
        super().do_resize(number, spec)


@drawn(70)
@given(scripts())
def test_nothing_is_found_after_any_move(script):
    Checked().run(script)


@drawn(100)
@given(scripts(without=("relabel", "foreign", "resize", "lose_node")))
def test_nothing_is_found_at_rest_either(script):
    """Here nodes stay as they are, so that an overcommitted one would be found."""
    nodes = [move for move in script if move[0] == "node"][:3]
    play = Checked()
    Play.run(play, [*nodes, *(move for move in script if move[0] != "node")])
    play.come_to_rest()
    play.excused.clear()
    assert play.check() == []
