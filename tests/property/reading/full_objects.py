"""Objects with a value in every field that we read, and with other values anywhere."""

import copy

TERM = {
    "topologyKey": "zone",
    "namespaces": ["b"],
    "namespaceSelector": {},
    "labelSelector": {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
    },
}
NODE_TERM = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}, "limits": {"cpu": 2}}
POD = {
    "metadata": {
        "name": "p",
        "namespace": "team-a",
        "uid": "u1",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "deletionTimestamp": "2024-01-01T00:00:00Z",
        "labels": {
            "scheduling.x-k8s.io/pod-group": "job1",
            "pod-group.scheduling.sigs.k8s.io/name": "g",
            "pod-group.scheduling.sigs.k8s.io/min-available": "2",
            "pod-template-hash": "abc",
        },
        "annotations": {"scheduling.k8s.io/group-name": "v", "quorate.dev/attempt-size": "4"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x-abc", "controller": True}
        ],
    },
    "spec": {
        "schedulerName": "quorate",
        "nodeName": "n1",
        "priority": 5,
        "schedulingGates": [{"name": "g"}],
        "schedulingGroup": {"podGroupName": "pg"},
        "nodeSelector": {"a": "b"},
        "overhead": {"cpu": "1"},
        "resources": RESOURCES,
        "hostNetwork": True,
        "hostUsers": False,
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
        "tolerations": [{"key": "a", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": TERM["labelSelector"],
                "matchLabelKeys": ["pod-template-hash"],
                "minDomains": 2,
                "nodeTaintsPolicy": "Honor",
                "nodeAffinityPolicy": "Ignore",
            }
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
                PREFERRED: [{"weight": 1, "preference": NODE_TERM}],
            },
            "podAffinity": {
                REQUIRED: [TERM],
                PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}],
            },
            "podAntiAffinity": {REQUIRED: [TERM]},
        },
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": RESOURCES}],
        "containers": [
            {
                "name": "c",
                "resources": RESOURCES,
                "ports": [{"hostPort": 80, "hostIP": "", "protocol": "TCP"}],
                "restartPolicyRules": [{"action": "RestartAllContainers"}],
            }
        ],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        "allocatedResources": {"cpu": "1"},
        "resources": RESOURCES,
        "containerStatuses": [
            {"name": "c", "allocatedResources": {"cpu": "1"}, "resources": RESOURCES}
        ],
    },
}
NODE = {
    "metadata": {"name": "n1", "labels": {"a": "b"}},
    "spec": {"unschedulable": False, "taints": [{"key": "a", "effect": "NoSchedule", "value": ""}]},
    "status": {"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "8"}},
}
GANG = {
    "metadata": {
        "namespace": "a",
        "name": "g",
        "uid": "u",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "controller": True}],
    },
    "spec": {
        "minMember": 4,
        "minResources": {"cpu": "1"},
        "scheduleTimeoutSeconds": 60,
        "queue": "default",
        "schedulingPolicy": {"gang": {"minCount": 4}},
    },
    "status": {
        "phase": "Running",
        "running": 1,
        "conditions": [{"type": "Unschedulable", "status": "True"}],
    },
}


def paths(value, path=()):
    yield path
    if isinstance(value, dict | list):
        steps = value if isinstance(value, dict) else range(len(value))
        for step in steps:
            yield from paths(value[step], (*path, step))


def with_value(original, path, value):
    if not path:
        return value
    changed = copy.deepcopy(original)
    where = changed
    for step in path[:-1]:
        where = where[step]
    where[path[-1]] = value
    return changed
