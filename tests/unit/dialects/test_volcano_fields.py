"""Fields of Volcano's PodGroup that decide what may start: each counts, or it is said that not."""

import json

import pytest

from quorate.core.model import GangKey, Membership, policy
from quorate.dialects import PodFacts, resolve, volcano
from quorate.dialects.common.hold_time import HOLD_SECONDS, with_hold_time

GROUP = volcano.ANNOTATION


def spec_of(annotations=None, **spec):
    metadata = {"namespace": "n", "name": "g", "uid": "u", "annotations": annotations or {}}
    raw = json.dumps({"metadata": metadata, "spec": spec}).encode()
    return with_hold_time(volcano.DIALECT.object.decode(raw), raw)


@pytest.mark.parametrize(
    ("labels", "annotations", "task"),
    [
        ({}, {"volcano.sh/task-spec": "worker"}, "worker"),
        ({"volcano.sh/task-spec": "worker"}, {}, "worker"),
        ({"volcano.sh/task-spec": "label"}, {"volcano.sh/task-spec": "annotation"}, "annotation"),
        ({}, {}, ""),
    ],
)
def test_a_pod_names_its_task_in_an_annotation_or_else_in_a_label(labels, annotations, task):
    said = resolve(PodFacts("n", "p", labels, annotations | {GROUP: "g"}))
    assert said.membership == Membership(GangKey("n", "volcano", "g"), task=task)


@pytest.mark.parametrize(
    ("least", "min_member", "counts"),
    [
        ({"master": 1, "worker": 4}, 5, (("master", 1), ("worker", 4))),
        ({"worker": 4, "master": 1}, 7, (("master", 1), ("worker", 4))),
        ({"master": 1, "worker": 0}, 3, (("master", 1),)),
        ({}, 3, ()),
        (None, 3, ()),
    ],
)
def test_the_minimum_of_each_task_counts_where_min_member_is_no_less_than_their_sum(
    least, min_member, counts
):
    spec = spec_of(minMember=min_member, minTaskMember=least)
    assert (spec.min_by_task, spec.min_count) == (counts, min_member)
    assert (spec.defect, spec.warning) == ("", "")


@pytest.mark.parametrize("min_member", [4, 0, None])
def test_a_min_member_below_their_sum_counts_alone_and_says_so(min_member):
    spec = {"minTaskMember": {"master": 1, "worker": 4}}
    spec |= {} if min_member is None else {"minMember": min_member}
    decoded = spec_of(**spec)
    assert (decoded.min_by_task, decoded.defect) == ((), "")
    assert decoded.warning == (
        f"spec.minTaskMember adds up to 5, which is more than spec.minMember {min_member or 0}: "
        "as in Volcano, minMember alone counts then"
    )


def test_of_what_volcanos_controller_writes_for_its_jobs_nobody_is_warned():
    """A Job that needs 3 of its 4 pods has this group, and every such Job had a warning."""
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u"}
    metadata = {"namespace": "n", "name": "g", "ownerReferences": [{**job, "controller": True}]}
    spec = {"minMember": 3, "minTaskMember": {"worker": 4}}
    raw = json.dumps({"metadata": metadata, "spec": spec}).encode()
    decoded = volcano.DIALECT.object.decode(raw)
    assert (decoded.min_by_task, decoded.min_count, decoded.warning) == ((), 3, "")


@pytest.mark.parametrize(
    ("annotations", "warning"),
    [
        ({"sla-waiting-time": "1h"}, "annotation sla-waiting-time is not looked at"),
        (
            {"volcano.sh/preemptable": "false", "volcano.sh/jdb-min-available": "50%"},
            "annotations volcano.sh/preemptable and volcano.sh/jdb-min-available are not looked at",
        ),
        ({"volcano.sh/preemptable": "true", "volcano.sh/task-spec": "worker"}, ""),
        ([], ""),
    ],
)
def test_an_annotation_that_would_count_in_volcano_and_does_not_here_is_said(annotations, warning):
    decoded = spec_of(annotations, minMember=2)
    assert (decoded.warning, decoded.defect) == (warning, "")


