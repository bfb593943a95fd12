"""What objects of each API say of their gang: real clients' shapes, and broken ones."""

import json

import pytest
import yaml

from quorate.core.model import GangKey, Owner
from quorate.dialects import Malformed, by_name

GI = 2**30


def gang(dialect, manifest, **metadata):
    obj = yaml.safe_load(manifest) if isinstance(manifest, str) else manifest
    obj["metadata"] = {"namespace": "team-a", "uid": "u1", **obj.get("metadata", {}), **metadata}
    return by_name(dialect).object.decode(json.dumps(obj).encode())


def spec_of(dialect, **spec):
    return gang(dialect, {"metadata": {"name": "g"}, "spec": spec})


def test_cw_coscheduler_pod_group():
    spec = gang(
        "sigs",
        """
        apiVersion: scheduling.sigs.k8s.io/v1alpha1
        kind: PodGroup
        metadata: {name: pg1, creationTimestamp: "1970-01-01T00:01:00Z"}
        spec: {scheduleTimeoutSeconds: 60, minMember: 4}
        """,
    )
    assert spec.key == GangKey("team-a", "sigs", "pg1")
    assert (spec.min_count, spec.timeout_s, spec.uid, spec.created_s) == (4, 60.0, "u1", 60.0)
    assert (spec.defect, spec.owner) == ("", None)


def test_training_operator_pod_group_has_an_owner_and_min_resources():
    spec = gang(
        "x-k8s",
        """
        apiVersion: scheduling.x-k8s.io/v1alpha1
        kind: PodGroup
        metadata: {name: job1, ownerReferences: [
          {apiVersion: v1, kind: Other, name: first},
          {apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: job1, controller: true}]}
        spec: {minMember: 4, minResources: {nvidia.com/gpu: "32"}}
        """,
    )
    assert spec.owner == Owner("kubeflow.org/v1", "PyTorchJob", "job1")
    assert spec.min_resources == (("nvidia.com/gpu", 32),)
    assert (spec.min_count, spec.timeout_s, spec.defect) == (4, None, "")


def test_mpi_operator_pod_group_with_timeout_zero_takes_the_default():
    spec = spec_of("x-k8s", minMember=3, scheduleTimeoutSeconds=0, minResources={"cpu": "5"})
    assert (spec.min_count, spec.timeout_s, spec.min_resources) == (3, None, (("cpu", 5000),))


def test_volcano_pod_groups_of_training_operator_kuberay_and_spark():
    job = spec_of("volcano", minMember=4, queue="default", minResources={"nvidia.com/gpu": 32})
    assert (job.min_count, job.queue, job.min_resources) == (
        4,
        "default",
        (("nvidia.com/gpu", 32),),
    )
    ended = spec_of("volcano", minMember=0, minResources={})
    assert (ended.min_count, ended.min_resources, ended.defect) == (0, (), "")
    spark = spec_of("volcano", minMember=1, minResources={"cpu": "33", "memory": "132Gi"})
    assert spark.min_resources == (("cpu", 33000), ("memory", 132 * GI))


def test_names_of_quotas_in_min_resources_are_skipped_as_volcano_does():
    wanted = {"cpu": "2", "requests.cpu": "2", "limits.cpu": "4", "count/pods": "2", "pods": "2"}
    spec = spec_of("volcano", minResources=wanted | {"requests.nvidia.com/gpu": "1"})
    assert spec.min_resources == (("cpu", 2000), ("pods", 2))


def test_native_policies():
    gang_policy = {"gang": {"minCount": 4}}
    assert spec_of("native", schedulingPolicy=gang_policy).min_count == 4
    assert spec_of("native", schedulingPolicy={"basic": {}}).min_count == 0
    assert spec_of("native", schedulingPolicy=gang_policy).defect == ""


@pytest.mark.parametrize(
    ("dialect", "spec", "min_count"),
    [
        ("sigs", {}, 0),
        ("sigs", {"minMember": 0}, 0),
        ("sigs", {"minMember": -2}, 0),  # storable: the old CRD has no minimum
        ("x-k8s", {}, 0),
        ("x-k8s", {"minMember": 0}, 0),
        ("volcano", {}, 0),
        ("volcano", {"minMember": 0}, 0),
        ("volcano", None, 0),
        ("x-k8s", None, 0),
        ("sigs", {"minMember": 2**31 - 1}, 2**31 - 1),
    ],
)
def test_an_absent_or_zero_min_follows_each_apis_own_rule(dialect, spec, min_count):
    decoded = gang(dialect, {"metadata": {"name": "g"}, "spec": spec})
    assert (decoded.min_count, decoded.defect) == (min_count, "")


