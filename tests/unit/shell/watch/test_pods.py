"""What the core is told of a pod: real manifests, every rule of requests, and broken pods."""

import pytest
import yaml

from quorate.core.model import (
    GangKey,
    Owner,
    PodClaim,
    PodSpec,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    Toleration,
)
from quorate.dialects import Malformed
from quorate.shell.watch.pod.decoding import PodDecoder
from tests.unit.shell.decoded import OWNED, PREFERRED, decode, manifest, pod

GI = 2**30


def test_a_worker_of_a_pytorch_job():
    decoded = decode(
        yaml.safe_load("""
        apiVersion: v1
        kind: Pod
        metadata:
          name: job1-worker-0
          namespace: team-a
          uid: 7a0a
          creationTimestamp: "1970-01-01T00:02:00Z"
          labels: {scheduling.x-k8s.io/pod-group: job1, a: b}
          annotations: {quorate.dev/attempt: a7, quorate.dev/attempt-size: "4"}
          ownerReferences:
            - {apiVersion: v1, kind: Other, name: other}
            - {apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: job1, controller: true}
          managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {}}}]
        spec:
          schedulerName: quorate
          priority: -7
          nodeSelector: {gpu: h100}
          schedulingGates: [{name: acme.io/wait}]
          tolerations: [{key: gpu, operator: Exists}, {operator: Exists, effect: NoExecute}, {}]
          containers:
            - name: main
              env: [{name: RANK, value: "3"}]
              resources: {requests: {cpu: 1500m, memory: 2Gi, nvidia.com/gpu: "8"}}
        status: {phase: Pending}
        """)
    )
    assert decoded.uid == "7a0a"
    assert (decoded.namespace, decoded.name) == ("team-a", "job1-worker-0")
    assert decoded.membership.key == GangKey("team-a", "x-k8s", "job1")
    assert decoded.owner == Owner("kubeflow.org/v1", "PyTorchJob", "job1")
    assert (decoded.created_s, decoded.priority, decoded.node) == (120.0, -7, "")
    assert (decoded.gates, decoded.terminating, decoded.phase) == (
        ("acme.io/wait",),
        False,
        "Pending",
    )
    assert decoded.labels == (("a", "b"), ("scheduling.x-k8s.io/pod-group", "job1"))
    assert (decoded.attempt, decoded.attempt_size) == ("a7", 4)
    assert decoded.spec == PodSpec(
        requests=(("cpu", 1500), ("memory", 2 * GI), ("nvidia.com/gpu", 8)),
        node_selector=(("gpu", "h100"),),
        tolerations=(
            Toleration("gpu", "Exists"),
            Toleration("", "Exists", "", "NoExecute"),
            Toleration(),
        ),
        scored=(1500, 2 * GI),
    )
    assert (decoded.defect, decoded.warning) == ("", "")


@pytest.mark.parametrize(
    ("scheduler", "meta", "by"),
    [
        ("volcano", {}, "volcano"),
        ("quorate", {}, ""),
        ("volcano", {"ownerReferences": []}, ""),
        ("volcano", {"annotations": {"scheduling.k8s.io/group-name": "podgroup-1"}}, ""),
    ],
)
def test_whose_controllers_may_yet_give_the_pod_a_gang(scheduler, meta, by):
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
    meta = {"ownerReferences": [controller], **meta}
    assert decode(manifest({"schedulerName": scheduler}, **meta)).gathered_by == by


def node_affinity(**kinds):
    return {"affinity": {"nodeAffinity": kinds}}


def test_node_affinity():
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    gt = {"key": "cores", "operator": "Gt", "values": ["4"]}
    decoded = pod(
        node_affinity(
            requiredDuringSchedulingIgnoredDuringExecution={
                "nodeSelectorTerms": [{"matchExpressions": [zone], "matchFields": [name]}, {}]
            },
            preferredDuringSchedulingIgnoredDuringExecution=[
                {"weight": 7, "preference": {"matchExpressions": [gt]}}
            ],
        )
    )
    term = SelectorTerm(
        (Requirement("zone", "In", ("a", "b")),), (Requirement("metadata.name", "In", ("n1",)),)
    )
    assert decoded.spec.required_terms == (term, SelectorTerm())
    gt_term = SelectorTerm((Requirement("cores", "Gt", ("4",)),))
    assert decoded.spec.preferred_terms == (PreferredTerm(7, gt_term),)
    assert pod().spec.required_terms is None
    none = node_affinity(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": []})
    assert pod(none).spec.required_terms == ()


RESTARTS = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({}, ()),
        ({"hostNetwork": True, "hostUsers": False}, ("UserNamespacesHostNetworkSupport",)),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostNetwork": True}, ()),
        ({"containers": [RESTARTS]}, ("RestartAllContainersOnContainerExits",)),
        ({"initContainers": [RESTARTS]}, ("RestartAllContainersOnContainerExits",)),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, ()),
    ],
)
def test_features_that_the_node_must_declare(spec, features):
    assert pod(spec).spec.node_features == features


