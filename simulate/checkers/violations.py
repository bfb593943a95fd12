"""The records of checkers: decisions of replicas, and broken promises."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A promise that was broken."""

    at_s: float
    promise: str
    text: str

    def __str__(self) -> str:
        return f"{self.at_s:.3f} s: {self.promise}: {self.text}"


class Decision(NamedTuple):
    """A bind that a replica decided on, the revisions it had received by then, and min as known."""

    uid: str
    node: str
    told: int
    knows: int
    """The revision by which it knew the gang: what it bound counts from the answer on."""
    told_nodes: int
    minimum: int | None
    gang: str
    """The gang that the bind is for."""
    may_go_on: bool
    """Whether the replica knew a member of the gang's life that was alive or being bound."""
