"""What a real API server's admission adds to a new pod: account, priority, tolerations, overhead.

Source: kubernetes ``plugin/pkg/admission/{serviceaccount,priority,defaulttolerationseconds,
runtimeclass}`` of 1.36. ResourceQuotas are in ``api.admission``.
"""

from __future__ import annotations

from typing import Any

from pocketkube.errors import forbidden
from pocketkube.objects import Object
from pocketkube.registry.rules.common import Surroundings

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_VOLUME = "kube-api-access-"
_TOKEN_LIFE_S = 3607
_TOLERATED_S = 300
_UNTOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_pod(pod: Object, around: Surroundings) -> None:
    """Complete a new pod, in place. Raises ApiError (403)."""
    spec = pod["spec"]
    _set_account(pod, spec, around)
    set_priority(pod, around)
    add_default_tolerations(spec)
    if spec.get("runtimeClassName"):
        _set_overhead(pod, spec, around)
    elif spec.get("overhead"):
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _refusal(pod, f"pod rejected: {why}")


def _refusal(pod: Object, why: str) -> Exception:
    return forbidden("", "pods", pod["metadata"].get("name", ""), why)


def _set_account(pod: Object, spec: dict[str, Any], around: Surroundings) -> None:
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = pod["metadata"].get("namespace", "")
    account = around.find("serviceaccounts", namespace, name)
    if account is None:
        # The real one waits for the default account, which a controller makes: here it is as good
        # as there.
        if name != "default":
            where = f"{namespace}/{name}"
            why = f'error looking up service account {where}: serviceaccount "{name}" not found'
            raise _refusal(pod, why)
        account = {}
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken")
    if wanted is None or wanted:
        _mount_token(spec, around)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]


def _mount_token(spec: dict[str, Any], around: Surroundings) -> None:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    bare = [
        container
        for container in containers
        if not any(
            mount.get("mountPath") == _TOKEN_PATH for mount in container.get("volumeMounts") or ()
        )
    ]
    if not bare:
        return
    volumes = spec.get("volumes") or []
    names = (volume.get("name", "") for volume in volumes)
    name = next((found for found in names if found.startswith(_TOKEN_VOLUME)), "")
    if not name:
        name = _TOKEN_VOLUME + around.suffix()
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]
    for container in bare:
        mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def _token_source() -> dict[str, Any]:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    certificate = [{"key": "ca.crt", "path": "ca.crt"}]
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_LIFE_S, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": certificate}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
        "defaultMode": 0o644,
    }


def priority_class_of(name: str, around: Surroundings) -> Object | None:
    """Return the PriorityClass that is meant: the default one for an empty name; None: none."""
    if name:
        return around.find(PRIORITY_CLASSES, "", name)
    defaults = [one for one in around.find_all(PRIORITY_CLASSES) if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def set_priority(pod: Object, around: Surroundings) -> None:
    """Resolve the pod's PriorityClass, in place. Raises ApiError (403)."""
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    found = priority_class_of(name, around)
    if found is None and name:
        raise _refusal(pod, f"no PriorityClass with name {name} was found")
    priority, policy = 0, "PreemptLowerPriority"
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
        priority, policy = found["value"], found.get("preemptionPolicy", policy)
    given = spec.get("priority")
    if given is not None and given != priority:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise _refusal(pod, why)
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = (
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise _refusal(pod, why)
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def add_default_tolerations(spec: dict[str, Any]) -> None:
    """Let the pod stay five minutes on a node that fails, unless it says otherwise; in place."""
    given = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}
        for key in _UNTOLERATED
        if not any(_is_about(one, key) for one in given)
    ]
    if added:
        spec["tolerations"] = [*given, *added]


def _is_about(toleration: dict[str, Any], key: str) -> bool:
    about = toleration.get("key", "") in ("", key)
    return about and toleration.get("effect", "") in ("", "NoExecute")


def _set_overhead(pod: Object, spec: dict[str, Any], around: Surroundings) -> None:
    name = spec["runtimeClassName"]
    found = around.find("runtimeclasses.node.k8s.io", "", name)
    if found is None:
        raise _refusal(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed")
    given = spec.get("overhead")
    if given is not None and given != overhead:
        why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise _refusal(pod, why)
    if overhead:
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling") or {}
    if scheduling.get("nodeSelector"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **scheduling["nodeSelector"]}
    if scheduling.get("tolerations"):
        known = spec.get("tolerations") or []
        spec["tolerations"] = [
            *known,
            *(one for one in scheduling["tolerations"] if one not in known),
        ]
