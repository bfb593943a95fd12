"""Every reason has a world that produces it, with its exact sentence and remedy."""

from typing import NamedTuple

import pytest

from quorate.core.model import ClaimUse, GangKey, Owner, PodClaim, Queue
from quorate.core.model.changes import BindFailure, DialectServed, ObjectChanged, OwnerChanged
from quorate.core.model.reasons import Reason
from tests.unit.core.terms import near, pods
from tests.unit.core.world import GPU, SIGS, VOLCANO, World, fail, key, pairs

JOB, LATER = Owner("batch/v1", "Job", "train"), Owner("batch/v1", "Job", "b")


class Case(NamedTuple):
    """What is made of a world with one node of 8 cpu, and what is then said of gang ``job``."""

    make: object
    reason: Reason
    message: str
    hint: str = ""
    gang: GangKey = key("job")


def next_run(w, *known):
    """A run has started, and a pod of another Job comes; this is known of the owners."""
    w.gang("job", 2, owner=JOB, run="one")
    w.cycle()
    w.pod("later", key("job"), owner=LATER, run="two")
    w.observe(*(OwnerChanged("team", *one) for one in known))


def orphan(w, *dialects):
    w.observe(*(DialectServed(dialect, True) for dialect in dialects))
    w.pod("a", key("job"))


def set_aside(w):
    w.gang("job", 2)
    w.cluster.gangs[key("job")].memory.aside.begin("q-d1", w.now_s)


def backing_off(w):
    w.gang("job", 2)
    for _ in range(2):
        w.cycle(fail(BindFailure.REFUSED, "denied by a webhook"))


SETTLED = {
    "all bound": Case(
        lambda w: (w.gang("job", 2), w.cycle()),
        Reason.NONE,
        "all 2 members that exist have a node",
    ),
    "under way": Case(
        lambda w: (w.gang("job", 2), w.decide()), Reason.STARTING, "0 of 2 members are bound"
    ),
    "not looked at yet": Case(
        lambda w: (w.decide(), w.gang("job", 2), w.__setattr__("skip", True)),
        Reason.STARTING,
        "there is room; the next cycle places it",
    ),
}

