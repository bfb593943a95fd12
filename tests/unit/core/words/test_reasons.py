"""Every reason: whether more nodes would help, which is what autoscalers are told."""

import pytest

from quorate.core.model.reasons import Reason
from quorate.shell.report.bodies import condition_reason, not_scheduled

NODES_WOULD_HELP = {
    Reason.NO_NODE_MATCHES: "a node with the labels, or without the taint",
    Reason.REQUEST_TOO_LARGE: "a larger node",
    Reason.MIN_RESOURCES_SHORT: "more of them in sum",
    Reason.NOT_ENOUGH_ROOM: "more room",
    Reason.ROOM_HELD: "room that is not held",
}
WOULD_NOT = {
    Reason.NONE: "nothing is in the way",
    Reason.STARTING: "there is room",
    Reason.NOT_ENOUGH_MEMBERS: "pods are missing",
    Reason.OWNER_MAKES_TOO_FEW: "the owner has to be scaled",
    Reason.MEMBERS_GATED: "somebody has to remove the gates",
    Reason.OTHER_SCHEDULER: "the name has to be fixed, or somebody has to own it",
    Reason.EARLIER_RUN: "another run has to end",
    Reason.GANG_OBJECT_MISSING: "the PodGroup has to be created",
    Reason.GANG_OBJECT_IN_OTHER_API: "the label or the PodGroup has to be fixed",
    Reason.GANG_API_NOT_INSTALLED: "a definition has to be installed",
    Reason.API_NOT_AVAILABLE: "a right has to be granted, or an API fixed",
    Reason.GANG_OBJECT_INVALID: "the PodGroup has to be fixed",
    Reason.QUEUE_MISSING: "the queue has to be made",
    Reason.QUEUE_CLOSED: "somebody has to open the queue",
    Reason.UNKNOWN_GANG_LABEL: "the label has to be fixed",
    Reason.GANG_NAME_INVALID: "the name has to be fixed",
    Reason.MEMBERS_DISAGREE: "the pods have to be fixed",
    Reason.POD_INVALID: "the pod has to be fixed",
    Reason.CLAIM_NOT_USABLE: "the claim has to be fixed, or made",
    Reason.AWAITS_PODS: "other pods have to be placed first",
    Reason.BACKING_OFF: "a write was refused, and is tried again",
    Reason.INTERNAL_ERROR: "a defect of quorate's own has to be fixed",
}


def test_the_tables_have_every_reason():
    assert {*NODES_WOULD_HELP, *WOULD_NOT} == set(Reason)
    assert not NODES_WOULD_HELP.keys() & WOULD_NOT.keys()


@pytest.mark.parametrize("reason", NODES_WOULD_HELP)
def test_autoscalers_hear_of_what_nodes_would_help(reason):
    assert reason.nodes_would_help
    assert condition_reason(reason) == "Unschedulable"


@pytest.mark.parametrize("reason", WOULD_NOT)
def test_autoscalers_hear_nothing_of_what_nodes_would_not_help(reason):
    assert not reason.nodes_would_help
    [condition] = not_scheduled(reason, "why", 0.0)["status"]["conditions"]
    assert condition["reason"] == str(reason) != "Unschedulable"


def test_what_somebody_has_to_mend_is_counted_as_misconfigured_and_nothing_that_mends_itself():
    mends_itself = {
        Reason.NONE,
        Reason.STARTING,
        Reason.NOT_ENOUGH_MEMBERS,
        Reason.MEMBERS_GATED,
        Reason.EARLIER_RUN,
        Reason.QUEUE_CLOSED,  # it drains, and is opened again
        Reason.CLAIM_NOT_USABLE,  # most are being made
        Reason.AWAITS_PODS,
        Reason.MIN_RESOURCES_SHORT,
        Reason.NOT_ENOUGH_ROOM,
        Reason.ROOM_HELD,
        Reason.BACKING_OFF,
        Reason.INTERNAL_ERROR,
    }
    assert {one for one in Reason if not one.is_misconfiguration} == mends_itself
