"""The host ports of pods placed in a cycle, and their nodes: a part of ``Room``, copied with it.

Indexed by port, so that the cost of a query depends on the ports queried, not on those taken.
Called by ``rules.resources.node_ports`` and ``Room``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model import EVERY_ADDRESS, HostPort
from quorate.core.model.steps import Steps, costs

_Key = tuple[str, int] | tuple[str, str, int]


class PortRoom:
    """Ports taken since the snapshot. Rows are those of the snapshot."""

    def __init__(self, steps: Steps | None = None) -> None:
        self._steps = steps
        self._taken: list[tuple[tuple[HostPort, ...], Ints]] = []
        self._rows: dict[_Key, Ints] = {}
        """Rows by (protocol, address, port), and by (protocol, port) over all addresses."""
        self._is_shared = False
        """Whether a copy shares ``_rows``: they are copied before a write."""

    def copy(self) -> PortRoom:
        """Return an independent copy for a trial."""
        other = PortRoom(self._steps)
        other._taken, other._rows = list(self._taken), self._rows
        other._is_shared = self._is_shared = True
        return other

    def take(self, ports: tuple[HostPort, ...], rows: Ints) -> None:
        """Count pods with these ports on the rows."""
        if self._is_shared:
            self.count(len(self._rows) // costs.PORTS_COPIED_PER_STEP)
            self._rows, self._is_shared = dict(self._rows), False
        self._taken.append((ports, rows))
        self.count(len(ports) // costs.PORTS_PER_STEP)
        for port in ports:
            keys: tuple[_Key, ...] = ((port.protocol, port.port), port)
            for key in keys:
                there = self._rows.get(key)
                self._rows[key] = rows if there is None else np.concatenate([there, rows])

    def holding(self, ports: Iterable[HostPort]) -> list[Ints]:
        """Return the rows where a taken port conflicts with one of these; rows may repeat."""
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
        self.count(looks // costs.PORT_PAIRS_PER_STEP)
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