MEMBERS = {
    "too few": Case(
        lambda w: w.gang("job", 4, pods=2),
        Reason.NOT_ENOUGH_MEMBERS,
        "2 of 4 members exist",
        "create the other 2, or lower min",
    ),
    "none": Case(
        lambda w: w.object("job", 3),
        Reason.NOT_ENOUGH_MEMBERS,
        "0 of 3 members exist",
        "create the other 3, or lower min",
    ),
    "the owner makes too few": Case(
        lambda w: (w.gang("job", 4, pods=2, owner=JOB), w.observe(OwnerChanged("team", JOB, 2))),
        Reason.OWNER_MAKES_TOO_FEW,
        "2 of 4 members exist; Job train makes 2",
        "set parallelism of Job train to 4, or lower min to 2; more members may come from "
        "elsewhere",
    ),
    "gated": Case(
        lambda w: (w.gang("job", 3, pods=2), w.pod("g", key("job"), gates=("quota",))),
        Reason.MEMBERS_GATED,
        "2 of 3 members exist; 1 more is scheduling-gated",
        "the gates' owner has to remove them",
    ),
    "several gated": Case(
        lambda w: w.gang("job", 3, gates=("quota",)),
        Reason.MEMBERS_GATED,
        "0 of 3 members exist; 3 more are scheduling-gated",
        "the gates' owner has to remove them",
    ),
    "of another scheduler": Case(
        lambda w: w.gang("job", 3, scheduler="others", owner=JOB),
        Reason.OTHER_SCHEDULER,
        "3 pods have schedulerName others; quorate does not own that name",
        "set schedulerName: quorate in the template of Job train, or add others to quorate's "
        "schedulerNames if no other scheduler has that name",
    ),
    "of the default scheduler": Case(
        lambda w: w.gang("job", 1, scheduler="default-scheduler"),
        Reason.OTHER_SCHEDULER,
        "1 pod has schedulerName default-scheduler; quorate does not own that name",
        "set schedulerName: quorate in their templates",
    ),
    "of nobody": Case(
        lambda w: w.gang("job", 3, scheduler="nobody", unanswered=True),
        Reason.OTHER_SCHEDULER,
        "3 pods have schedulerName nobody; quorate does not own that name, and no scheduler that "
        "does has said anything",
        "set schedulerName: quorate in their templates, or add nobody to quorate's schedulerNames "
        "if no other scheduler has that name",
    ),
    "admitted by nobody": Case(
        lambda w: w.gang("job", 3, 0, gang_spec={"unanswered_by": "volcano"}, dialect=VOLCANO),
        Reason.OTHER_SCHEDULER,
        "its pods are made when a scheduler named volcano admits it; quorate does not own that "
        "name, and no scheduler that does has said anything",
        "add volcano to quorate's schedulerNames if no other scheduler has that name",
        key("job", VOLCANO),
    ),
    "of the next run": Case(
        lambda w: next_run(w, (JOB, 2, "c"), (LATER, 2, "c")),
        Reason.EARLIER_RUN,
        "Job b is of CronJob c, and Job train, an earlier run of it, is this gang until it has "
        "ended",
        "give each run a gang of its own, or set concurrencyPolicy: Forbid in the CronJob",
    ),
    "of the next run, perhaps": Case(
        next_run,
        Reason.EARLIER_RUN,
        "Job b may be a next run of Job train: it is asked which CronJob made them",
    ),
    "terminating": Case(
        lambda w: w.gang("job", 2, terminating=True),
        Reason.NOT_ENOUGH_MEMBERS,
        "0 of 2 members exist; 2 more are terminating",
        "create the other 2, or lower min",
    ),
    "disagree": Case(
        lambda w: (w.gang("job", 2, pods=1, priority=5), w.pod("b", key("job"))),
        Reason.MEMBERS_DISAGREE,
        "pods b and job-0 disagree in spec.priority: 0 and 5",
        "give all members of the gang the same spec.priority",
    ),
    "disagree, and an older one is on its way out": Case(
        lambda w: (
            w.pod("old", key("job"), priority=9, terminating=True),
            w.gang("job", 2, pods=2, priority=5),
            w.pod("b", key("job")),
        ),
        Reason.MEMBERS_DISAGREE,
        "pods b and job-0 disagree in spec.priority: 0 and 5",
        "give all members of the gang the same spec.priority",
    ),
}


def of_queue(w, known):
    w.observe(ObjectChanged(known))
    w.gang("job", 2, gang_spec={"queue": "research"})


OBJECTS = {
    "missing": Case(
        lambda w: orphan(w, "x-k8s"),
        Reason.GANG_OBJECT_MISSING,
        "PodGroup job (scheduling.x-k8s.io/v1alpha1) does not exist in namespace team",
        "create it, or remove scheduling.x-k8s.io/pod-group from the pods",
    ),
    "in another API": Case(
        lambda w: (orphan(w, "x-k8s", SIGS), w.object("job", 1, dialect=SIGS)),
        Reason.GANG_OBJECT_IN_OTHER_API,
        "the pods' scheduling.x-k8s.io/pod-group names a PodGroup of "
        "scheduling.x-k8s.io/v1alpha1, and job is one of scheduling.sigs.k8s.io/v1alpha1",
        "use pod-group.scheduling.sigs: job on the pods, or create the PodGroup in "
        "scheduling.x-k8s.io/v1alpha1",
    ),
    "no CRD": Case(
        lambda w: (w.observe(DialectServed("x-k8s", False)), w.pod("a", key("job"))),
        Reason.GANG_API_NOT_INSTALLED,
        "PodGroup job cannot exist: this cluster does not serve scheduling.x-k8s.io/v1alpha1",
        "install its CRD: quorate manifests --only crds | kubectl apply -f -",
    ),
    "API not readable": Case(
        lambda w: (
            w.observe(DialectServed("x-k8s", False, "no right to list podgroups", "grant it")),
            w.pod("a", key("job")),
        ),
        Reason.API_NOT_AVAILABLE,
        "no right to list podgroups",
        "grant it",
    ),
    "invalid": Case(
        lambda w: w.gang("job", 2, gang_spec={"defect": "spec.minMember: 'two' is no number"}),
        Reason.GANG_OBJECT_INVALID,
        "PodGroup job cannot be used: spec.minMember: 'two' is no number",
        "fix that field",
    ),
    "no such queue": Case(
        lambda w: of_queue(w, Queue("default")),
        Reason.QUEUE_MISSING,
        "queue research (spec.queue) does not exist",
        "create Queue research, or name another queue in spec.queue",
    ),
    "a closed queue": Case(
        lambda w: of_queue(w, Queue("research", closed=True)),
        Reason.QUEUE_CLOSED,
        "queue research (spec.queue) is closed",
        "open Queue research, or name another queue in spec.queue",
    ),
}

