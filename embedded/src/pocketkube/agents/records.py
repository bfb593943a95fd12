"""What agents write besides status: Events about pods, and the Leases of nodes."""

from __future__ import annotations

from pocketkube.agents.facts import NodeFacts, PodFacts
from pocketkube.api.api import Api
from pocketkube.errors import ApiError
from pocketkube.objects import Object, rfc3339, rfc3339_micro

LEASE_NAMESPACE = "kube-node-lease"
_LEASE_S = 40


def warn(api: Api, pod: PodFacts, reason: str, message: str) -> None:
    """Record a Warning about a pod, as its kubelet does; an Event that cannot be is left out."""
    now_s = api.now_s()
    now = rfc3339(now_s)
    event: Object = {
        "metadata": {"generateName": f"{pod.name[:200]}.", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        "reason": reason,
        "message": message[:1024],
        "type": "Warning",
        "source": {"component": "kubelet", "host": pod.node},
        "reportingComponent": "kubelet",
        "reportingInstance": pod.node,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "eventTime": None,
    }
    try:
        api.create(api.registry.named("v1", "events"), pod.namespace, event)
    except ApiError:
        return  # such as in a namespace that is going: the pod goes with it


def renew_lease(api: Api, node: NodeFacts) -> None:
    """Say by the node's Lease that its kubelet lives."""
    now = rfc3339_micro(api.now_s())

    def renew(lease: Object) -> None:
        lease.setdefault("spec", {})["renewTime"] = now

    if api.amend("leases.coordination.k8s.io", LEASE_NAMESPACE, node.name, renew) is not None:
        return
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    lease = {
        "metadata": {
            "name": node.name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner],
        },
        "spec": {
            "holderIdentity": node.name,
            "leaseDurationSeconds": _LEASE_S,
            "renewTime": now,
        },
    }
    try:
        api.create(api.registry.named("coordination.k8s.io/v1", "leases"), LEASE_NAMESPACE, lease)
    except ApiError:
        return  # the namespace is not there yet: the next heartbeat tries again
