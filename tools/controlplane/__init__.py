"""A real Kubernetes control plane on loopback, built from source, for tests and benchmarks.

In: Go and this folder's go.mod. Out: cached binaries (``build``) and a running cluster whose nodes
are fake but whose API is not (``Cluster``). Called by tests/e2e, bench and people:
``python -m tools.controlplane build`` and ``python -m tools.controlplane up``.
"""

from tools.controlplane.access import Access, KubectlError
from tools.controlplane.client import ApiClient, ApiError
from tools.controlplane.cluster import Cluster
from tools.controlplane.process import ComponentError

__all__ = ["Access", "ApiClient", "ApiError", "Cluster", "ComponentError", "KubectlError"]
