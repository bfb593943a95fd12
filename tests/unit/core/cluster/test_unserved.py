"""Who waits while a kind cannot be listed, who goes on, and that all go on afterwards."""

import pytest

from quorate.core.model import ClaimUse, PodClaim
from quorate.core.model.changes import DialectServed, KindServed
from quorate.core.model.reasons import Reason
from tests.unit.core.preemption_world import cleared, full, high
from tests.unit.core.preemption_world import world as preempting
from tests.unit.core.terms import apart, labels, pods
from tests.unit.core.world import SIGS, World

PROBLEM, REMEDY = "quorate may not list them", "grant the right"
VOLUMES = ("Claim", "Volume", "StorageClass", "CSINode")
DEVICES = ("ResourceClaim", "ResourceSlice", "DeviceClass")
BY_LABELS = pods(namespaces=(), of=labels(tier="gold"), app="web")


def world(**more) -> World:
    w = World(**more)
    w.node("n0", cpu=64, gpu=8, labels={"host": "n0"})
    return w


def lose(w, *kinds):
    w.observe(*(KindServed(kind, PROBLEM, REMEDY) for kind in kinds))


def restore(w, *kinds):
    w.observe(*(KindServed(kind) for kind in kinds))


def reason_of(w, pod):
    return w.why(w.cluster.pods[f"uid-{pod}"].gang.key).reason


NEEDS = {
    **{kind: {"claims": (ClaimUse("c"),)} for kind in VOLUMES},
    **{kind: {"device_claims": (PodClaim("gpu", "c", own=False),)} for kind in DEVICES},
    "Namespace": {"spec": apart(BY_LABELS)},
}


@pytest.mark.parametrize("kind", NEEDS)
def test_a_pod_that_needs_the_kind_waits_with_its_problem_and_the_others_go_on(kind):
    w = world()
    lose(w, kind)
    w.pod("plain")
    w.gang("job", 2)
    w.pod("needs", **NEEDS[kind])
    assert sorted(w.cycle()) == ["job-0", "job-1", "plain"]
    why = w.why(w.cluster.pods["uid-needs"].gang.key)
    assert (why.reason, why.message, why.hint) == (Reason.API_NOT_AVAILABLE, PROBLEM, REMEDY)


def test_when_the_kind_is_to_be_had_again_the_pod_goes_on_by_itself():
    w, kind = world(), "Namespace"
    lose(w, kind)
    w.pod("needs", **NEEDS[kind])
    assert w.cycle() == {}
    assert w.cycle() == {}
    restore(w, kind)
    assert w.cycle() == {"needs": "n0"}


def test_a_whole_gang_waits_when_one_of_its_members_needs_the_kind():
    w = world()
    lose(w, "Claim")
    which = w.object("job", 2)
    w.pod("a", which)
    w.pod("b", which, claims=(ClaimUse("c"),))
    assert w.cycle() == {}
    assert w.why(which).reason is Reason.API_NOT_AVAILABLE


def test_labels_of_namespaces_matter_to_whom_an_anti_affinity_by_them_may_mean():
    w = world()
    w.running("repels", "n0", spec=apart(BY_LABELS))
    lose(w, "Namespace")
    w.pod("meant", labels={"app": "web"})
    w.pod("not-meant", labels={"app": "db"})
    assert list(w.cycle()) == ["not-meant"]
    assert reason_of(w, "meant") is Reason.API_NOT_AVAILABLE
    w.delete("repels")
    restore(w, "Namespace")
    assert list(w.cycle()) == ["meant"]


@pytest.mark.parametrize("of", [None, labels()], ids=["by name", "all"])
def test_terms_that_do_not_look_at_labels_of_namespaces_need_none(of):
    w = world()
    lose(w, "Namespace")
    w.pod("a", labels={"app": "web"}, spec=apart(pods(of=of, app="web")))
    assert list(w.cycle()) == ["a"]


def test_nobody_is_preempted_while_budgets_are_not_known_and_then_somebody_is():
    w = preempting()
    full(w, "a", "b")
    lose(w, "PodDisruptionBudget")
    high(w)
    assert cleared(w) == []
    assert PROBLEM in w.why(w.cluster.pods["uid-high"].gang.key).message
    restore(w, "PodDisruptionBudget")
    assert cleared(w) == [("high", "n0", ["b"])]


def test_gangs_of_a_dialect_that_cannot_be_listed_wait_and_others_do_not():
    w = world()
    w.observe(DialectServed("x-k8s", False, PROBLEM, REMEDY))
    w.gang("job", 2)
    w.gang("other", 2, dialect=SIGS)
    assert sorted(w.cycle()) == ["other-0", "other-1"]
    assert reason_of(w, "job-0") is Reason.API_NOT_AVAILABLE
    w.observe(DialectServed("x-k8s", True))
    assert sorted(w.cycle()) == ["job-0", "job-1"]


def test_a_started_gang_has_its_lost_member_replaced_by_what_was_known_of_it():
    w = world()
    which = w.gang("job", 2)
    w.cycle()
    w.observe(DialectServed("x-k8s", False, PROBLEM, REMEDY))
    w.delete("job-0")
    w.pod("job-2", which)
    assert list(w.cycle()) == ["job-2"]


def test_a_state_that_is_built_again_knows_what_is_not_to_be_had():
    w = world()
    lose(w, "Namespace")
    w.observe(DialectServed("x-k8s", False, PROBLEM, REMEDY))
    before = dict(w.cluster.unserved)
    w.scheduler._rebuild()
    assert w.cluster.unserved == before != {}
