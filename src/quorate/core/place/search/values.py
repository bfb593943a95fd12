"""The values of the joint search: nodes by kind, constraints among members, bounds on what is left.

Classes of pods and of numbers of other things are indices from 0. A *mask* is an int: bit i stands
for class i. A topology is *shared* if one of its domains has several nodes that matter, and *local*
otherwise: what a local domain holds is part of its node.
"""

from __future__ import annotations

from typing import NamedTuple

Location = tuple[int, ...]
"""The domain of each shared topology, the widest first. Below 0: the nodes have no such label."""

MANY = 2**40
"""More pods than any cluster has."""


class WorkEstimate:
    """The work done so far, estimated in microseconds, so that it is the same on each machine."""

    __slots__ = ("done_us",)

    def __init__(self) -> None:
        self.done_us = 0


class NodeKind(NamedTuple):
    """Nodes of one location that are interchangeable for the members."""

    facts: int
    """Index in ``Constraints.facts``."""
    free: tuple[int, ...]
    """Free capacity by column of ``Constraints.columns``."""
    present: int
    """Mask of the classes that have a member here."""
    counts: tuple[int, ...]
    """What each local counter counts on the node."""


class NodeFacts(NamedTuple):
    """What no member changes about a node."""

    allowed: int
    """Mask of the classes that all other rules let in."""
    apart: tuple[int, ...]
    """By class: mask of the classes with which it may not share the node."""
    near: int
    """Bit for each affinity term (numbered over all classes) that running pods satisfy here."""
    counted: int
    """Bit for each counter that counts a pod here."""
    in_minimum: int
    """Bit for each local counter whose minimum is also over this node."""
    has_domain_for: int
    """Mask of the classes with an affinity term whose topology label the node has."""


class Affinity(NamedTuple):
    """The required affinity of one class to members."""

    terms: tuple[tuple[int, int, frozenset[int]], ...]
    """Number of the term, its shared topology or -1, its domains where running pods satisfy it."""
    classes: int
    """Mask of the classes that satisfy all terms."""
    selector: int
    may_be_first: bool
    """It selects itself and no running pod satisfies it: one pod may go anywhere, the *root*."""


class SpreadCounter(NamedTuple):
    """What spread constraints count: pods by domain of one topology."""

    topology: int
    """Index of a shared topology, or -1 for a local one."""
    classes: int
    """Mask of the classes that are counted."""
    local_index: int
    """Of a local counter: where ``NodeKind.counts`` has it."""
    minimum_elsewhere: int
    """The fewest pods in a domain where no member can be placed."""
    counts: dict[int, int]
    """Running pods by shared domain; empty for a local counter."""
    in_minimum: frozenset[int]
    """The domains that the minimum is over."""


class SkewLimit(NamedTuple):
    """One spread constraint of one class, as kube-scheduler applies it to each pod in its turn.

    The count in the pod's domain plus ``self_match`` is at most the minimum plus ``max_skew``.
    """

    counter: int
    max_skew: int
    self_match: int
    """1 if the counter counts the class itself, else 0."""
    minimum_is_zero: bool
    """There are fewer domains than ``minDomains``."""


class FinalLimit(NamedTuple):
    """What a ``SkewLimit`` demands of a complete placement, in whatever order it was made.

    See ``Constraints``. The count of ``counted_by`` is at most the final minimum plus ``max_skew``.
    """

    counted_by: int
    """The counter of the classes concerned."""
    minimum_of: int
    """The counter of whose minimum the limit speaks."""
    max_skew: int
    self_match: int
    minimum_is_zero: bool


Sums = tuple[int, ...]
"""What adds up over nodes; ``NodeCapacities`` knows which number begins where."""


class NodeCapacity(NamedTuple):
    """What one node of a kind can take of the members that have no place yet."""

    sums: Sums
    minima_max: tuple[int, ...]
    """By local counter: the most it can count here, if the node is in its minimum, else MANY."""
    counts_max: tuple[int, ...]
    """By final limit with a local counter: what it counts here, else 0."""


class LocationCapacity(NamedTuple):
    """What the nodes of one location can take together."""

    sums: Sums
    minima_max: tuple[int, ...]
    counts_max: tuple[int, ...]
    by_kind: dict[NodeKind, NodeCapacity]
    candidates: dict[int, dict[int, list[NodeKind]]]
    """By class: the kinds that take a pod of it, in groups (``branching``); filled on demand."""


class Bounds(NamedTuple):
    """Upper bounds on what members without a place can still have."""

    openable: int
    """Mask of the classes for which members to come may open domains."""
    by_location: dict[Location, LocationCapacity]
    whole: Sums
    domains: list[dict[int, Sums]]
    """By shared topology: the sums of each domain."""
    minima_max: list[int]
    """By counter: how high its minimum can get."""
    minima_max_later: list[int]
    """The same, if one of the pods that it counts goes where it does not raise the minimum."""
    slack: list[int]
    """By class: slots beyond the pods without a place."""
    scarcity: list[float]
    """By class: the part of its slots that its pods without a place need; at most 1."""
