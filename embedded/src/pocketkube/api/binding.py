"""The subresource ``binding``: a pod gets its node, once.

Source: ``pkg/registry/core/pod/storage`` of Kubernetes 1.36 (BindingREST.assignPod).
"""

from __future__ import annotations

from typing import Any

from pocketkube import errors
from pocketkube.api.api import Api
from pocketkube.api.writing import FROM_INSIDE, Writing
from pocketkube.objects import Object, rfc3339

_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(api: Api, namespace: str, name: str, binding: Object, how: Writing = FROM_INSIDE) -> None:
    """Put a pod on a node. Raises ApiError (400, 404, 409, 500)."""
    node = _node_of(binding, name)
    pods = api.registry.named("v1", "pods")
    api.admit("CREATE", pods, (namespace, name), binding, None, how, subresource="binding")
    entry = api.store.get("pods", namespace, name)
    if entry is None:
        raise errors.not_found("", "pods", name)
    pod = entry.object
    _check(pod, name, binding.get("metadata") or {})
    if how.dry_run:
        return
    _assign(pod, node, binding.get("metadata") or {}, api)
    api.store.put("pods", pod)


def _node_of(binding: Object, name: str) -> str:
    target = binding.get("target") or {}
    given = (binding.get("metadata") or {}).get("name")
    if given != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    if target.get("kind") not in (None, "", "Node") or not target.get("name"):
        # upstream forgets to make it a 422
        raise errors.ApiError(500, "", f"target: it has to name a Node, not {target}")
    return str(target["name"])


def _check(pod: Object, name: str, given: dict[str, Any]) -> None:
    metadata = pod["metadata"]

    def refuse(why: str) -> errors.ApiError:
        return errors.conflict("", "pods/binding", name, why)

    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if given.get(field) and given[field] != metadata[field]:
            raise refuse(
                f"Precondition failed: {what} in precondition: {given[field]}, "
                f"{what} in object meta: {metadata[field]}"
            )
    if "deletionTimestamp" in metadata:
        raise refuse(f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise refuse(f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    if pod["spec"].get("schedulingGates"):
        raise refuse(f"pod {name} has non-empty .spec.schedulingGates")


def _assign(pod: Object, node: str, given: dict[str, Any], api: Api) -> None:
    metadata = pod["metadata"]
    pod["spec"]["nodeName"] = node
    if given.get("annotations"):
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **given["annotations"]}
    labels = {**_topology(api, node), **(given.get("labels") or {})}
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    status = pod.setdefault("status", {})
    others = [c for c in status.get("conditions") or [] if c["type"] != "PodScheduled"]
    scheduled: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(api.now_s()),
    }
    status["conditions"] = [*others, scheduled]


def _topology(api: Api, node: str) -> dict[str, str]:
    """Return the labels that the admission plugin PodTopologyLabels copies from the node."""
    entry = api.store.get("nodes", "", node)
    if entry is None:
        return {}
    return {key: entry.labels[key] for key in _TOPOLOGY_LABELS if key in entry.labels}
