"""One row of the catalogue: what a tenant writes, and what becomes of its own pods."""

from collections.abc import Callable
from typing import NamedTuple

from tests.hostile.harness.attacker import Attacker

STARTS = "a pod of its starts"
"""As what is told: some pod gets a node."""


class Attack(NamedTuple):
    """``act`` writes it. Then all of ``told`` stand in conditions of its pods.

    ``refused`` is the status with which the API server must have refused something; 0: any.
    """

    name: str
    act: Callable[[Attacker], None]
    told: tuple[str, ...]
    refused: int


class Catalogue:
    """Rows in the order of their definition."""

    def __init__(self) -> None:
        self.rows: list[Attack] = []

    def attack(self, *told: str, refused: int = 0) -> Callable:
        """Make a row of a function; its name is the row's."""

        def add(act: Callable[[Attacker], None]) -> Callable[[Attacker], None]:
            self.rows.append(Attack(act.__name__, act, told, refused))
            return act

        return add
