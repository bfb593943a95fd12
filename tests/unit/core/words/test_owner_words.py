"""Each thing that holds an owner of members back has its exact sentence and hint.

A hint never asks for what is so already: "Job alpha has to make 4" was said of a Job that is to
make 4.
"""

from typing import NamedTuple

import pytest

from quorate.core.model import Owner
from quorate.core.model.changes import Brake, OwnerChanged
from quorate.core.model.reasons import Reason
from tests.unit.core.world import World, key

WEB, SET = Owner("apps/v1", "Deployment", "web"), Owner("apps/v1", "StatefulSet", "ring")
JOB, MPI = Owner("batch/v1", "Job", "train"), Owner("kubeflow.org/v2beta1", "MPIJob", "pi")


class Case(NamedTuple):
    """What is made of a world with one node, and what is then said of gang ``job``."""

    make: object
    reason: Reason
    message: str
    hint: str


def owned(w, owner, replicas, min_count=4, pods=2, **found):
    w.gang("job", min_count, pods=pods, owner=owner)
    if replicas is not None:
        w.observe(OwnerChanged("team", owner, replicas, **found))


def unreadable(w):
    owned(w, MPI, None, min_count=3)
    w.observe(OwnerChanged("team", MPI, None, first=None))


def of_several(w, *makes, min_count=6, **found):
    """A gang of which several Jobs make a pod each; ``found`` is what is known of the last one."""
    w.object("job", min_count)
    for number, one in enumerate(makes):
        owner = Owner("batch/v1", "Job", f"j{number}")
        w.pod(owner.name, key("job"), owner=owner)
        if one is not None:
            more = found if number == len(makes) - 1 else {}
            w.observe(OwnerChanged("team", owner, one, **more))


CASES = {
    "too few of a Job": Case(
        lambda w: owned(w, JOB, None),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 4 members exist",
        "Job train has to make the others, or lower min",
    ),
    "too few yet of a Deployment": Case(
        lambda w: owned(w, WEB, 4),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 4 members exist; Deployment web makes 4",
        "wait for Deployment web to make the others; kubectl -n team describe deployment web says "
        "what keeps it from that",
    ),
    "an MPIJob that may not be read": Case(
        unreadable,
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 3 members exist; MPIJob pi may make its launcher only when its workers are ready, "
        "which may not be read: grant quorate get of mpijobs in kubeflow.org, or set "
        "schedulingPolicy.minAvailable to the number of workers",
        "MPIJob pi has to make the others, or lower min",
    ),
    "the API server refuses the others": Case(
        lambda w: owned(w, JOB, 4, completions=4, refused="exceeded quota: team-cpu, ..."),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 4 members exist; Job train makes 4, and the API server refuses the others: exceeded "
        "quota: team-cpu, ...",
        "let what refuses them allow more, or lower min to 2",
    ),
    "refused, and too few": Case(
        lambda w: owned(w, WEB, 3, refused="denied by a webhook"),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 4 members exist; Deployment web makes 3, and the API server refuses the others: "
        "denied by a webhook",
        "let what refuses them allow more and kubectl -n team scale deployment web --replicas=4, "
        "or lower min to 2; more members may come from elsewhere",
    ),
    "one after another": Case(
        lambda w: owned(w, SET, 4, pods=1, brake=Brake.IN_ORDER),
        Reason.OWNER_MAKES_TOO_FEW,
        "1 of 4 members exist; StatefulSet ring makes its 4 pods one after another",
        "make StatefulSet ring anew with podManagementPolicy: Parallel",
    ),
    "one after another, and too few": Case(
        lambda w: owned(w, SET, 3, pods=1, brake=Brake.IN_ORDER),
        Reason.OWNER_MAKES_TOO_FEW,
        "1 of 4 members exist; StatefulSet ring makes its 3 pods one after another",
        "make StatefulSet ring anew with podManagementPolicy: Parallel and replicas: 4; more "
        "members may come from elsewhere",
    ),
    "suspended": Case(
        lambda w: owned(w, JOB, 4, brake=Brake.SUSPENDED),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 4 members exist; Job train is suspended",
        "resume Job train (spec.suspend: false)",
    ),
    "few completions": Case(
        lambda w: owned(w, JOB, 2, completions=2),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 4 members exist; Job train makes 2",
        "make Job train anew with parallelism and completions of 4, or lower min to 2; more "
        "members may come from elsewhere",
    ),
    "enough of several owners": Case(
        lambda w: of_several(w, 1, 5),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 6 members exist; Job j0 makes 1; Job j1 makes 5",
        "wait for them to make the others; kubectl describe says what keeps each from it",
    ),
    "too few of several owners": Case(
        lambda w: of_several(w, 1, 2),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 6 members exist; Job j0 makes 1; Job j1 makes 2",
        "create 3 more, or lower min to 3; more members may come from elsewhere",
    ),
    "one of several is refused": Case(
        lambda w: of_several(w, 1, 5, refused="no"),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 6 members exist; Job j1 makes 5, and the API server refuses the others: no; Job j0 "
        "makes 1",
        "let what refuses them allow more, or lower min to 2",
    ),
    "one of several is unknown": Case(
        lambda w: of_several(w, 1, None),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 6 members exist",
        "create the other 4, or lower min",
    ),
    "the Deployment makes too few": Case(
        lambda w: owned(w, WEB, 2),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 4 members exist; Deployment web makes 2",
        "kubectl -n team scale deployment web --replicas=4, or lower min to 2; more members may "
        "come from elsewhere",
    ),
    "the Job makes too few": Case(
        lambda w: owned(w, JOB, 2),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 4 members exist; Job train makes 2",
        "set parallelism of Job train to 4, or lower min to 2; more members may come from "
        "elsewhere",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_holds_an_owner_back_is_said(case):
    w = World()
    w.node("n0", cpu=8)
    case.make(w)
    w.decide()
    said = w.why(key("job"))
    assert (said.reason, said.message, said.hint) == (case.reason, case.message, case.hint)


@pytest.mark.parametrize("owners", [2, 3, 4, 9])
def test_so_many_owners_are_named_and_of_more_the_sum_is(owners):
    """``policy.OWNERS_NAMED_MAX`` is 3."""
    w = World()
    of_several(w, *[2] * owners, min_count=99)
    named = [f"Job j{number} makes 2" for number in range(min(owners, 3))]
    more = [f"{owners - 3} more owner{'s make' if owners > 4 else ' makes'} {2 * (owners - 3)}"]
    exist = f"{owners} of 99 members exist"
    assert w.why(key("job")).message == "; ".join([exist, *named, *(more if owners > 3 else [])])