PODS = {
    "invalid": Case(
        lambda w: w.gang("job", 1, defect="spec.containers: missing"),
        Reason.POD_INVALID,
        "pod job-0: spec.containers: missing",
        "fix that pod's template",
    ),
    "a label that is nobody's": Case(
        lambda w: w.gang(
            "job", 1, defect="label gang/x is nobody's", defect_reason=Reason.UNKNOWN_GANG_LABEL
        ),
        Reason.UNKNOWN_GANG_LABEL,
        "pod job-0: label gang/x is nobody's",
        "fix that pod's template",
    ),
    "a name that no gang can have": Case(
        lambda w: w.gang(
            "job", 1, defect="label gang/x is bad", defect_reason=Reason.GANG_NAME_INVALID
        ),
        Reason.GANG_NAME_INVALID,
        "pod job-0: label gang/x is bad",
        "fix that pod's template",
    ),
}


def held_room(w):
    """A started gang has lost one of its two members."""
    w.gang("a", 2, cpu=3, owner=Owner("example.com/v1", "Thing", "a"))
    w.cycle()
    w.delete("a-1")
    w.gang("job", 1, cpu=4)


NOWHERE = {"spec": {"node_selector": pairs({"zone": "nowhere"})}}
ROOM = {
    "a claim that does not exist": Case(
        lambda w: w.gang("job", 2, claims=(ClaimUse("data"),)),
        Reason.CLAIM_NOT_USABLE,
        '0/1 nodes are available: persistentvolumeclaim "data" not found. '
        "2 members must start together and 0 fit: no node takes pod job-0 "
        "(spec.volumes of pod job-0 names the claim team/data, which does not exist)",
        "create or fix that object, or wait for it to be made",
    ),
    "no node matches": Case(
        lambda w: w.gang("job", 2, **NOWHERE),
        Reason.NO_NODE_MATCHES,
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
        "2 members must start together and 0 fit: no node takes pod job-0",
        "fix the selector or the tolerations, or the nodes' labels",
    ),
    "affinity to pods that are not there": Case(
        lambda w: w.gang("job", 2, spec=near(pods(app="hub"))),
        Reason.AWAITS_PODS,
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules. "
        "2 members must start together and 0 fit: no node takes pod job-0",
        "start pods that match spec.affinity.podAffinity, or fix it",
    ),
    "too large": Case(
        lambda w: w.gang("job", 2, cpu=9),
        Reason.REQUEST_TOO_LARGE,
        "0/1 nodes are available: 1 Insufficient cpu. 2 members must start together and 0 fit: "
        "pod job-0 asks for 9 cpu; the largest matching node has 8",
        "lower the request, or add a larger node",
    ),
    "no such resource": Case(
        lambda w: w.gang("job", 2, gpu=1),
        Reason.REQUEST_TOO_LARGE,
        f"0/1 nodes are available: 1 Insufficient {GPU}. 2 members must start together and 0 fit: "
        f"pod job-0 asks for 1 {GPU}; the largest matching node has none",
        "lower the request, or add a larger node",
    ),
    "too large together": Case(
        lambda w: (w.node("n1", cpu=2, memory=200), w.gang("job", 2, cpu=4, memory=100)),
        Reason.REQUEST_TOO_LARGE,
        "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. "
        "2 members must start together and 0 fit: pod job-0 asks for 4 cpu and 100Gi memory and "
        "1 pods together; no matching node has all of it",
        "lower the request, or add a larger node",
    ),
    "not enough room": Case(
        lambda w: (w.node("n1", cpu=3), w.gang("job", 4, cpu=3)),
        Reason.NOT_ENOUGH_ROOM,
        "0/2 nodes are available: 2 Insufficient cpu once 3 members are placed. "
        "4 members must start together and 3 fit: it can never start here: needs 12 cpu; "
        "the nodes that it may use have 11, 0 in use",
        "add nodes with 1 cpu, ask for less, or lower min",
    ),
    "held": Case(
        held_room,
        Reason.ROOM_HELD,
        "0/1 nodes are available: 1 Insufficient cpu. 1 member must start now and 0 fit: "
        "node n0 holds room for gang team/a until 00:21:40 UTC",
        "free or add room, or wait",
    ),
    "extras": Case(
        lambda w: (w.gang("job", 2, pods=4, cpu=3), w.cycle()),
        Reason.NOT_ENOUGH_ROOM,
        "0/1 nodes are available: 1 Insufficient cpu. 0 of 2 more members fit: "
        "they can never all run here: needs 6 cpu; "
        "the nodes that it may use have 8, 6 in use by its own members",
        "add nodes with 4 cpu, or ask for less",
    ),
    "half started": Case(
        lambda w: (
            w.gang("job", 2, cpu=4),
            w.cycle(job_1=fail(BindFailure.REFUSED)),
            w.node("n0", cpu=5),
        ),
        Reason.NOT_ENOUGH_ROOM,
        "0/1 nodes are available: 1 Insufficient cpu. 1 member must start now and 0 fit: "
        "it can never start here: needs 4 cpu; "
        "the nodes that it may use have 5, 4 in use by its own members",
        "add nodes with 3 cpu, ask for less, or lower min",
    ),
    "claim": Case(
        lambda w: w.gang("job", 1, device_claims=(PodClaim("gpu", None, own=True),)),
        Reason.CLAIM_NOT_USABLE,
        '0/1 nodes are available: pod "team/job-0": ResourceClaim not created yet. '
        "1 member must start now and 0 fit: no node takes pod job-0 "
        "(spec.resourceClaims[0].resourceClaimTemplateName of pod job-0: no claim was made of it "
        "yet)",
        "create or fix that object, or wait for it to be made",
    ),
    "minResources": Case(
        lambda w: w.gang("job", 1, gang_spec={"min_resources": (("cpu", 12000), (GPU, 2))}),
        Reason.MIN_RESOURCES_SHORT,
        f"minResources ask for 12 cpu (8 free) and 2 {GPU} (0 free)",
        "free or add that room, or lower spec.minResources",
    ),
    "a defect of ours": Case(
        set_aside,
        Reason.INTERNAL_ERROR,
        "InternalError q-d1: a defect of quorate's own was met with this gang; it is set aside and "
        "tried again, and other gangs go on",
        "report the log line and the recording of q-d1",
    ),
    "backing off": Case(
        backing_off,
        Reason.BACKING_OFF,
        "the last attempt failed (denied by a webhook); another follows shortly",
    ),
}

CASES = {
    f"{table}: {name}": case
    for table, cases in {
        "settled": SETTLED,
        "members": MEMBERS,
        "object": OBJECTS,
        "pod": PODS,
        "room": ROOM,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_sentence_of_each_reason(case):
    w = World()
    w.node("n0", cpu=8)
    case.make(w)
    if not getattr(w, "skip", False):
        w.decide()
    said = w.why(case.gang)
    assert (said.reason, said.message, said.hint) == (case.reason, case.message, case.hint)


def test_every_reason_is_produced_by_a_world():
    assert {case.reason for case in CASES.values()} == set(Reason)