BAD = [
    ({"minMember": "two"}, 'spec.minMember: "two" is not a whole number'),
    ({"minMember": "4"}, "spec.minMember"),
    ({"minMember": None}, "spec.minMember: null"),
    ({"minMember": True}, "spec.minMember"),
    ({"minMember": 4.5}, "spec.minMember"),
    ({"minMember": 2**31}, "spec.minMember: 2147483648 is too large"),
    ({"minMember": 10**40}, "too large"),
    ({"minMember": [4]}, "spec.minMember"),
    ({"minResources": {"cpu": "lots"}}, "spec.minResources.cpu: 'lots' is not a quantity"),
    ({"minResources": {"cpu": "-1"}}, "negative"),
    ({"minResources": {"memory": "1e300"}}, "larger than any machine"),
    ({"minResources": {"cpu": None}}, "spec.minResources.cpu: null"),
    ({"minResources": ["cpu"]}, "spec.minResources"),
]


@pytest.mark.parametrize("dialect", ["x-k8s", "sigs", "volcano"])
@pytest.mark.parametrize(("spec", "named"), BAD)
def test_a_bad_field_makes_a_gang_with_a_defect_that_names_it(dialect, spec, named):
    decoded = spec_of(dialect, **spec)
    assert named in decoded.defect
    assert decoded.key == GangKey("team-a", dialect, "g")
    assert (decoded.uid, len(decoded.defect) < 300) == ("u1", True)


@pytest.mark.parametrize(
    ("dialect", "spec", "named"),
    [
        ("x-k8s", {"minMember": -1}, "spec.minMember: -1 is too small; write 0 or more"),
        ("volcano", {"minMember": -1}, "spec.minMember: -1 is too small"),
        ("volcano", {"queue": 7}, "spec.queue"),
        ("x-k8s", {"scheduleTimeoutSeconds": "60"}, "spec.scheduleTimeoutSeconds"),
        ("sigs", {"scheduleTimeoutSeconds": 10**12}, "spec.scheduleTimeoutSeconds"),
        ("native", {}, "neither gang nor basic"),
        ("native", {"schedulingPolicy": {"gang": {"minCount": 1}, "basic": {}}}, "both gang and"),
        ("native", {"schedulingPolicy": {"gang": {}}}, "minCount: missing"),
        ("native", {"schedulingPolicy": {"gang": {"minCount": 0}}}, "too small; write 1"),
        ("native", {"schedulingPolicy": {"gang": {"minCount": None}}}, "minCount: null"),
        ("native", {"schedulingPolicy": "gang"}, "spec.schedulingPolicy"),
        (
            "native",
            {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{}]}},
            "spec.schedulingConstraints.topology: it cannot be kept",
        ),
    ],
)
def test_what_one_api_refuses_is_a_defect(dialect, spec, named):
    assert named in spec_of(dialect, **spec).defect


@pytest.mark.parametrize("dialect", ["x-k8s", "sigs"])
def test_null_and_negative_timeouts_mean_the_default(dialect):
    assert spec_of(dialect, scheduleTimeoutSeconds=None).timeout_s is None
    assert spec_of(dialect, scheduleTimeoutSeconds=-5).timeout_s is None
    assert spec_of(dialect, scheduleTimeoutSeconds=None).defect == ""


def test_a_spec_that_is_no_object_is_a_defect():
    decoded = gang("x-k8s", {"metadata": {"name": "g"}, "spec": "four"})
    assert decoded.defect.startswith('spec: "four" is not an object')


@pytest.mark.parametrize(
    ("raw", "known"),
    [
        (b"", ("", "", "")),
        (b"[" * 5000, ("", "", "")),
        (b"[1]", ("", "", "")),
        (b'{"metadata": null}', ("", "", "")),
        (b'{"metadata": {"namespace": "a", "uid": "u"}}', ("a", "", "u")),
        (b'{"metadata": {"namespace": "a", "name": 4, "uid": "u"}}', ("a", "", "u")),
        (b'{"metadata": {"namespace": "a", "name": "g", "uid": 4}}', ("a", "g", "")),
    ],
)
@pytest.mark.parametrize("dialect", ["x-k8s", "sigs", "volcano", "native"])
def test_an_object_without_identity_is_malformed_and_what_is_known_is_kept(dialect, raw, known):
    with pytest.raises(Malformed) as caught:
        by_name(dialect).object.decode(raw)
    assert (caught.value.namespace, caught.value.name, caught.value.uid) == known


def test_the_label_dialect_has_no_objects():
    assert by_name("coscheduler").object is None
    assert by_name("coscheduler").resource is None
