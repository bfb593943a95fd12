"""The words of ``plan.search``: kinds of nodes, and what members mean to one another.

Made by ``plan.ties``; what bounds leave, by ``plan.search_bounds``. Bit i of a mask is class i.
"""

from __future__ import annotations

from typing import NamedTuple

Cell = tuple[int, ...]
"""A domain of each shared topology, nested ones after those that hold them; below 0: none."""


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


Domains = dict[int, list[int]]
"""Slots by class in each domain of one shared topology."""


class Inside(NamedTuple):
    """What the nodes of a cell have: slots by class, free room by column, nodes by clique."""

    slots: tuple[int, ...]
    free: tuple[int, ...]
    nodes: tuple[int, ...]
    large: tuple[int, ...]
    """How many pods at least as large in one column fit, as ``Bounds`` numbers sizes."""
    lowest: tuple[int, ...]
    """The highest that the minimum of each meter can get over these nodes; only of local ones."""
    tallest: tuple[int, ...]
    """The most that each ceiling counts on a node; only of local ones."""
    alone: tuple[int, ...]
    """Nodes by class whose pods of it still wait for one that attracts them to the node."""
    kinds: tuple[tuple[Kind, ...], ...]
    """By class: the kinds that may take a pod of it, but for spread."""


class Outlook(NamedTuple):
    """What the bounds leave: slots to spare by class, and how high each minimum can get."""

    spare: list[int]
    highest: list[int]
    inside: dict[Cell, Inside]
    domains: list[Domains]
    """Slots by class in each domain, by shared topology."""
    scarce: list[float]
    """By class: which part of its slots its pods to come need."""
