"""The words of ``place.search.joint``: kinds of nodes, and what members mean to one another.

Made by ``constraints``; what bounds leave, by ``bounds``. Bit i of a mask is class i.
"""

from __future__ import annotations

from typing import NamedTuple

Cell = tuple[int, ...]
"""A domain of each shared topology, nested ones after those that hold them; below 0: none."""


class Work:
    """What was done, in microseconds, roughly: counted so that it is the same on each machine."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0


class Kind(NamedTuple):
    """A kind of node: its facts, by number, and what members on it have changed."""

    static: int
    free: tuple[int, ...]
    present: int
    meters: tuple[int, ...]
    """What the local meters count."""


class Static(NamedTuple):
    """Facts of nodes that stay as they are. All but ``allowed`` and ``seen`` are by class."""

    allowed: int
    apart: tuple[int, ...]
    """Classes with which a class may not share the node."""
    near: int
    """Bit for each affinity term (numbered over all classes) that running pods satisfy here."""
    counted: int
    """Bit for each meter: a pod here adds to it."""
    in_minimum: int
    """Bit for each local meter: its minimum is also over this node."""
    seen: int
    """Classes that are attracted to a member which is placed here, by any term."""


class Pull(NamedTuple):
    """The affinity of one class to members.

    The terms are (number, shared topology or -1, its domains where running pods satisfy it).
    """

    terms: tuple[tuple[int, int, frozenset[int]], ...]
    by: int
    selector: int
    is_first: bool
    """No pod that satisfies it runs, and it attracts itself: one may be placed anywhere."""


class Meter(NamedTuple):
    """Pods that spread constraints count. ``topology`` is that of a shared one, or -1 if local."""

    topology: int
    by: int
    place: int
    """Index of a local one in ``Kind.meters``."""
    elsewhere: int
    """The fewest in a domain where no member can be placed."""
    counts: dict[int, int]
    """What is in each shared domain; local ones are in ``Kind.meters``."""
    in_minimum: frozenset[int]


class Limit(NamedTuple):
    """A spread constraint of one class."""

    meter: int
    max_skew: int
    itself: int
    too_few: bool


class Ceiling(NamedTuple):
    """What limits mean in the end, whatever the order: see ``Ties.ceilings``."""

    counter: int
    """The meter that counts the classes concerned, which are its ``by``."""
    meter: int
    """The meter whose minimum is meant."""
    max_skew: int
    itself: int
    too_few: bool


Sums = tuple[int, ...]
"""What adds up over nodes, as ``search_bounds`` numbers it: slots by class, free room by column,
nodes by clique, large pods by size, and nodes by class whose pods wait for one near them."""


class Share(NamedTuple):
    """What one node of a kind has for members to come."""

    sums: Sums
    lowest: tuple[int, ...]
    """By meter: how high it can get on the node, if that counts for its minimum; local ones."""
    tallest: tuple[int, ...]
    """By ceiling: what it counts on the node; local ones."""


class Inside(NamedTuple):
    """What the nodes of a cell have together, and the shares that this was added up from."""

    sums: Sums
    lowest: tuple[int, ...]
    tallest: tuple[int, ...]
    shares: dict[Kind, Share]
    """The first ``sums`` of a share are the slots of each class, but for spread."""
    alike: dict[int, dict[int, list[Kind]]]
    """By class: which kinds take a pod of it, as far as ``search_moves`` had to know."""


class Outlook(NamedTuple):
    """What the bounds leave: slots to spare by class, and how high each minimum can get."""

    opens: int
    """Classes for which members to come may open domains."""
    inside: dict[Cell, Inside]
    whole: Sums
    domains: list[dict[int, Sums]]
    """What there is in each domain, by shared topology."""
    highest: list[int]
    later: list[int]
    """As ``highest``, if one of the pods that it counts is placed where it does not add to it."""
    spare: list[int]
    scarce: list[float]
    """By class: which part of its slots its pods to come need."""
