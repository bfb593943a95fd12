"""A gang that waits for nodes says which are out of production, promised, leaving or others'."""

import pytest

from quorate.core.model import ClaimUse, policy
from quorate.core.model.life_cycle import LifeCycleLabels
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.reasons import ClosedNodes, Reason
from quorate.core.model.selectors import Requirement, SelectorTerm, Toleration
from tests.unit.core.terms import near, pods
from tests.unit.core.world import World, key, pairs

LABELS = LifeCycleLabels()
STATE, RESERVED, DESIRED, LEAVING = LABELS.keys
TAINT = f"{RESERVED}=hash:NoSchedule"
"""What keeps those away who do not tolerate the reservation."""
WAIT = "wait for the nodes that are not open to it, or ask who keeps them"
TOLERANT = {"tolerations": (Toleration(RESERVED, "Exists"),)}


def marked(w, name, *, cpu=8, taint=TAINT, cordoned=False, **labels):
    """Add a node of the life-cycle: in production, and reserved for acme unless it is said."""
    said = {"state": "production", "reserved": "acme", **labels}
    given = {getattr(LABELS, field): value for field, value in said.items() if value}
    w.node(name, cpu=cpu, labels=given, taints=[taint] if taint else [], cordoned=cordoned)


def said_of(w, *, cpu=8, **gang):
    """Return the explanation of a gang of two, each as large as a node."""
    w.gang("job", 2, cpu=cpu, **gang)
    w.decide()
    return w.why(key("job"))


def closed(w, **gang):
    blocker = said_of(w, **gang).blockers[0]
    return {one.why: one.some for one in blocker.closed}


@pytest.mark.parametrize(
    ("labels", "cordoned", "why"),
    [
        ({"state": "triage", "reserved": "triage"}, False, "in triage"),
        ({"state": "triage", "reserved": "acme"}, True, "in triage"),
        ({"state": "odd"}, False, "in odd"),
        ({"reserved": "control-plane", "desired": "acme"}, False, "pending for acme"),
        ({"leaving": "true"}, True, "about to leave"),
        ({"leaving": "true", "state": "triage"}, True, "in triage"),
    ],
)
def test_what_may_be_over_one_day_is_told_and_to_wait_for_it(labels, cordoned, why):
    w = World()
    marked(w, "n0", cordoned=cordoned, **labels)
    said = said_of(w)
    assert said.blockers[0].closed == (ClosedNodes(why, 1, ("n0",)),)
    assert said.reason is Reason.NO_NODE_MATCHES
    assert said.message.endswith(f"no node takes pod job-0; not open to it: 1 node {why}")
    assert said.hint == WAIT


@pytest.mark.parametrize(
    ("labels", "cordoned", "why"),
    [
        ({"reserved": "zeta", "desired": "zeta"}, False, "reserved for zeta"),
        ({"reserved": "zeta"}, True, "reserved for zeta"),
        ({"reserved": "acme", "leaving": "true"}, False, "reserved for acme"),
        ({"state": "", "reserved": "triage", "desired": "acme"}, False, "reserved for triage"),
    ],
)
def test_where_a_reservation_is_in_the_way_the_selector_or_a_toleration_may_be_at_fault(
    labels, cordoned, why
):
    w = World()
    marked(w, "n0", cordoned=cordoned, **labels)
    said = said_of(w, spec={"node_selector": pairs({RESERVED: "acme"})})
    assert said.blockers[0].closed == (ClosedNodes(why, 1, ("n0",), for_others=True),)
    assert said.hint == "fix the selector or the tolerations, or the nodes' labels"


