"""How a pod names its gang, which dialect wins, and what is said of labels that nobody reads."""

import pytest

from quorate.core.model import GangKey
from quorate.dialects import DIALECTS, PodFacts, by_name, near_misses, resolve

GROUP = "pod-group.scheduling.sigs.k8s.io"
NAME, MIN = f"{GROUP}/name", f"{GROUP}/min-available"
X = "scheduling.x-k8s.io/pod-group"
VOLCANO = "scheduling.k8s.io/group-name"


def facts(labels=None, annotations=None, group=""):
    return PodFacts("team-a", "worker-0", labels or {}, annotations or {}, group)


@pytest.mark.parametrize(
    ("pod", "dialect", "name", "min_count"),
    [
        (
            facts({NAME: "exp-1-trial-1", MIN: "2", "determined": "a"}),
            "coscheduler",
            "exp-1-trial-1",
            2,
        ),
        (facts({NAME: "g", MIN: "+4"}), "coscheduler", "g", 4),
        (facts({GROUP: "pg1"}), "sigs", "pg1", None),
        (facts({X: "job1", "training.kubeflow.org/job-name": "job1"}), "x-k8s", "job1", None),
        (facts({}, {VOLCANO: "job2", "volcano.sh/task-spec": "worker"}), "volcano", "job2", None),
        (facts(group="job-pgt-0"), "native", "job-pgt-0", None),
    ],
)
def test_each_dialect_finds_its_gang_in_the_pods_namespace(pod, dialect, name, min_count):
    said = resolve(pod)
    assert said.membership is not None
    named = said.membership.key, said.membership.min_count
    assert named == (GangKey("team-a", dialect, name), min_count)
    assert (said.warning, said.defect) == ("", "")
    assert by_name(dialect).membership(pod) == said.membership


def test_dialects_stand_in_the_order_in_which_they_win():
    assert [one.name for one in DIALECTS] == ["coscheduler", "x-k8s", "sigs", "volcano", "native"]
    assert by_name("pod") is None


@pytest.mark.parametrize(
    ("labels", "warned_of"),
    [
        ({NAME: "cpu-task", MIN: "0"}, ""),  # Determined's way of saying "no gang"
        ({NAME: "g", MIN: "-3"}, ""),
        ({MIN: "0"}, ""),
        ({NAME: "g", MIN: "two"}, '"two"'),
        ({NAME: "g", MIN: "2.0"}, "whole number"),
        ({NAME: "g", MIN: "2_0"}, "whole number"),
        ({NAME: "g", MIN: "٣"}, "whole number"),
        ({NAME: "g", MIN: " 2"}, "whole number"),
        ({NAME: "g", MIN: "2147483648"}, "larger than 2147483647"),
        ({NAME: "g", MIN: "9" * 63}, "larger than 2147483647"),
        ({NAME: "g"}, "no label pod-group.scheduling.sigs.k8s.io/min-available"),
        ({NAME: "g", MIN: ""}, "no label pod-group.scheduling.sigs.k8s.io/min-available"),
        ({MIN: "2"}, "no label pod-group.scheduling.sigs.k8s.io/name"),
        ({NAME: "", MIN: "2"}, "no label pod-group.scheduling.sigs.k8s.io/name"),
        ({X: ""}, "is empty"),
    ],
)
def test_a_pod_without_a_usable_pair_is_an_ordinary_pod(labels, warned_of):
    said = resolve(facts(labels))
    assert said.membership is None
    assert said.defect == ""
    assert warned_of in said.warning
    assert bool(said.warning) == bool(warned_of)


def test_two_dialects_on_one_pod_are_named_and_the_first_counts():
    said = resolve(facts({GROUP: "old", X: "new"}, {VOLCANO: "v"}))
    assert said.membership.key == GangKey("team-a", "x-k8s", "new")
    assert said.defect == ""
    for part in ('"new" by label scheduling.x-k8s.io/pod-group, which counts', '"old"', '"v"'):
        assert part in said.warning


def test_a_min_of_zero_leaves_the_word_to_the_next_dialect():
    assert resolve(facts({NAME: "g", MIN: "0", X: "job"})).membership.key.dialect == "x-k8s"


