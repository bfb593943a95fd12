"""A pod with anything anywhere is a pod, a pod with a defect, or Malformed: never a crash."""

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model import Pod
from quorate.core.model.changes import PodChanged
from quorate.dialects import Malformed
from quorate.shell.watch.nodes import decode_node
from quorate.shell.watch.objects import identity, watched_kinds
from quorate.shell.watch.pod.decoding import PodDecoder

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

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(
        [
            "",
            "-1",
            "\ud800",
            "a\ud800b",
            "1e999",
            "9" * 60,
            "2024-13-01T00:00:00Z",
            "0001-01-01T00:00:00+23:59",
        ]
    )
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


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


def broken(original):
    return st.lists(
        st.tuples(st.sampled_from(list(paths(original))), anything), min_size=1, max_size=3
    ).map(lambda edits: _apply(original, edits))


def _apply(original, edits):
    original = json.loads(json.dumps(original))  # RESOURCES and its like are shared: unshare them
    for path, value in sorted(edits, key=lambda edit: -len(edit[0])):
        original = with_value(original, path, value)
    return json.dumps(original).encode()


DECODER = PodDecoder(frozenset({"quorate"}))


def outcome(decode, raw):
    try:
        return decode(raw)
    except Malformed as error:
        return str(error)


@given(broken(POD))
def test_a_pod_with_anything_anywhere_is_a_value_or_malformed(raw):
    change = outcome(DECODER.decode, raw)
    if isinstance(change, str):
        return
    pod = change.pod
    assert isinstance(change, PodChanged)
    assert isinstance(pod, Pod)
    assert pod.uid
    assert pod.name
    assert pod.namespace
    assert bool(pod.defect) == bool(pod.defect_reason)
    assert all(0 < amount <= 2**53 for _, amount in pod.spec.requests)
    hash(pod)


@given(broken(POD))
def test_decoding_does_not_depend_on_what_was_decoded_before(raw):
    fresh = PodDecoder(frozenset({"quorate"}))
    assert outcome(DECODER.decode, raw) == outcome(fresh.decode, raw)


def test_the_whole_example_is_sound():
    assert DECODER.decode(json.dumps(POD).encode()).pod.defect == ""


@given(broken(NODE))
def test_a_node_with_anything_anywhere_is_a_value_or_malformed(raw):
    change = outcome(decode_node, raw)
    if not isinstance(change, str):
        assert change.node.name
        assert all(0 <= amount <= 2**53 for _, amount in change.node.allocatable)


@given(
    broken(GANG) | broken(POD) | st.binary(max_size=60),
    st.sampled_from(list(watched_kinds(frozenset({"quorate"})).values())),
)
def test_every_kind_survives_every_object(raw, kind):
    for decode in (kind.changed, lambda raw: kind.gone(identity(raw))):
        try:
            decode(raw)
        except Malformed as error:
            kind.unreadable(error)
