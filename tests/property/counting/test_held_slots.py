"""Held slots are for the replacement. That they are free and end is checked in all worlds."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model import Owner
from tests.property.seeds import drawn
from tests.unit.core.world import World, binds_of, key

OWNER = Owner("batch/v1", "Job", "j")


fresh_gangs = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(-1, 0))
"""Size, cpu, priority."""


@drawn(150)
@given(
    st.integers(1, 4),
    st.integers(2, 5),
    st.lists(fresh_gangs, max_size=5),
    st.integers(0, 4),
    st.booleans(),
    st.integers(1, 3),
)
def test_a_replacement_is_placed_at_once_where_the_lost_one_was(cpu, size, fresh, lost, slow, n):
    """Whatever waits that is of no higher priority, however old, and however often it is tried."""
    w = World()
    for index in range(size):
        w.node(f"n{index}", cpu=cpu)
    w.gang("a", size, cpu=cpu, created_s=100.0, owner=OWNER)
    assert len(w.cycle()) == size
    for index, (pods, each, priority) in enumerate(fresh):
        w.gang(f"fresh{index}", pods, cpu=min(each, cpu), priority=priority, created_s=1.0)
    w.cycle()
    name = f"a-{lost % size}"
    node = w.where(name)
    if slow:
        w.tell(msgspec.structs.replace(w.pods[name], node=node, terminating=True))
        w.cycle()
    w.delete(name)
    for _ in range(n):
        assert w.cycle(after_s=90.0) == {}
    w.pod("a-new", key("a"), cpu=cpu, created_s=500.0)
    plan = w.decide()
    assert [(bind.name, bind.node) for bind in binds_of(plan)] == [("a-new", node)]
