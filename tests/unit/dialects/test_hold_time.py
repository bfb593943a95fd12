"""How long room is held: what the annotation may say, on objects and on pods."""

import json

import pytest

from quorate.dialects import resolve
from quorate.dialects.base import PodFacts
from quorate.dialects.common.hold_time import FOR_NOBODY, HOLD_SECONDS
from quorate.shell.watch.objects import watched_kinds
from tests.unit.shell.decoded import pod

X_K8S = {"scheduling.x-k8s.io/pod-group": "g"}
GOOD = [("0", 0.0), ("300", 300.0), ("0.5", 0.5), ("86400", 86400.0), ("007", 7.0)]
BAD = ["", "5m", "-1", "86401", "1e3", "nan", "inf", " 5", "5 ", "٣", "1" * 400, "1.", ".5", "0x10"]


def pod_with(annotations, labels=X_K8S):
    return resolve(PodFacts("ns", "p", labels, annotations))


def group_with(metadata_more, min_member=2):
    metadata = {"name": "g", "namespace": "ns", "uid": "u", **metadata_more}
    raw = json.dumps({"metadata": metadata, "spec": {"minMember": min_member}}).encode()
    (kind,) = [kind for kind in watched_kinds(frozenset()).values() if kind.dialect == "x-k8s"]
    return kind.changed(raw).spec


@pytest.mark.parametrize(("written", "seconds"), GOOD)
def test_seconds_are_read_from_pods_and_objects(written, seconds):
    said = pod_with({HOLD_SECONDS: written})
    assert (said.hold_s, said.warning) == (seconds, "")
    spec = group_with({"annotations": {HOLD_SECONDS: written}})
    assert (spec.hold_s, spec.warning, spec.defect) == (seconds, "", "")


@pytest.mark.parametrize("written", BAD)
def test_anything_else_is_warned_of_and_counts_for_nothing(written):
    said = pod_with({HOLD_SECONDS: written})
    spec = group_with({"annotations": {HOLD_SECONDS: written}})
    for warned in (said, spec):
        assert warned.hold_s is None
        assert f'"{written[:63]}", which is no number of seconds' in warned.warning
        assert not warned.defect
    assert spec.min_count == 2


@pytest.mark.parametrize("annotations", [None, {}, {"other": HOLD_SECONDS}, [HOLD_SECONDS], 7])
def test_an_object_without_the_annotation_says_nothing(annotations):
    spec = group_with({"annotations": annotations, "labels": {HOLD_SECONDS: "9"}})
    assert (spec.hold_s, spec.warning) == (None, "")


def test_a_pod_of_no_gang_is_not_asked():
    assert pod_with({HOLD_SECONDS: "x"}, labels={}).warning == ""


def test_the_pod_that_the_core_sees_has_it():
    assert pod(labels=X_K8S, annotations={HOLD_SECONDS: "30"}).hold_s == 30.0


@pytest.mark.parametrize(
    ("written", "controller", "warns"),
    [("30", False, True), ("30", True, False), ("0", False, False), (None, False, False)],
)
def test_a_length_on_a_pod_that_nobody_would_make_again_is_warned_of(written, controller, warns):
    owner = {"apiVersion": "v1", "kind": "Thing", "name": "o", "controller": controller}
    annotations = {HOLD_SECONDS: written} if written is not None else {}
    found = pod(labels=X_K8S, annotations=annotations, ownerReferences=[owner])
    assert found.warning == (FOR_NOBODY if warns else "")