def test_nodes_are_counted_by_reason_the_most_first_and_some_named():
    w = World()
    for number in range(4):
        marked(w, f"t{number}", state="triage")
    marked(w, "z0", reserved="zeta")
    marked(w, "p0", reserved="control-plane", desired="acme")
    assert said_of(w).message.endswith(
        "not open to it: 4 nodes in triage, 1 node pending for acme, 1 node reserved for zeta"
    )
    assert closed(w)["in triage"] == ("t0", "t1", "t2")


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_of_many_reasons_those_with_the_most_nodes_are_told_and_the_others_counted(more):
    w, kinds = World(), policy.CLOSED_KINDS_MAX + more
    marked(w, "t", state="triage")
    for number in range(kinds - 1):
        for twin in "ab":
            marked(w, f"n{number}{twin}", reserved=f"o{number}")
    said = said_of(w).blockers[0].closed
    assert [one.why for one in said] == [
        *(f"reserved for o{number}" for number in range(kinds - 1)),
        "closed for other reasons" if more > 0 else "in triage",
    ]
    assert said[-1].some == ("t",)


def test_only_nodes_that_would_take_the_pod_count():
    w = World()
    marked(w, "small", state="triage", cpu=4)
    marked(w, "open", reserved="acme", taint="")
    w.node("elsewhere", labels={STATE: "triage", "zone": "b"}, taints=[TAINT, "t:NoSchedule"])
    w.node("plain", taints=["t:NoSchedule"])
    assert closed(w) == {}


def test_a_full_node_counts_and_one_that_is_not_ready_as_nodes_in_triage_are():
    w = World()
    gone = [TAINT, "node.kubernetes.io/not-ready:NoExecute", "evict:NoExecute"]
    w.node("full", cpu=8, labels={STATE: "triage"}, taints=gone)
    w.running("other", "full", cpu=8)
    assert closed(w) == {"in triage": ("full",)}


def test_a_node_of_others_that_is_not_ready_either_does_not_count():
    w = World()
    gone = [TAINT, "node.kubernetes.io/not-ready:NoSchedule"]
    w.node("n0", cpu=8, labels={STATE: "production", RESERVED: "zeta"}, taints=gone)
    assert closed(w) == {}


def test_nodes_that_lack_more_than_room_do_not_count():
    w = World()
    marked(w, "n0", state="triage")
    absent = pods(app="absent")
    assert closed(w, spec=near(absent, by="kubernetes.io/hostname")) == {}
    assert "not open" not in w.why(key("job")).message


def test_a_pod_that_can_never_run_is_not_told_to_wait():
    w = World()
    marked(w, "n0", state="triage")
    said = said_of(w, spec={"required_terms": (SelectorTerm((Requirement(STATE, "In", ()),)),)})
    assert said.reason is Reason.POD_INVALID
    assert (said.hint, "not open" in said.message) == ("fix that pod's template", False)


def test_a_claim_that_is_not_there_is_the_cause_whatever_nodes_are_closed():
    w = World()
    marked(w, "n0", state="triage")
    w.pod("a", w.object("job", 1), claims=(ClaimUse("data"),))
    w.decide()
    said = w.why(key("job"))
    assert said.reason is Reason.CLAIM_NOT_USABLE
    assert (said.hint, "not open" in said.message) == (
        "create or fix that object, or wait for it to be made",
        False,
    )


def test_a_node_that_is_only_cordoned_is_not_closed():
    w = World()
    marked(w, "n0", cordoned=True)
    marked(w, "n1", cordoned=True)
    assert closed(w, spec=TOLERANT) == {}
    assert w.why(key("job")).hint == "uncordon n0 and n1"


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({"leaving": "true"}, "about to leave"),
        ({"state": "production-reboot"}, "in production-reboot"),
        ({"desired": "zeta"}, "pending for zeta"),
    ],
)
def test_no_hint_says_to_uncordon_a_node_that_its_labels_close(labels, why):
    w = World()
    marked(w, "n0", cordoned=True, **labels)
    marked(w, "n1")
    assert closed(w, spec=TOLERANT) == {why: ("n0",)}
    said = w.why(key("job"))
    assert "uncordon" not in said.hint
    assert "the nodes that it may use have 8;" in said.message.replace(",", ";")


