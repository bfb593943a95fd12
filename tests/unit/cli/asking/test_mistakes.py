"""Goal: a gang whose pods are there under another label, name, namespace or scheduler says so.

Method: the command line in this process, against a server that answers by path over real HTTP.
"""

import json

import pytest

from tests.unit.cli.api_server import (
    NODES,
    PODS,
    X_GROUPS,
    group,
    kubeconfig,
    listing,
    node,
    pod,
    serving,
    small_cluster,
)
from tools.testing import call

LABEL = "scheduling.x-k8s.io/pod-group"
MISSPELT = "scheduling.x-k8s.io/podgroup"
KOORDINATORS = "gang.scheduling.koordinator.sh/name"


def pods(name, count, *, label=LABEL, scheduler="quorate", gang=None, job=None):
    known = {"labels": {label: gang or name}, "scheduler": scheduler}
    made = [pod(f"{name}-{number}", **known) for number in range(count)]
    if job:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "controller": True}
        for one in made:
            one["metadata"]["ownerReferences"] = [{**owner, "uid": "u"}]
    return made


def answered(pods):
    """Pods of which their scheduler has said that they cannot be placed."""
    for one in pods:
        one["status"] = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    return pods


def annotated(name, count, key, *, gang=None):
    """Pods of a Job of their name that name a gang in an annotation."""
    made = pods(name, count, job=name)
    for one in made:
        one["metadata"] |= {"labels": {}, "annotations": {key: gang or name}}
    return made


def cluster_of_mistakes():
    server = small_cluster()
    server.answers |= {
        NODES: listing(node("n1", cpu="99")),
        PODS: listing(
            *answered(pods("defsched", 4, scheduler="default-scheduler", job="defsched")),
            *answered(pods("others", 2, scheduler="another-scheduler")),
            *pods("nobodys", 2, scheduler="nobodys"),
            *pods("typo", 4, label=MISSPELT, job="typo"),
            *pods("both", 4, label=MISSPELT, scheduler="default-scheduler"),
            *annotated("placed", 4, LABEL),
            *annotated("onjob", 4, "some.org/annotation"),
            *annotated("elsewhere", 2, KOORDINATORS, gang="koord"),
            *pods("wrongns", 2),
            *pods("typo-2", 3),
            *pods("astray", 1),
        ),
        X_GROUPS: listing(
            *(
                group(name, 4)
                for name in ("defsched", "others", "typo", "both", "typo2", "placed", "onjob")
            ),
            group("nobodys", 2),
            group("wrongns", 2, namespace="other"),
            group("astray", 1, namespace="other"),
        ),
    }
    labelled = {"metadata": {"name": "onjob", "labels": {LABEL: "onjob"}}, "spec": {}}
    server.answers["/apis/batch/v1/namespaces/team/jobs/onjob"] = (200, labelled)
    return server.tell()


@pytest.fixture(scope="module")
def cluster():
    with serving(cluster_of_mistakes()) as server:
        yield server


