"""What is kept of pods beside each other, for tests to look at."""

from quorate.core.cluster.labels.neighbours import Column, Key, Neighbours
from quorate.core.model import PodSelector

NOT_KEPT_BY_USE = ("log", "_changed", "namespaces")


def selectors_in_use(neighbours: Neighbours) -> list[PodSelector]:
    """Return the selectors that somebody uses, the oldest first."""
    return list(neighbours._matching.in_use)


def columns_that_count(neighbours: Neighbours) -> set[Key]:
    """Return the columns that count something."""
    of_pods = (Column.PODS, Column.STAYING)
    found = {Key(column, number) for column in of_pods for number in neighbours._pods._counts}
    return found | set(neighbours._weights._counts)


def held_in(thing):
    """Return how many entries are in the containers of an object, and of the objects in it."""
    if isinstance(thing, dict):
        return len(thing) + sum(map(held_in, thing.values()))
    if isinstance(thing, list | set | tuple | frozenset):
        return len(thing) + sum(map(held_in, thing))
    if not type(thing).__module__.startswith("quorate.core.cluster"):
        return 0
    names = [*getattr(type(thing), "__slots__", ()), *getattr(thing, "__dict__", ())]
    return sum(held_in(getattr(thing, name)) for name in names if name not in NOT_KEPT_BY_USE)
