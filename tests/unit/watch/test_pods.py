"""What the core is told of a pod: real manifests, every rule of requests, and broken pods."""

import copy
import json

import pytest
import yaml

from quorate.core.model import (
    GangKey,
    HostPort,
    LabelSelector,
    Owner,
    PodShape,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    Toleration,
)
from quorate.dialects import Malformed
from quorate.shell.watch import pods
from quorate.shell.watch.pods import PodDecoder

GI = 2**30
OWNED = frozenset({"quorate", "cw-coscheduler", "coscheduler"})


def manifest(spec=None, status=None, **metadata):
    base = {"name": "p", "namespace": "team-a", "uid": "u1"}
    containers = {"containers": [{"name": "c"}]}
    return {
        "metadata": base | metadata,
        "spec": containers | {"schedulerName": "quorate"} | (spec or {}),
        "status": status or {"phase": "Pending"},
    }


def decode(obj, owned=OWNED):
    return PodDecoder(owned).decode(json.dumps(obj).encode()).pod


def pod(spec=None, status=None, **metadata):
    decoded = decode(manifest(spec, status, **metadata))
    assert decoded.defect == ""
    return decoded


def requests(*containers, init=(), **spec):
    made = [{"name": f"c{i}", "resources": {"requests": one}} for i, one in enumerate(containers)]
    decoded = pod({"containers": made, "initContainers": list(init)} | spec)
    return dict(decoded.shape.requests)


def init(always=False, **amounts):
    one = {"name": "i", "resources": {"requests": amounts}}
    return one | ({"restartPolicy": "Always"} if always else {})


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
              image: train
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
    assert decoded.shape == PodShape(
        requests=(("cpu", 1500), ("memory", 2 * GI), ("nvidia.com/gpu", 8)),
        node_selector=(("gpu", "h100"),),
        tolerations=(
            Toleration("gpu", "Exists"),
            Toleration("", "Exists", "", "NoExecute"),
            Toleration(),
        ),
    )
    assert (decoded.defect, decoded.warning) == ("", "")


def test_requests_follow_kube_schedulers_node_resources_fit():
    assert requests({"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}) == {"cpu": 1500, "memory": GI}
    # Init containers run one after another, before the containers: the larger counts.
    assert requests({"cpu": "1"}, init=[init(cpu="3"), init(cpu="2")]) == {"cpu": 3000}
    assert requests({"cpu": "4"}, init=[init(cpu="3")]) == {"cpu": 4000}
    # Sidecars stay: they add to the containers, and to init containers declared after them.
    assert requests({"cpu": "1"}, init=[init(True, cpu="2")]) == {"cpu": 3000}
    assert requests({"cpu": "1"}, init=[init(True, cpu="2"), init(cpu="5")]) == {"cpu": 7000}
    assert requests({"cpu": "1"}, init=[init(cpu="5"), init(True, cpu="2")]) == {"cpu": 5000}
    assert requests({"cpu": "1"}, init=[init(True, cpu="2"), init(True, cpu="3")]) == {"cpu": 6000}
    assert requests({"cpu": "1"}, overhead={"cpu": "250m", "memory": "1Mi"}) == {
        "cpu": 1250,
        "memory": 2**20,
    }


def test_pod_level_requests_override_those_of_containers_then_overhead_is_added():
    level = {"requests": {"cpu": "8", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}}
    assert requests(
        {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
        resources=level,
        overhead={"cpu": "1"},
    ) == {"cpu": 9000, "memory": GI, "hugepages-2Mi": 4 * 2**20, "nvidia.com/gpu": 2}


def test_resources_that_no_node_is_compared_for_are_left_out():
    counted = {"ephemeral-storage": "1Gi", "example.com/foo": "2", "attachable-volumes-csi": "1"}
    ignored = {
        "pods": "5",
        "storage": "1Gi",
        "requests.example.com/foo": "1",
        "nvidia.com/gpu": "0",
    }
    assert requests(counted | ignored) == {
        "ephemeral-storage": GI,
        "example.com/foo": 2,
        "attachable-volumes-csi": 1,
    }
    assert requests({"cpu": 2, "memory": 1024}) == {"cpu": 2000, "memory": 1024}
    assert requests({"cpu": "0.1m"}) == {"cpu": 1}


def running(spec_cpu, *, allocated=None, actual=None, conditions=(), level=None, level_status=None):
    one = {"name": "c"}
    if allocated:
        one["allocatedResources"] = {"cpu": allocated}
    if actual:
        one["resources"] = {"requests": {"cpu": actual}}
    spec = {
        "nodeName": "n1",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": spec_cpu}}}],
    }
    if level:
        spec["resources"] = {"requests": {"cpu": level}}
    status = {"phase": "Running", "containerStatuses": [one], "conditions": list(conditions)}
    decoded = pod(spec, status | (level_status or {}))
    return dict(decoded.shape.requests)["cpu"]


def test_a_pod_on_a_node_counts_what_it_asks_for_or_still_has():
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    infeasible = pending | {"reason": "Infeasible"}
    assert running("2") == 2000
    assert running("2", allocated="4", actual="3") == 4000
    assert running("2", allocated="1", actual="3") == 3000
    assert running("8", allocated="4", actual="4", conditions=[pending]) == 8000
    assert running("8", allocated="4", actual="3", conditions=[infeasible]) == 4000
    assert running("8", allocated="9") == 8000  # no resources reported: an old kubelet
    level_status = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "6"}}
    assert running("1", level="2", level_status=level_status) == 6000


def test_the_status_of_a_pod_without_a_node_is_not_looked_at():
    status = {
        "phase": "Pending",
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}],
    }
    assert dict(pod(None, status).shape.requests) == {}