@pytest.fixture
def why(quorate):
    def run(name):
        code, out, err = quorate("why", name, "-o", "json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        return found["message"], found["hint"]

    return run


def test_members_of_another_scheduler_are_told_by_its_name(why):
    """It said "0 of 4 members exist; Job defsched makes 4", and nothing of schedulerName."""
    message, hint = why("defsched")
    assert message == (
        "4 pods have schedulerName default-scheduler; quorate does not own that name"
    )
    assert hint == "set schedulerName: quorate in the template of Job defsched"


def test_gangs_that_another_scheduler_leaves_lying_are_listed_and_those_that_it_answers_are_not(
    cluster, tmp_path, capsys
):
    """The gang was absent from ``quorate gangs -A``."""
    config = kubeconfig(tmp_path, cluster.url, namespace="team")
    assert call("gangs", "--kubeconfig", config) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name, minimum in (("defsched", "4"), ("nobodys", "2")):
        (found,) = [row for row in rows if row[0] == name]
        assert found[1:4] == ["Waiting", f"0/{minimum}", minimum]
        assert found[-1] == "OtherScheduler"
    assert "others" not in [row[0] for row in rows]


def test_a_misspelt_label_is_told_with_the_pods_that_carry_it(why):
    """It said "create the other 4", though 4 pods have the misspelt label."""
    message, hint = why("gang/typo")
    assert message == (
        f"0 of 4 members exist; 4 pods are meant for it: label {MISSPELT} is read by no scheduler"
    )
    assert hint == f"use label {LABEL}: typo in the template of Job typo"


def test_a_misspelt_label_and_the_wrong_scheduler_are_told_together(why):
    """To mend one of the two alone would start nothing."""
    message, hint = why("gang/both")
    assert message == (
        f"0 of 4 members exist; 4 pods are meant for it: label {MISSPELT} is read by no scheduler; "
        "schedulerName is default-scheduler"
    )
    assert hint == (
        f"use label {LABEL}: both, and schedulerName: quorate in the template of pods such as "
        "both-0"
    )


def test_an_annotation_in_the_place_of_the_label_is_told_with_its_pods(why):
    """The pods were held back, and ``why`` of their gang said "create the other 4"."""
    message, hint = why("gang/placed")
    assert message == (
        f"0 of 4 members exist; 4 pods are meant for it: annotation {LABEL} is read by no scheduler"
    )
    assert hint == f"use label {LABEL}: placed in the template of Job placed"


def test_pods_with_the_annotations_of_koordinator_are_found_by_the_gang_that_they_mean(quorate):
    """No object has that name, and their Job has another."""
    code, out, err = quorate("why", "koord", "-o", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)["items"]
    assert {one["reason"] for one in found} == {"UnknownGangLabel"}
    assert [one["metadata"]["name"] for one in found] == ["elsewhere-0", "elsewhere-1"]
    for one in found:
        assert one["message"].startswith(f"annotation {KOORDINATORS} is Koordinator's, and quorate")


def test_pods_whose_job_names_the_gang_are_told_with_the_place(why):
    """It said "create the other 4", though 4 pods waited, whose Job has the gang's label."""
    message, hint = why("gang/onjob")
    assert message == (
        f"0 of 4 members exist; 4 pods are meant for it: label {LABEL} of Job onjob is read by no "
        "scheduler"
    )
    assert hint == f"use label {LABEL}: onjob in the template of Job onjob"
    message, hint = why("pod/onjob-0")
    assert message == (
        f"label {LABEL} of Job onjob is read by no scheduler; use label {LABEL}: onjob in its pod "
        "template"
    )
    assert hint == "fix the template of Job onjob"


def test_an_object_of_another_namespace_is_told_from_both_sides(why):
    """``why wrongns`` did not say that it exists in another namespace."""
    message, hint = why("wrongns")
    assert message.endswith(
        "does not exist in namespace team; there is one in namespace other, and a gang is of one "
        "namespace"
    )
    assert hint == "make pods and object in one namespace, other or team"
    message, _ = why("other/astray")
    assert message == (
        "0 of 1 member exists; 1 pod names it in namespace team, and a gang is of one namespace"
    )


def test_a_name_that_is_spelt_almost_alike_is_suggested_from_both_sides(why):
    """``why typo-2`` did not say "did you mean typo2", which lint does."""
    message, hint = why("typo-2")
    assert message.endswith("does not exist in namespace team; did you mean typo2?")
    assert hint == f"use label {LABEL}: typo2 on the pods, or create PodGroup typo-2"
    message, _ = why("typo2")
    assert message == (
        "0 of 4 members exist; 3 pods name typo-2, which does not exist: did they mean this one?"
    )


def test_pods_and_workloads_of_another_scheduler_are_no_strangers(cluster, tmp_path, capsys):
    """``why`` of such a pod said that no pod of ours has this name."""
    config = kubeconfig(tmp_path, cluster.url, namespace="team")
    for name in ("pod/both-1", "both-1"):
        assert call("why", name, "--kubeconfig", config) == 1
        assert capsys.readouterr().err.endswith(
            "both-1 in namespace team is not quorate's: schedulerName is default-scheduler. "
            "See: quorate gangs -A --pods\n"
        )
