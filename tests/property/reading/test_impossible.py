"""Requirements are called contradictory exactly when no label, nor its absence, satisfies them."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model import Requirement
from quorate.core.rules.faults import contradicted

WORDS = st.sampled_from(["1", "2", "3", "4", "x", "y"])
CANDIDATES = ["x", "y", "another", *(f"{zeros}{n}" for n in range(-1, 7) for zeros in ("", "0"))]


@st.composite
def requirements(draw) -> list[Requirement]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
        values = ()
        if operator in ("In", "NotIn"):
            values = tuple(draw(st.lists(WORDS, min_size=1, max_size=3)))
        if operator in ("Gt", "Lt"):
            values = (draw(st.sampled_from(["1", "2", "3", "4"])),)
        found.append(Requirement(draw(st.sampled_from("ab")), operator, values))
    return found


def satisfiable(key: str, wanted: list[Requirement]) -> bool:
    labels = [{}, *({key: value} for value in CANDIDATES)]
    return any(all(one.holds_for_node(label) for one in wanted) for label in labels)


@given(requirements())
def test_it_agrees_with_trying_labels(wanted):
    by_key = {key: [one for one in wanted if one.key == key] for key in "ab"}
    hopeless = [key for key, alike in by_key.items() if not satisfiable(key, alike)]
    found = contradicted(wanted)
    assert bool(found) == bool(hopeless)
    assert not found or found in hopeless
