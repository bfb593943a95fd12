"""Which host ports pods placed in a cycle take, and where: a part of ``Room``, copied with it.

By port, so that a question costs as much as the ports that are asked for, however many are taken.
Asked by ``rules.resources.node_ports`` and ``Room``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model import EVERY_ADDRESS, HostPort, policy
from quorate.core.model.steps import Steps

_Key = tuple[str, int] | tuple[str, str, int]


class PortRoom:
    """Ports taken since the snapshot. Rows are those of the snapshot."""

    def __init__(self, steps: Steps | None = None) -> None:
        self._steps = steps
        self._taken: list[tuple[tuple[HostPort, ...], Ints]] = []
        self._rows: dict[_Key, Ints] = {}
        """Rows by protocol, address and port; and by protocol and port, of all addresses."""
        self._is_shared = False
        """Whether ``_rows`` are another's too, and have to be copied to be written to."""

    def copy(self) -> PortRoom:
        """Return a room of its own to try something in."""
        other = PortRoom(self._steps)
        other._taken, other._rows = list(self._taken), self._rows
        other._is_shared = self._is_shared = True
        return other

    def take(self, ports: tuple[HostPort, ...], rows: Ints) -> None:
        """Count pods with these ports on the rows."""
        if self._is_shared:
            self.count(len(self._rows) // policy.PORTS_COPIED_PER_STEP)
            self._rows, self._is_shared = dict(self._rows), False
        self._taken.append((ports, rows))
        self.count(len(ports) // policy.PORTS_PER_STEP)
        for port in ports:
            keys: tuple[_Key, ...] = ((port.protocol, port.port), port)
            for key in keys:
                there = self._rows.get(key)
                self._rows[key] = rows if there is None else np.concatenate([there, rows])

    def holding(self, ports: Iterable[HostPort]) -> list[Ints]:
        """Return rows where a port is taken that conflicts with one of these; they may repeat."""
        if not self._rows:
            return []
        found: dict[int, Ints] = {}
        looks = 0
        for protocol, ip, port in ports:
            keys: list[_Key] = [(protocol, port)]
            if ip != EVERY_ADDRESS:
                keys = [(protocol, ip, port), (protocol, EVERY_ADDRESS, port)]
            for key in keys:
                rows = self._rows.get(key)
                if rows is not None:
                    found[id(rows)] = rows
            looks += 1
        self.count(looks // policy.PORT_PAIRS_PER_STEP)
        return list(found.values())

    def has(self, row: int, port: HostPort) -> bool:
        """Whether a conflicting port is taken on the row."""
        return any((rows == row).any() for rows in self.holding((port,)))

    def on(self, row: int) -> set[HostPort]:
        """Return the ports that are taken on the row."""
        return {port for ports, rows in self._taken if (rows == row).any() for port in ports}

    def count(self, steps: int) -> None:
        """Count work against the budget of the turn."""
        if self._steps is not None:
            self._steps.take(steps)