def test_the_message_has_the_closed_nodes_of_the_first_class_that_has_some():
    w = World()
    w.node("m0", cpu=1, labels={"pool": "m"})
    w.running("other", "m0", cpu=1)
    w.node("n0", cpu=8, labels={STATE: "triage", "pool": "g"}, taints=[TAINT])
    gang = w.object("job", 2)
    w.pod("a-master", gang, cpu=1, spec={"node_selector": pairs({"pool": "m"})})
    w.pod("b-worker", gang, cpu=8, spec={"node_selector": pairs({"pool": "g"})})
    w.decide()
    assert "not open to it: 1 node in triage" in w.why(gang).message


IN_PRODUCTION = SelectorTerm((Requirement(STATE, "In", ("production",)),))


@pytest.mark.parametrize(
    "spec",
    [
        {"node_selector": pairs({RESERVED: "acme", "zone": "a"})},
        {"required_terms": (SelectorTerm((Requirement(RESERVED, "In", ("acme",)),)),)},
        {"required_terms": (IN_PRODUCTION,)},
        {"required_terms": (SelectorTerm((Requirement(LEAVING, "DoesNotExist"),)),)},
        {"required_terms": (SelectorTerm((Requirement(DESIRED, "NotIn", ("zeta",)),)),)},
        {
            "required_terms": (
                SelectorTerm((*IN_PRODUCTION.expressions, Requirement("zone", "In", ("a",)))),
            )
        },
        {"required_terms": (SelectorTerm((Requirement("zone", "In", ("b",)),)), IN_PRODUCTION)},
    ],
)
def test_what_selects_by_the_life_cycle_counts_nodes_as_if_they_were_selected(spec):
    w = World()
    labels = {STATE: "triage", RESERVED: "triage", LEAVING: "true", DESIRED: "zeta", "zone": "a"}
    w.node("n0", cpu=8, labels=labels, taints=[TAINT])
    assert closed(w, spec=spec) == {"in triage": ("n0",)}


def test_what_else_selectors_ask_for_still_counts():
    w = World()
    w.node("n0", cpu=8, labels={STATE: "triage", "zone": "a"}, taints=[TAINT])
    elsewhere = Requirement("zone", "In", ("b",))
    term = SelectorTerm((*IN_PRODUCTION.expressions, elsewhere))
    assert closed(w, spec={"required_terms": (term,)}) == {}


def test_a_pod_that_may_go_there_is_told_nothing():
    w = World()
    marked(w, "n0", state="triage")
    w.running("other", "n0", cpu=1)
    assert closed(w, spec=TOLERANT) == {}


def test_the_names_of_the_labels_are_configured():
    own = LifeCycleLabels(state="example.com/state", reserved="example.com/for")
    w = World(life_cycle=own)
    w.node("n0", cpu=8, labels={own.state: "repair"}, taints=["example.com/for=x:NoSchedule"])
    marked(w, "n1", state="triage", taint="t:NoSchedule")
    assert closed(w) == {"in repair": ("n0",)}


def test_a_gang_that_lacks_min_resources_is_told_too():
    w = World()
    marked(w, "n0", state="triage")
    w.node("n1", cpu=8)
    w.gang("job", 2, cpu=8, gang_spec={"min_resources": (("cpu", 16_000),)})
    w.decide()
    said = w.why(key("job"))
    assert said.reason is Reason.MIN_RESOURCES_SHORT
    assert said.message == (
        "minResources ask for 16 cpu (8 free where its members may run); "
        "not open to it: 1 node in triage"
    )


def test_a_pod_of_a_kube_scheduler_profile_is_told_after_kube_schedulers_words():
    w = World(scheduler_names=("kube",), profiles=(("kube", KUBE_SCHEDULER),))
    marked(w, "n0", state="triage")
    w.pod("alone", cpu=1, scheduler="kube")
    w.decide()
    assert w.why(key("alone@uid-alone", "pod")).message == (
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling. "
        "(not open to it: 1 node in triage)"
    )