NEAR_MISSES = [
    ({}, {"pod-group.scheduling.x-k8s.io": "pg1"}, f"label {X}: pg1"),
    ({"pod-group.scheduling.x-k8s.io/name": "pg1"}, {}, f"label {NAME}: pg1"),
    ({"scheduling.sigs.k8s.io/pod-group": "pg1"}, {}, f"label {GROUP}: pg1"),
    ({"scheduling.sigs.k8s.io/podgroup": "pg1"}, {}, f"label {GROUP}: pg1"),
    ({"scheduling.x-k8s.io/podgroup": "pg1"}, {}, f"label {X}: pg1"),
    ({"scheduling.x-k8s.io/Pod_Group-name": "pg1"}, {}, f"label {X}: pg1"),
    ({"pod-group.scheduling.sig.k8s.io": "pg1"}, {}, f"label {X}: pg1"),
    ({VOLCANO: "pg1"}, {}, f"annotation {VOLCANO}: pg1"),
    ({"scheduling.volcano.sh/group-name": "pg1"}, {}, f"annotation {VOLCANO}: pg1"),
    ({}, {"scheduling.volcano.sh/group-name": "pg1"}, f"annotation {VOLCANO}: pg1"),
    ({}, {X: "pg1"}, f"label {X}: pg1"),
    ({}, {GROUP: "pg1"}, f"label {GROUP}: pg1"),
    ({}, {NAME: "pg1", MIN: "2"}, f"label {NAME}: pg1"),
]
KOORDINATORS = "gang.scheduling.koordinator.sh/name"


@pytest.mark.parametrize(("labels", "annotations", "use"), NEAR_MISSES)
def test_a_key_that_looks_like_a_gangs_and_that_nobody_reads_holds_the_pod(
    labels, annotations, use
):
    said = resolve(facts(labels, annotations))
    assert said.membership is None
    assert said.defect_reason == "UnknownGangLabel"
    assert "is read by no scheduler; use " in said.defect
    assert use in said.defect


def test_the_sentence_names_the_wrong_label_and_the_right_one():
    assert resolve(facts({"scheduling.x-k8s.io/podgroup": "pg1"})).defect == (
        "label scheduling.x-k8s.io/podgroup is read by no scheduler; "
        "use label scheduling.x-k8s.io/pod-group: pg1"
    )


def test_the_annotation_of_koordinator_holds_the_pod_and_names_the_labels_to_use():
    """Pods of our schedulerName with Koordinator's annotations started one by one."""
    said = resolve(facts({}, {KOORDINATORS: "pg1", KOORDINATORS.replace("name", "mode"): "Strict"}))
    assert said.membership is None
    assert said.defect_reason == "UnknownGangLabel"
    assert said.defect == (
        f"annotation {KOORDINATORS} is Koordinator's, and quorate does not read it; use label "
        f"{NAME}: pg1 together with label {MIN}"
    )


@pytest.mark.parametrize(
    ("labels", "annotations", "dialect", "words"),
    [
        ({}, {X: "pg1"}, "x-k8s", f"annotation {X} is read by no scheduler"),
        ({"scheduling.x-k8s.io/podgroup": "pg1"}, {}, "x-k8s", "is read by no scheduler"),
        ({}, {KOORDINATORS: "pg1"}, "coscheduler", "Koordinator's, and quorate does not read it"),
    ],
)
def test_a_pod_that_names_its_gang_in_vain_knows_which_one_it_meant(
    labels, annotations, dialect, words
):
    """So that whoever asks for the gang is told of the pod."""
    said = resolve(facts(labels, annotations))
    assert said.meant.gang == GangKey("team-a", dialect, "pg1")
    assert words in said.meant.words
    assert said.defect.startswith(f"{said.meant.words}; use ")
    assert resolve(facts({X: "pg1"})).meant is None


@pytest.mark.parametrize(
    ("labels", "annotations", "place", "use"),
    [
        ({X: "pg1"}, {}, f"label {X}", f"label {X}: pg1"),
        ({"pod-group.scheduling.x-k8s.io": "pg1"}, {}, "label pod-group", f"label {X}: pg1"),
        ({NAME: "pg1", MIN: "2"}, {}, f"label {NAME}", f"{NAME}: pg1 together with label {MIN}"),
        ({}, {VOLCANO: "pg1"}, f"annotation {VOLCANO}", f"annotation {VOLCANO}: pg1"),
        ({}, {X: "pg1"}, f"annotation {X}", f"label {X}: pg1"),
        ({}, {KOORDINATORS: "pg1"}, f"annotation {KOORDINATORS}", f"label {NAME}: pg1"),
    ],
)
def test_a_gang_that_is_named_on_the_owner_of_the_pods_is_meant_for_its_pods(
    labels, annotations, place, use
):
    """The label on the Job, where the template should have it."""
    _, meant, remedy = near_misses.of_owner("Job d", "team-a", labels, annotations)
    assert meant.gang.name == "pg1"
    assert meant.words.startswith(place)
    assert "of Job d is" in meant.words
    assert remedy.startswith("use ")
    assert use in remedy
    assert remedy.endswith(" in its pod template")


