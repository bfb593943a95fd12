"""What is kept of pods beside each other, for tests to look at."""

from quorate.core.cluster.labels.neighbours import Column, Key, Neighbours
from quorate.core.model import PodSelector


def selectors_in_use(neighbours: Neighbours) -> list[PodSelector]:
    """Return the selectors that somebody uses, the oldest first."""
    return list(neighbours._matching.in_use)


def columns_that_count(neighbours: Neighbours) -> set[Key]:
    """Return the columns that count something."""
    of_pods = (Column.PODS, Column.STAYING)
    found = {Key(column, number) for column in of_pods for number in neighbours._pods._counts}
    return found | set(neighbours._weights._counts)
