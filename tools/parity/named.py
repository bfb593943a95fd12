"""Where the core differs from kube-scheduler on purpose: each with a case that shows it.

Documented in docs/parity.md. A case of random drawing never contains one of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Named(NamedTuple):
    """One deliberate difference: a case, what kube-scheduler says of it, and what we say."""

    name: str
    case: dict[str, Any]
    their_feasible: tuple[str, ...]
    our_feasible: tuple[str, ...]


def _node(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}},
    }


def _pod(name: str, namespace: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def _namespace(name: str, kind: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {"kind": kind}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


_ABSENCE = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "namespaceSelector": {
        "matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["prod"]}]
    },
}
_APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_ABSENCE]}}

NAMED = (
    Named(
        # The plugin loses the selector's answer and asks it anew with no labels at all, which
        # NotIn and DoesNotExist match: so pods of every namespace count, prod's too.
        "a namespaceSelector of absence means the namespaces that it matches",
        {
            "nodes": [_node("n0"), _node("n1")],
            "pods": [_pod("running", "prod", nodeName="n0")],
            "pod": _pod("pending", "test", affinity=_APART),
            "objects": [_namespace("prod", "prod"), _namespace("test", "test")],
        },
        their_feasible=("n1",),
        our_feasible=("n0", "n1"),
    ),
)
