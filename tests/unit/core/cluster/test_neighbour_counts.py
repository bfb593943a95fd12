"""Sizes of what is kept of pods beside each other, and what is looked at, at their bounds."""

import pytest

from quorate.core.cluster.labels.neighbours import Column, Key, Neighbours
from quorate.core.cluster.labels.row_counts import RowCounts
from quorate.core.model import LabelSelector, PodSelector, PodSpec, Requirement, policy


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