def test_claims_by_name_and_from_templates_as_far_as_they_are_made():
    written = [
        {"name": "mine", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
        {"name": "later", "resourceClaimTemplateName": "t"},
        {"name": "shared", "resourceClaimName": "c"},
    ]
    made = [{"name": "mine", "resourceClaimName": "p-mine-x"}, {"name": "none"}]
    found = pod({"resourceClaims": written}, status={"resourceClaimStatuses": made})
    assert found.device_claims == (
        PodClaim("mine", "p-mine-x", own=True),
        PodClaim("none", "", own=True),
        PodClaim("later", None, own=True),
        PodClaim("shared", "c", own=False),
    )
    assert pod({"resourceClaims": written}).spec == pod({}).spec


def test_an_entry_that_names_no_claim_is_a_defect():
    broken = decode(manifest({"resourceClaims": [{"name": "gpu"}]}))
    assert broken.defect == "spec.resourceClaims: 'gpu' names no claim"


@pytest.mark.parametrize(
    ("references", "labels", "owner"),
    [
        ([], {}, None),
        ([{"kind": "Job", "name": "j", "apiVersion": "batch/v1"}], {}, None),  # not the controller
        (
            [{"kind": "Job", "name": "j", "apiVersion": "batch/v1", "controller": True}],
            {},
            Owner("batch/v1", "Job", "j"),
        ),
        (
            [
                {
                    "kind": "ReplicaSet",
                    "name": "web-5d4f",
                    "apiVersion": "apps/v1",
                    "controller": True,
                }
            ],
            {"pod-template-hash": "5d4f"},
            Owner("apps/v1", "Deployment", "web"),
        ),
        (
            [
                {
                    "kind": "ReplicaSet",
                    "name": "web-5d4f",
                    "apiVersion": "apps/v1",
                    "controller": True,
                }
            ],
            {},
            Owner("apps/v1", "ReplicaSet", "web-5d4f"),
        ),
    ],
)
def test_the_owner_is_the_one_that_a_person_would_name(references, labels, owner):
    assert pod(None, ownerReferences=references, labels=labels).owner == owner


JOB = {"kind": "Job", "name": "j", "apiVersion": "batch/v1", "uid": "u-1", "controller": True}
JOBSET = {"jobset.sigs.k8s.io/jobset-uid": "s-1", "jobset.sigs.k8s.io/restart-attempt": "2"}
MEMBER = {"scheduling.x-k8s.io/pod-group": "job1"}


@pytest.mark.parametrize(
    ("references", "labels", "run"),
    [
        ([JOB], MEMBER, "u-1"),
        ([JOB], {}, ""),  # of a gang's members alone
        ([JOB | {"controller": False}], MEMBER, ""),
        ([JOB], MEMBER | JOBSET, "s-1/2"),  # all Jobs of a JobSet, until it restarts them
    ],
)
def test_the_run_of_a_member_is_what_its_controller_made_at_once(references, labels, run):
    assert pod(None, ownerReferences=references, labels=labels).run == run


def test_a_pod_of_nobody_else_with_a_gang_like_label_is_held():
    labels = {"scheduling.x-k8s.io/podgroup": "pg1"}
    held = decode(manifest(labels=labels))
    assert held.defect_reason == "UnknownGangLabel"
    assert "use label scheduling.x-k8s.io/pod-group: pg1" in held.defect
    foreign = decode(manifest({"schedulerName": "default-scheduler"}, labels=labels))
    assert (foreign.defect, foreign.defect_reason, foreign.warning) == ("", "", "")


def test_a_foreign_pod_that_names_a_gang_is_known_as_its_member():
    labels = {"scheduling.x-k8s.io/pod-group": "job1", "pod-group.scheduling.sigs.k8s.io": "other"}
    foreign = decode(manifest({"schedulerName": "default-scheduler"}, labels=labels))
    assert foreign.membership.key.name == "job1"
    assert (foreign.scheduler, foreign.warning) == ("default-scheduler", "")
    assert foreign.labels == tuple(sorted(labels.items()))
    ours = decode(manifest(labels=labels))
    assert "several gangs" in ours.warning


def test_a_member_is_unanswered_until_its_own_scheduler_writes_a_condition_or_binds_it():
    labels = {"scheduling.x-k8s.io/pod-group": "job1"}
    others = {"schedulerName": "others"}
    told = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    mentioned = [{"type": "Custom", "status": "False", "message": '"PodScheduled"'}]
    for spec, status, unanswered in (
        (others, None, True),
        (others, {"phase": "Pending"}, True),
        (others, {"conditions": mentioned}, True),
        (others, {"conditions": told}, False),
        ({**others, "nodeName": "n1"}, None, False),
        ({}, None, False),  # ours
    ):
        assert decode(manifest(spec, status, labels=labels)).unanswered is unanswered
    assert not decode(manifest(others)).unanswered, "it is of no gang"


def test_a_native_pod_names_its_group_in_its_spec():
    named = pod({"schedulingGroup": {"podGroupName": "pg"}})
    assert named.membership.key == GangKey("team-a", "native", "pg")
    assert pod({"schedulingGroup": None}).membership is None


def test_a_pod_without_a_scheduler_name_is_the_default_schedulers():
    obj = manifest()
    del obj["spec"]["schedulerName"]
    assert decode(obj).scheduler == "default-scheduler"


def test_a_terminating_pod_says_so():
    assert pod(None, deletionTimestamp="2024-01-01T00:00:00Z").terminating
    assert not pod().terminating


@pytest.mark.parametrize("size", ["", "x", "-1", "1e3", "99999999999", "٣"])
def test_a_broken_attempt_size_is_zero(size):
    assert pod(None, annotations={"quorate.dev/attempt-size": size}).attempt_size == 0


def test_nulls_where_kubernetes_allows_them():
    obj = manifest(
        dict.fromkeys(["initContainers", "affinity", "tolerations", "nodeSelector", "overhead"])
        | dict.fromkeys(["priority", "volumes", "schedulingGates", "nodeName", "resourceClaims"])
        | {"containers": [{"name": "c", "resources": None, "ports": None}]},
        labels=None,
        annotations=None,
        ownerReferences=None,
        creationTimestamp=None,
    )
    obj["status"] = None
    assert decode(obj).defect == ""


def container(**requests):
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (
            container(cpu="abc"),
            "spec.containers[0].resources.requests.cpu: 'abc' is not a quantity",
        ),
        (container(cpu="-1"), "spec.containers[0].resources.requests.cpu: '-1' is negative"),
        (container(memory="1e99"), "larger than any machine"),
        (container(memory=None), "spec.containers[0].resources.requests"),
        (container(cpu=[1]), "spec.containers[0].resources.requests"),
        ({"containers": [{"resources": {"requests": {"memory": "7Pi"}}}] * 2}, "add up to more"),
        ({"containers": None}, "spec.containers: Expected array, got null"),
        ({"containers": "c"}, "spec.containers"),
        ({"containers": [None]}, "spec.containers[0]"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead.cpu: 'x'"),
        ({"priority": 2**31}, "spec.priority"),
        ({"priority": "high"}, "spec.priority: Expected int | null, got str"),
        ({"affinity": {"nodeAffinity": 3}}, "spec.affinity.nodeAffinity: Expected"),
        (node_affinity(**{PREFERRED: [{"weight": 10**9, "preference": {}}]}), "spec.affinity.node"),
        ({"tolerations": {}}, ""),
        ({"tolerations": [{"key": 3}]}, "spec.tolerations[0].key"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector"),
        ({"containers": [{"ports": [{"hostPort": 70000}]}]}, "spec.containers.ports[0].hostPort"),
        ({"schedulingGates": [{"name": None}]}, "spec.schedulingGates[0].name"),
        ({"topologySpreadConstraints": [3]}, "spec.topologySpreadConstraints[0]"),
        ({"resourceClaims": [3]}, "spec.resourceClaims[0]"),
    ],
)
def test_a_pod_that_cannot_be_read_is_known_with_a_defect_that_names_the_field(spec, named):
    labels = {"scheduling.x-k8s.io/pod-group": "job1"}
    obj = manifest(spec | {"nodeName": "n1"}, {"phase": "Running"}, labels=labels)
    broken = decode(obj)
    if not named:
        assert broken.defect == ""
        return
    assert named in broken.defect
    assert broken.defect_reason == "PodInvalid"
    assert (broken.uid, broken.node, broken.phase) == ("u1", "n1", "Running")
    assert broken.membership.key.name == "job1"
    assert broken.spec == PodSpec()


def test_a_broken_time_is_a_defect_and_a_broken_spec_leaves_the_pod_known():
    assert "metadata.creationTimestamp: 'soon'" in decode(manifest(creationTimestamp="soon")).defect
    obj = manifest()
    obj["spec"] = None
    assert decode(obj).defect == "spec: Expected object, got null"


@pytest.mark.parametrize("key", ["uid", "name", "namespace"])
@pytest.mark.parametrize("value", [None, "", 3, {"a": 1}])
def test_a_pod_without_identity_is_malformed(key, value):
    with pytest.raises(Malformed) as caught:
        decode(manifest(**{key: value}))
    assert getattr(caught.value, key) == ""


@pytest.mark.parametrize(
    "raw", [b"", b"nonsense", b"[" * 100_000, b"null", b'{"metadata":{}}', b"\xff"]
)
def test_what_is_no_pod_is_malformed(raw):
    with pytest.raises(Malformed):
        PodDecoder(OWNED).decode(raw)