@pytest.mark.parametrize(
    ("spec", "defect"),
    [
        ({"minTaskMember": ["master"]}, "spec.minTaskMember: ['master'] is not an object"),
        ({"minTaskMember": {"master": "1"}}, 'spec.minTaskMember.master: "1" is not a whole'),
        ({"minTaskMember": {"master": -1}}, "spec.minTaskMember.master: -1 is too small"),
        ({"minTaskMember": {"master": None}}, "spec.minTaskMember.master: null is not"),
        ({"networkTopology": {"mode": "hard"}}, "spec.networkTopology.mode: hard cannot be kept"),
        (
            {"networkTopology": {"highestTierAllowed": 1}},
            "spec.networkTopology.mode: hard cannot be kept",
        ),
        ({"networkTopology": {}}, "spec.networkTopology.mode: hard cannot be kept"),
        (
            {"networkTopology": {"mode": "loose"}},
            'spec.networkTopology.mode: "loose" is neither hard nor soft; write soft',
        ),
        ({"networkTopology": "hard"}, 'spec.networkTopology: "hard" is not an object'),
        ({"subGroupPolicy": [{"name": "x"}]}, "spec.subGroupPolicy: it cannot be kept"),
        ({"subGroupPolicy": "x"}, "spec.subGroupPolicy: it cannot be kept"),
        ({"priorityClassName": 7}, "spec.priorityClassName: 7 is not a name; write one"),
    ],
)
def test_what_cannot_be_kept_is_a_defect_that_names_the_field_and_a_remedy(spec, defect):
    decoded = spec_of(minMember=5, **spec)
    assert decoded.defect.startswith(defect)
    assert "; " in decoded.defect


def test_a_soft_topology_is_a_warning():
    decoded = spec_of(minMember=2, networkTopology={"mode": "soft", "highestTierAllowed": 1})
    assert decoded.defect == ""
    assert decoded.warning.startswith("spec.networkTopology is soft and not looked at")


@pytest.mark.parametrize("spec", [{"networkTopology": None}, {"subGroupPolicy": []}, {}])
def test_what_is_not_set_is_not_spoken_of(spec):
    decoded = spec_of(minMember=2, **spec)
    assert (decoded.defect, decoded.warning) == ("", "")


def test_the_priority_class_is_known_to_whoever_compares_it_with_the_members():
    assert spec_of(minMember=2, priorityClassName="high").priority_class == "high"


def test_a_warning_about_the_spec_and_one_about_an_annotation_are_both_said():
    decoded = spec_of({HOLD_SECONDS: "5m"}, minMember=2, networkTopology={"mode": "soft"})
    assert decoded.warning.startswith("spec.networkTopology is soft")
    assert f'; annotation {HOLD_SECONDS} is "5m"' in decoded.warning


@pytest.mark.parametrize(("tasks", "is_usable"), [(2, True), (3, True), (4, False)])
def test_tasks_with_a_minimum_are_bounded(tasks, is_usable, monkeypatch):
    monkeypatch.setattr(policy, "TASKS_PER_GANG_MAX", 3)
    decoded = spec_of(minMember=9, minTaskMember={f"t{i}": 1 for i in range(tasks)})
    assert (decoded.defect == "") is is_usable
    assert is_usable or "spec.minTaskMember: 4 tasks are too many; write 3" in decoded.defect


@pytest.mark.parametrize(("names", "is_usable"), [(2, True), (3, True), (4, False)])
def test_resources_of_min_resources_are_bounded(names, is_usable, monkeypatch):
    monkeypatch.setattr(policy, "RESOURCES_PER_POD_MAX", 3)
    wanted = {f"example.com/r{i}": 1 for i in range(names)}
    decoded = spec_of(minMember=1, minResources=wanted | {"requests.cpu": 1, "count/pods": 2})
    assert (decoded.defect == "") is is_usable
    assert is_usable or "spec.minResources: 4 resources are too many" in decoded.defect


@pytest.mark.parametrize(
    ("status", "admitted", "answered"),
    [
        ({"phase": "Inqueue"}, True, True),
        ({"phase": "Completed"}, True, True),
        ({"phase": "Pending"}, False, False),
        ({"phase": "Pending", "conditions": [{"type": "Unschedulable"}]}, False, True),
        ({"phase": "Pending", "conditions": []}, False, False),
        ({}, False, False),
        ({"phase": 3}, False, False),
        ("none", False, False),
    ],
)
def test_the_status_says_whether_the_group_was_admitted_and_whether_a_scheduler_wrote_it(
    status, admitted, answered
):
    metadata = {"namespace": "n", "name": "g", "uid": "u"}
    raw = json.dumps({"metadata": metadata, "spec": {"minMember": 1}, "status": status}).encode()
    spec = volcano.DIALECT.object.decode(raw)
    assert (spec.admitted, spec.unanswered_by) == (admitted, "" if answered else "volcano")