def test_host_ports_of_containers_and_sidecars():
    def ports(*each):
        return [{"containerPort": 1, **one} for one in each]

    decoded = pod(
        {
            "containers": [
                {"name": "a", "ports": ports({"hostPort": 80}, {"hostPort": 0}, {})},
                {
                    "name": "b",
                    "ports": ports({"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}),
                },
            ],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "ports": ports({"hostPort": 81})},
                {"name": "i", "ports": ports({"hostPort": 82})},
            ],
        }
    )
    assert decoded.shape.host_ports == (
        HostPort("TCP", "0.0.0.0", 80),
        HostPort("TCP", "0.0.0.0", 81),
        HostPort("UDP", "10.0.0.1", 53),
    )


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
    assert decoded.shape.required_terms == (term, SelectorTerm())
    gt_term = SelectorTerm((Requirement("cores", "Gt", ("4",)),))
    assert decoded.shape.preferred_terms == (PreferredTerm(7, gt_term),)
    assert pod().shape.required_terms is None
    none = node_affinity(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": []})
    assert pod(none).shape.required_terms == ()


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}


@pytest.mark.parametrize(
    ("spec", "unsupported"),
    [
        ({}, ()),
        ({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "t", "projected": {}}]}, ()),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            ("VolumeBinding",),
        ),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]},
            ("VolumeBinding",),
        ),
        ({"volumes": [{"name": "v", "rbd": {"image": "i"}}]}, ("VolumeRestrictions",)),
        ({"volumes": [{"name": "v", "iscsi": {"iqn": "i"}}]}, ("VolumeRestrictions",)),
        (
            {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]},
            ("VolumeRestrictions",),
        ),
        (
            {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "d"}}]},
            ("VolumeRestrictions",),
        ),
        ({"affinity": {"podAffinity": {REQUIRED: [TERM]}}}, ("InterPodAffinity",)),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}}, ("InterPodAffinity",)),
        (
            {
                "affinity": {
                    "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}
                }
            },
            (),
        ),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ()),
        (
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
            ("PodTopologySpread",),
        ),
        ({"topologySpreadConstraints": [{}]}, ("PodTopologySpread",)),
        ({"resourceClaims": [{"name": "gpu"}]}, ("DynamicResources",)),
        ({"resourceClaims": []}, ()),
        ({"hostNetwork": True, "hostUsers": False}, ("NodeDeclaredFeatures",)),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostNetwork": True}, ()),
        (
            {"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            ("NodeDeclaredFeatures",),
        ),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, ()),
    ],
)
def test_rules_that_quorate_does_not_know_are_named(spec, unsupported):
    assert pod(spec).shape.unsupported == unsupported


