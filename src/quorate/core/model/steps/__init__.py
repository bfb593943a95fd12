"""The budget of a turn: how much work a decision, or an explanation, may still do.

Counted in steps, not in seconds, so that the same inputs give the same plan on every machine. One
step is about 15 microseconds of work (``policy.TURN_STEPS_MAX`` of them are about 100 ms).
"""

from __future__ import annotations


class OutOfStepsError(Exception):
    """The turn ended before there was an answer. What was found so far is kept: ask next turn."""


class GoesOnError(OutOfStepsError):
    """Likewise; and each turn comes further, so none of them has to be longer than others."""


class Steps:
    """Steps that are left. Shared by all that one turn does; may be overdrawn by one piece."""

    __slots__ = ("left", "taken")

    def __init__(self, left: int) -> None:
        self.left = left
        self.taken = 0

    def take(self, count: int = 1) -> None:
        """Count work that has been done, or is about to be."""
        self.left -= count
        self.taken += count

    @property
    def are_over(self) -> bool:
        """Whether none is left."""
        return self.left <= 0

    def expect(self) -> None:
        """Raise OutOfStepsError when none is left."""
        if self.left <= 0:
            raise OutOfStepsError
