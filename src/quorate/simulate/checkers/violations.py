"""What a checker keeps: decisions of replicas, and promises that were broken."""

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
    """A bind that a replica decided on; what it had been told by then; min as it knew it."""

    uid: str
    node: str
    told: int
    told_nodes: int
    minimum: int | None
    gang: str
    """For which it was."""
    may_go_on: bool
    """Whether it knew a member of the gang's life that was alive, or was being bound."""
