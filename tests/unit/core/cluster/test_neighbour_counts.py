"""Sizes of what is kept of pods beside each other, and what is looked at, at their bounds."""

import pytest

from quorate.core.cluster.labels.label_sets import LabelSet
from quorate.core.cluster.labels.neighbours import Column, Key, Neighbours
from quorate.core.cluster.labels.row_counts import Columns, RowCounts
from quorate.core.model import LabelSelector, PodSelector, PodSpec, Requirement, policy


def test_a_label_set_looks_only_at_selectors_of_its_own_labels():
    """However the selectors are written: the label is chosen at which few are listed."""
    neighbours = Neighbours(8)
    for number in range(50):
        wanted = (Requirement("app", "In", ("web",)), Requirement("job", "In", (f"j{number}",)))
        neighbours.use(PodSelector(("red",), LabelSelector(wanted)))
        neighbours.use(PodSelector(("red",), LabelSelector((Requirement(f"k{number}", "Exists"),))))
        neighbours.use(
            PodSelector(("blue",), LabelSelector((Requirement("app", "NotIn", ("x",)),)))
        )
    labels = (("app", "web"), ("job", "j7"), ("k9", "any"))
    found = set(neighbours._matching._index.candidates(LabelSet("red", labels)))
    assert len(found) <= 4
    matched = neighbours.matched(neighbours.acquire("red", labels, PodSpec()))
    assert len(matched) == 2
    assert matched <= found


def test_a_selector_of_many_namespaces_and_values_has_no_place_for_each_pair():
    neighbours = Neighbours(8)
    many = tuple(f"v{number:03}" for number in range(300))
    neighbours.use(PodSelector(many, LabelSelector((Requirement("app", "In", many),))))
    assert len(neighbours._matching._index._listed) == 300
    held = neighbours.acquire("v007", (("app", "v100"),), PodSpec())
    assert len(neighbours.matched(held)) == 1
    assert not neighbours.matched(neighbours.acquire("other", (("app", "v100"),), PodSpec()))


@pytest.mark.parametrize(("bound", "views"), [(0, 1), (15, 1), (16, 2), (17, 2), (24, 3)])
def test_as_many_arrays_are_kept_as_the_bound_has_cells(monkeypatch, bound, views):
    monkeypatch.setattr(policy, "NEIGHBOUR_CELLS_MAX", bound)
    neighbours = Neighbours(8)
    held = neighbours.acquire("red", (("app", "web"),), PodSpec())
    selectors = [
        PodSelector(("red",), LabelSelector((Requirement(f"k{number}", "DoesNotExist"),)))
        for number in range(5)
    ]
    for one in selectors:
        neighbours.use(one)
    neighbours.take(3, held, PodSpec(), terminating=False)
    for number in range(5):
        assert neighbours.column(Key(Column.PODS, number))[3] == 1
    assert len(neighbours._views) == views


@pytest.mark.parametrize("rows", [8, 64])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_counts_are_an_array_once_that_is_no_larger_than_a_dictionary(rows, more):
    counts = RowCounts({}, rows)
    filled = rows // policy.COUNT_ENTRY_CELLS + more
    for row in range(filled):
        counts.add(row, 2, rows)
    assert (counts.array is not None) is (more > 0)
    assert counts.to_array(rows).tolist() == [2] * filled + [0] * (rows - filled)
    for row in range(filled):
        counts.add(row, -2, rows)
    assert not counts
    assert counts.array is None


def test_a_column_that_was_handed_out_is_brought_up_to_date_and_cannot_be_written():
    columns: Columns[str] = Columns(64, Neighbours(64)._views)
    columns.add("a", 1, 1)
    column = columns.column("a")
    columns.add("a", 1, 1)
    assert column[1] == 2
    with pytest.raises(ValueError, match="read-only"):
        column[1] = 0