def test_the_anti_affinity_of_a_pod_on_a_node_is_known_for_others_sake():
    expression = {"key": "tier", "operator": "NotIn", "values": ["web"]}
    terms = [
        TERM,
        {
            "topologyKey": "zone",
            "labelSelector": {"matchExpressions": [expression]},
            "namespaces": ["b", "a"],
        },
        {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}},
        {"topologyKey": "zone"},  # no selector: matches nothing
    ]
    spec = {
        "affinity": {"podAntiAffinity": {REQUIRED: terms}},
        "schedulerName": "default-scheduler",
    }
    assert pod(spec).anti_terms == ()
    assert pod(spec | {"nodeName": "n1"}).anti_terms == (
        LabelSelector(("team-a",), (Requirement("app", "In", ("x",)),)),
        LabelSelector(("a", "b"), (Requirement("tier", "NotIn", ("web",)),)),
        LabelSelector(None),
    )


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


def test_a_pod_of_nobody_else_with_a_gang_like_label_is_held():
    labels = {"pod-group.scheduling.x-k8s.io": "pg1"}
    held = decode(manifest(labels=labels))
    assert held.defect_reason == "UnknownGangLabel"
    assert "use label scheduling.x-k8s.io/pod-group: pg1" in held.defect
    foreign = decode(manifest({"schedulerName": "default-scheduler"}, labels=labels))
    assert (foreign.defect, foreign.defect_reason, foreign.warning) == ("", "", "")


def test_a_foreign_pod_that_names_a_gang_is_known_as_its_member():
    labels = {"scheduling.x-k8s.io/pod-group": "job1", "pod-group.scheduling.sigs.k8s.io": "other"}
    foreign = decode(manifest({"schedulerName": "default-scheduler"}, labels=labels))
    assert foreign.membership.key.name == "job1"
    assert (foreign.scheduler, foreign.warning, foreign.labels) == ("default-scheduler", "", ())
    ours = decode(manifest(labels=labels))
    assert "several gangs" in ours.warning


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
    assert broken.shape == PodShape()


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


def test_pods_of_one_job_share_one_shape():
    decoder = PodDecoder(OWNED)
    shapes = set()
    for index in range(3):
        obj = manifest(
            container(cpu="1")
            | {"volumes": [{"name": f"kube-api-access-{index}", "projected": {}}]},
            uid=f"u{index}",
        )
        obj["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": str(index)}]
        shapes.add(id(decoder.decode(json.dumps(obj).encode()).pod.shape))
    assert len(shapes) == 1


def test_differently_written_pods_that_are_alike_share_one_shape():
    decoder = PodDecoder(OWNED)
    written = [container(cpu="1"), container(cpu="1000m"), container(cpu=1)]
    found = [decoder.decode(json.dumps(manifest(one)).encode()).pod.shape for one in written]
    assert found[0] is found[1] is found[2]


def test_placed_foreign_pods_are_reduced_to_what_they_take():
    pinned = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [pinned]}]}
    spec = container(cpu="1") | node_affinity(**{REQUIRED: terms})
    foreign = pod(spec | {"nodeName": "n1", "schedulerName": "default-scheduler"})
    assert foreign.shape == PodShape(requests=(("cpu", 1000),))
    assert pod(spec | {"nodeName": "n1"}).shape.required_terms is not None


def test_the_caches_are_bounded_and_forgetting_changes_nothing(monkeypatch):
    monkeypatch.setattr(pods, "SHAPES_MAX", 2)
    decoder = PodDecoder(OWNED)
    for amount in [*range(1, 8), *range(1, 8)]:
        raw = json.dumps(manifest(container(cpu=str(amount)))).encode()
        assert decoder.decode(raw).pod.shape.requests == (("cpu", amount * 1000),)


def test_a_defect_is_not_remembered_for_the_next_pod():
    decoder = PodDecoder(OWNED)
    bad = manifest(container(cpu="abc"))
    good = copy.deepcopy(bad)
    good["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    for obj, defective in ((bad, True), (good, False), (bad, True)):
        assert bool(decoder.decode(json.dumps(obj).encode()).pod.defect) is defective
