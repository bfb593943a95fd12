"""What ``kubectl get`` shows in each column, one module for a family of kinds.

In: an object of a built-in kind, and the time. Out: its cells, in the order of the recorded
columns, those for ``-o wide`` too. Source: Kubernetes 1.36 ``pkg/printers/internalversion``, and
Tables of a real API server.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketkube.server.tables.table_cells import cluster, networks, pods, storage, workloads
from pocketkube.server.tables.table_cells.words import Cells

CELLS: Mapping[str, Cells] = {
    **cluster.CELLS,
    **networks.CELLS,
    **pods.CELLS,
    **storage.CELLS,
    **workloads.CELLS,
}
"""By bucket, such as ``pods`` or ``deployments.apps``."""