@pytest.mark.parametrize(
    "labels", [{}, {X: ""}, {"app": "web"}, {MIN: "2"}, {"scheduling.acme.io/podgroup": "g"}]
)
def test_an_owner_without_the_name_of_a_gang_means_none(labels):
    """What merely looks like a gang's key counts on pods alone."""
    assert near_misses.of_owner("Job d", "team-a", labels, {}) is None


OTHER_X = "pod-group.scheduling.x-k8s.io"


def test_the_second_spelling_of_the_label_names_the_gang_and_is_told_the_current_key():
    """The seeds' second spelling names a PodGroup of scheduling.x-k8s.io, with a note."""
    said = resolve(facts({OTHER_X: "pg1"}))
    assert said.membership.key == GangKey("team-a", "x-k8s", "pg1")
    assert said.defect == ""
    assert said.warning == said.note
    assert said.note == (
        f"label {OTHER_X} is read as label {X}, which is the current key; use that one"
    )


@pytest.mark.parametrize(("other", "note"), [("pg1", ""), ("pg2", "does not count beside")])
def test_the_current_key_wins_over_the_second_spelling(other, note):
    said = resolve(facts({X: "pg1", OTHER_X: other}))
    assert said.membership.key.name == "pg1"
    assert note in said.note
    assert bool(said.note) == bool(note)


@pytest.mark.parametrize(("labels", "annotations", "use"), NEAR_MISSES)
def test_a_near_miss_beside_a_valid_name_is_nobodys_business(labels, annotations, use):
    del use
    assert resolve(facts(labels, annotations, group="real")).defect == ""


@pytest.mark.parametrize(
    "pod",
    [
        facts({"app": "web", "pod-template-hash": "abc"}),
        facts({"kueue.x-k8s.io/pod-group-name": "g"}),
        facts({"gang.scheduling.koordinator.sh/name": "g"}),
        facts({}, {"gang.scheduling.koordinator.sh/min-available": "2"}),
        facts({"pod-group.scheduling.koordinator.sh": "g"}),
        facts({}, {"scheduling.volcano.sh/group-min-member": "2"}),
        facts({}, {"scheduling.volcano.sh/queue-name": "default"}),
        facts({}, {"pod-group-name": "kai"}),
        facts({"leaderworkerset.sigs.k8s.io/group-index": "0"}),
        facts({"acme.io/scheduling-group-name": "g"}),
        facts({"security-group": "x"}, {"yunikorn.apache.org/task-groups": "[]"}),
    ],
)
def test_labels_that_mean_something_else_mean_nothing_here(pod):
    assert resolve(pod) == resolve(facts())


BAD_NAMES = ["Train_A", "victim@x", "a\x1b[2J", "-a", "a-", "a..b", "a/b", "ä", "a" * 254, "a b"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize(
    ("facts_of", "field"),
    [
        (lambda name: facts({X: name}), f"label {X}"),
        (lambda name: facts({GROUP: name}), f"label {GROUP}"),
        (lambda name: facts({}, {VOLCANO: name}), f"annotation {VOLCANO}"),
        (lambda name: facts({}, group=name), "field spec.schedulingGroup.podGroupName"),
    ],
    ids=["x-k8s", "sigs", "volcano", "native"],
)
def test_a_name_that_no_object_can_have_is_a_defect_of_the_pod_and_no_gang(facts_of, field, name):
    said = resolve(facts_of(name))
    assert said.membership is None
    assert said.defect_reason == "GangNameInvalid"
    assert said.defect.startswith(f'{field} is "')
    assert "write the name of one: at most 253 lower-case letters" in said.defect
    assert said.defect.isprintable()
    assert len(said.defect) < 400


@pytest.mark.parametrize("name", ["a", "a-b.c-1", "0", "a" * 253])
def test_every_name_that_an_object_can_have_is_a_gangs(name):
    assert resolve(facts({X: name})).membership.key.name == name


@pytest.mark.parametrize(("name", "ok"), [("Train_A.1", True), ("a" * 64, False), ("a@b", False)])
def test_a_gang_of_labels_alone_has_no_object_and_may_have_any_value_of_a_label(name, ok):
    said = resolve(facts({NAME: name, MIN: "2"}))
    assert bool(said.membership) is ok
    assert (said.defect_reason == "GangNameInvalid") is not ok


def test_a_name_that_does_not_count_is_shown_plain():
    said = resolve(facts({X: "job"}, {VOLCANO: "a\x1b[2J" + "x" * 100_000}))
    assert said.membership.key.name == "job"
    assert said.warning.isprintable()
    assert len(said.warning) < 400
