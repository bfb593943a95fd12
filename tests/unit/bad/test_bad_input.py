"""Bad input is held or left out, the reason names object and field, and everything else goes on."""

import json

import pytest

from quorate.core.model.reasons import Reason
from quorate.shell.report.bodies import condition_reason
from tests.unit.bad import device_tables, tables
from tests.unit.bad.driving import drive, group, node, pod

TABLES = {
    "unreadable pod": tables.UNREADABLE_PODS,
    "impossible pod": tables.IMPOSSIBLE_PODS,
    "claim": tables.CLAIMS,
    "unreadable object": tables.UNREADABLE_OBJECTS,
    "devices": device_tables.DEVICES,
    "broken devices": device_tables.BROKEN_DEVICES,
}
CASES = [
    pytest.param(case, id=f"{table}: {name}")
    for table, cases in TABLES.items()
    for name, case in cases.items()
]


@pytest.mark.parametrize("case", CASES)
def test_the_reason_of_a_pod_names_the_object_and_the_field(case):
    driven = drive(*case.objects())
    assert "bad" not in driven.placed()
    reason, sentence = driven.said("bad")
    assert case.words in sentence
    assert reason is case.reason


@pytest.mark.parametrize("case", CASES)
def test_so_does_that_of_its_gang_of_which_nobody_starts(case):
    objects = case.objects("quorate", "bads")
    driven = drive(group("bads", 2), pod("bad-1", "quorate", "bads"), *objects)
    assert not {"bad", "bad-1"} & set(driven.placed())
    reason, sentence = driven.said("bad-1")
    assert case.words in sentence
    assert "pod bad" in sentence or reason is Reason.NOT_ENOUGH_ROOM
    assert reason is case.reason


@pytest.mark.parametrize("case", CASES)
def test_autoscalers_hear_of_it_only_where_nodes_would_help(case):
    helps = case.reason in (Reason.NOT_ENOUGH_ROOM, Reason.NO_NODE_MATCHES)
    assert (condition_reason(case.reason) == "Unschedulable") == helps


def test_what_is_mended_is_forgotten():
    broken = drive(*tables.UNREADABLE_OBJECTS["claim: negative"].objects())
    mended = drive(
        *tables.UNREADABLE_OBJECTS["claim: negative"].objects(),
        tables.storage_class(),
        tables.LATE,
    )
    assert broken.scheduler.cluster.unreadable
    assert mended.scheduler.cluster.unreadable == {}
    assert "bad" in mended.placed()


def test_a_node_that_cannot_be_read_says_so_to_pods_that_fit_nowhere_only():
    broken = node("node-x", cpu="-4")
    driven = drive(broken, pod("bad", nodeSelector={"no": "such"}), pod("fits"))
    assert "fits" in driven.placed()
    assert "Node node-x cannot be read" in driven.said("bad")[1]
    again = drive(broken, node("node-x"), pod("bad", nodeSelector={"no": "such"}))
    assert "cannot be read" not in again.said("bad")[1]


@pytest.mark.parametrize(
    "claim_ref",
    [
        {"namespace": "team", "name": "other", "uid": "another"},
        {"namespace": "team", "name": "c", "uid": "an older one"},
        {},
    ],
)
def test_a_volume_that_says_it_is_anothers_is_the_kubelets_business(claim_ref):
    """kube-scheduler goes by the claim alone, and so does this."""
    objects = [tables.BOUND, tables.volume(claimRef=claim_ref), *tables.uses("c")]
    assert "bad" in drive(*objects).placed()


def test_claims_and_volumes_that_name_one_another_in_a_circle_do_no_harm():
    two = [
        tables.claim("c", meta=tables.DONE, volumeName="v"),
        tables.claim("d", meta=tables.DONE, volumeName="w"),
        tables.volume("v", claimRef={"namespace": "team", "name": "d", "uid": "claim-d"}),
        tables.volume("w", claimRef={"namespace": "team", "name": "c", "uid": "claim-c"}),
    ]
    assert "bad" in drive(*two, *tables.uses("c")).placed()


def test_an_unbound_claim_does_not_take_a_volume_that_is_kept_for_another():
    local = {**tables.storage_class(), "provisioner": "kubernetes.io/no-provisioner"}
    kept = tables.volume(storageClassName="late", claimRef={"namespace": "team", "name": "other"})
    driven = drive(local, kept, tables.LATE, *tables.uses("c"))
    assert "didn't find available persistent volumes to bind" in driven.said("bad")[1]


def test_labels_of_10_kb_are_no_different_from_others():
    long = {"labels": {"k": tables.LONG}}
    large = {**node("node-x"), "metadata": {"name": "node-x", "labels": {"k": tables.LONG}}}
    chosen = pod(
        "bad", nodeSelector={"k": tables.LONG}, metadata={**long, "annotations": tables.BIG}
    )
    driven = drive(large, chosen)
    assert driven.placed()["bad"] == "node-x"
    assert len(json.dumps(large)) > 10_000
