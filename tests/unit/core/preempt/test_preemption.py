"""A pod of high priority that fits nowhere gets its room from pods of lower priority."""

import msgspec

from quorate.core.model import LabelSelector, Membership, PodSelector, PodTerm, Requirement
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.changes import ObjectChanged, PodBound, PreemptionFailed
from quorate.core.model.plan import Victim
from tests.invariants import check_all
from tests.unit.core.preemption_world import cleared, full, high, world
from tests.unit.core.world import TEAM, World, gangs_tried, names


def test_the_youngest_of_the_least_important_go_and_the_pod_waits_for_them():
    w = world()
    full(w, "a", "b", "c")
    high(w, cpu=2)
    assert cleared(w) == [("high", "n0", ["b", "c"])]
    assert cleared(w, after_s=5) == []
    w.edit("b", terminating=True, preempted=True)
    assert cleared(w) == []
    w.delete("b")
    assert cleared(w) == []
    assert w.cycle() == {}
    w.delete("c")
    assert w.cycle() == {"high": "n0"}


def test_it_goes_where_it_was_promised_room_although_another_node_is_emptier():
    w = world()
    full(w, "a", "b")
    high(w)
    assert cleared(w) == [("high", "n0", ["b"])]
    w.node("emptier", cpu=64, cordoned=True)
    w.cycle()
    w.delete("b")
    w.node("emptier", cpu=64)
    assert w.cycle() == {"high": "n0"}


def test_promised_room_is_kept_from_pods_and_gangs_of_no_more_priority():
    w = world()
    full(w, "a", "b")
    high(w, cpu=2)
    assert cleared(w) == [("high", "n0", ["a", "b"])]
    w.delete("a")
    w.pod("equal", scheduler="kube", priority=100, spec={"tolerations": ()}, never_preempts=True)
    w.pod("low", scheduler="kube")
    w.gang("job", 1)
    assert w.cycle() == {}
    assert "Insufficient cpu" in w.why(w.cluster.pods["uid-equal"].gang.key).message
    assert "Insufficient cpu" in w.why(w.cluster.pods["uid-job-0"].gang.key).message


def test_a_pod_of_more_priority_takes_promised_room_and_its_owner_looks_again():
    w = world()
    full(w, "a", "b")
    high(w)
    assert cleared(w) == [("high", "n0", ["b"])]
    high(w, "higher", priority=200, cpu=2)
    plan = w.decide()
    [one] = plan.preemptions
    assert (one.name, sorted(names(one.victims))) == ("higher", ["a"]), "b goes already"
    assert one.displaced == ((TEAM, "high"),)
    w.delete("a", "b")
    assert w.cycle() == {"higher": "n0"}


def test_a_pod_that_lost_its_promise_gets_another_one():
    w = world()
    full(w, "a", "b")
    full(w, "c", node="n1", priority=50)
    high(w)
    assert cleared(w) == [("high", "n0", ["b"])]
    high(w, "higher", priority=200, cpu=2)
    assert cleared(w) == [("higher", "n0", ["a"])]
    assert cleared(w) == [("high", "n1", ["c"])]


def test_a_promise_that_is_taken_back_frees_its_room_for_others():
    w = world()
    full(w, "a", "b", priority=100)
    high(w, nominated="n0", cpu=2)
    w.pod("low", scheduler="kube")
    w.delete("b")
    assert cleared(w) == [("high", "", [])]
    w.cycle()
    assert w.where("low") == "n0"


def test_two_pods_of_one_cycle_are_promised_different_rooms():
    w = world()
    full(w, "a", "b")
    full(w, "c", "d", node="n1")
    for index in range(4):
        high(w, f"high-{index}")
    victims = [name for _, _, some in cleared(w) for name in some]
    assert sorted(victims) == ["a", "b", "c", "d"]
    w.delete(*victims)
    assert len(w.cycle()) == 4


def test_of_alike_pods_the_one_with_the_promise_is_placed():
    w = world()
    full(w, "a")
    high(w, "second")
    assert cleared(w) == [("second", "n0", ["a"])]
    high(w, "first", created_s=-5.0)
    assert cleared(w) == []
    w.delete("a")
    assert w.cycle() == {"second": "n0"}


def test_what_a_budget_spares_goes_last():
    w = world()
    full(w, "kept", labels={"app": "db"})
    full(w, "free", node="n1")
    selector = LabelSelector((Requirement("app", "In", ("db",)),))
    w.observe(ObjectChanged(PodDisruptionBudget(TEAM, "db", selector, allowed=0)))
    high(w)
    high(w, "next")
    assert cleared(w) == [("high", "n1", ["free"]), ("next", "n0", ["kept"])]


def test_a_pod_whose_bind_is_under_way_is_no_victim_until_it_is_bound():
    w = world()
    w.node("n0", cpu=1)
    w.pod("low", scheduler="kube")
    plan = w.decide()
    high(w)
    assert w.decide().preemptions == ()
    w.settle(plan)
    assert cleared(w, after_s=5) == [("high", "n0", ["low"])]


def test_a_victims_gang_is_named():
    w = world()
    w.node("n0", cpu=3)
    w.gang("job", 2, 3)
    w.cycle()
    high(w)
    [one] = w.decide().preemptions
    [victim] = one.victims
    assert victim.gang_hit == "gang team/job keeps 2 of 3 bound members (min 2)"


def test_a_gang_preempts_nobody_and_neither_does_a_pod_of_our_own_profile():
    w = world()
    full(w, "a", "b")
    w.gang("job", 1, priority=100)
    w.pod("single", priority=100)
    assert cleared(w) == []


def test_a_pod_that_may_not_preempt_says_so():
    w = world()
    full(w, "a")
    pod = high(w, never_preempts=True)
    assert cleared(w) == []
    assert w.why(w.cluster.pods[pod.uid].gang.key).message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_sentence_from_before_there_were_nodes_is_not_said_of_the_first_node():
    w = world()
    pod = high(w, cpu=9)
    assert cleared(w) == []
    w.node("n0", cpu=1)
    assert cleared(w) == []
    assert w.why(w.cluster.pods[pod.uid].gang.key).message == (
        "0/1 nodes are available: 1 Insufficient cpu."
    )


def test_a_promise_that_could_not_be_taken_back_is_taken_back_again():
    w = world()
    full(w, "a", priority=100)
    pod = high(w, nominated="n0")
    assert cleared(w) == [("high", "", [])]
    w.observe(PreemptionFailed(pod.uid, (), "the API server is away"))
    assert cleared(w) + cleared(w, after_s=100) == [("high", "", [])]
    assert cleared(w, after_s=100) == []


def test_when_none_can_go_the_sentence_says_why_and_an_old_promise_is_taken_back():
    w = world()
    full(w, "a", priority=100)
    pod = high(w, nominated="n0")
    assert cleared(w) == [("high", "", [])]
    assert w.why(w.cluster.pods[pod.uid].gang.key).message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert cleared(w, after_s=100) == []


def test_a_preemption_that_is_refused_is_no_reason_for_autoscalers_to_add_no_node():
    w = world(backoff_s=10.0)
    full(w, "a")
    pod = high(w)
    assert cleared(w) == [("high", "n0", ["a"])]
    for _ in range(2):  # the first time it is tried again at once
        w.observe(PreemptionFailed(pod.uid, (w.pods["a"].uid,), "quorate may not delete pods"))
        w.decide(0.0)
    said = w.why(w.cluster.pods[pod.uid].gang.key)
    assert said.reason.nodes_would_help
    assert said.message == (
        "0/1 nodes are available: 1 Insufficient cpu. (quorate may not delete pods)"
    )


def test_victims_that_could_not_be_deleted_are_chosen_again_after_a_while():
    w = world(backoff_s=1.0)
    full(w, "a")
    pod = high(w)
    expected = [("high", "n0", ["a"])]
    assert cleared(w) == expected
    for _ in range(2):
        w.observe(PreemptionFailed(pod.uid, (w.pods["a"].uid,), "forbidden"))
        assert cleared(w, after_s=0.0) + cleared(w, after_s=2.0) == expected


def test_a_promise_that_could_not_be_made_keeps_no_room_for_a_pod_that_has_joined_a_gang():
    w = world()
    full(w, "a")
    pod = high(w)
    assert cleared(w) == [("high", "n0", ["a"])]
    w.observe(PreemptionFailed(pod.uid, (w.pods["a"].uid,), "forbidden"))
    w.edit("high", membership=Membership(w.object("g", 2)))
    w.delete("a")
    w.pod("low")
    assert w.cycle() == {"low": "n0"}


def test_victims_that_could_not_be_deleted_are_there_for_every_pod_that_waits():
    w = world()
    full(w, "a", "b")
    high(w)
    assert cleared(w) == [("high", "n0", ["b"])]
    high(w, "higher", priority=200, cpu=2)
    assert cleared(w) == [("higher", "n0", ["a"])], "b goes already"
    w.delete("a")
    assert cleared(w) == []
    w.observe(PreemptionFailed("uid-high", ("uid-b",), "no"))
    assert cleared(w) == [("higher", "n0", ["b"])]


def test_victims_that_could_not_be_deleted_for_a_pod_that_is_gone_are_there_for_others():
    w = world()
    full(w, "a")
    high(w)
    assert cleared(w) == [("high", "n0", ["a"])]
    high(w, "next", priority=50)
    assert cleared(w) == []
    w.delete("high")
    assert cleared(w) == [("next", "n0", [])], "a goes already"
    w.observe(PreemptionFailed("uid-high", ("uid-a",), "no"))
    assert cleared(w) == [("next", "n0", ["a"])]


def kept_out_of_all_but(w: World, pod: str) -> None:
    """Let a pod of priority 100 fit on n0 alone, once that pod, which is no victim yet, is gone."""
    w.node("n1", cpu=4, labels={"h": "n1"})
    selector = PodSelector((TEAM,), LabelSelector((Requirement("app", "In", ("high",)),)))
    term = PodTerm(selector, "h")
    w.running("repels", "n1", cpu=0, priority=1000, spec={"anti_affinity": (term,)})
    high(w, cpu=4, labels={"app": "high"})
    assert cleared(w) == []
    assert not w.cluster.pods[f"uid-{pod}"].may_be_preempted


def test_a_pod_that_leaves_a_gang_whose_binds_are_under_way_is_a_victim_at_once():
    w = world()
    w.node("n0", cpu=4, labels={"h": "n0"})
    w.gang("job", 2, cpu=2)
    plan = w.decide()
    w.observe(PodBound("uid-job-0", "n0"))
    kept_out_of_all_but(w, "job-0")
    w.edit("job-0", node="n0", membership=None)
    w.edit("job-1", membership=None)
    w.observe(PodBound("uid-job-1", "n0"))
    assert plan.gangs
    assert cleared(w) == [("high", "n0", ["job-0", "job-1"])]


def test_news_of_a_pod_that_was_a_victim_before_wakes_nobody(monkeypatch):
    w = world()
    full(w, "a", priority=100)
    high(w)
    w.decide()
    tried = gangs_tried(w, monkeypatch)
    w.edit("a", labels=(("x", "y"),))
    w.decide()
    assert tried == []


def test_a_loss_that_leaves_only_lower_pods_in_the_way_is_news():
    w = world()
    w.node("n0", cpu=2)
    w.running("equal", "n0", priority=100)
    w.running("low", "n0")
    high(w, cpu=2)
    assert cleared(w) == []
    w.delete("equal")
    assert cleared(w) == [("high", "n0", ["low"])]


def test_one_decision_makes_a_bounded_number_of_promises():
    w = world(preemptions_per_plan_max=2)
    full(w, *"abcde")
    for index in range(5):
        high(w, f"high-{index}")
    assert [len(cleared(w)) for _ in range(4)] == [2, 2, 1, 0]


def test_a_new_leader_keeps_promises_and_waits_for_victims():
    w = world()
    full(w, "a", "b")
    w.edit("b", terminating=True, preempted=True)
    w.pod("equal", scheduler="kube", priority=100, never_preempts=True)
    high(w, nominated="n0")
    assert cleared(w) == []
    w.delete("b")
    assert w.cycle() == {"high": "n0"}


def test_victims_that_must_not_go_are_noticed_before_they_are_deleted():
    w = world()
    full(w, "a", "b")
    full(w, "far", node="n1", priority=100)
    high(w)
    plan = w.decide()
    [one] = plan.preemptions
    for name in ("far", "high"):
        victims = (Victim(f"uid-{name}", TEAM, name),)
        wrong = msgspec.structs.replace(one, victims=victims)
        left, problems = w.scheduler.verified(msgspec.structs.replace(plan, preemptions=(wrong,)))
        assert left.preemptions == ()
        assert problems == [f"victim {name} is not bound to node n0"]
    w.edit("b", priority=100)
    left, problems = w.scheduler.verified(plan)
    assert left.preemptions == ()
    assert problems == ["victim b has priority 100"]


def test_what_bound_pods_take_is_recounted():
    w = world()
    full(w, "a", "b", priority=7)
    w.gang("job", 1, cpu=0)
    w.cycle()
    w.edit("a", priority=9)
    w.edit("b", terminating=True)
    assert check_all(w.scheduler, w.now_s) == []
    w.lose_node("n0")
    w.node("n0", cpu=4)
    w.delete("a")
    assert check_all(w.scheduler, w.now_s) == []
    w.cluster.precedence.bound.take(0, 3, w.cluster.pods["uid-b"].pod_class)
    assert "could be preempted" in check_all(w.scheduler, w.now_s)[0].text


def test_a_promise_to_a_pod_that_is_deleted_is_over():
    w = world()
    full(w, "a", "b")
    high(w)
    cleared(w)
    w.pod("low", scheduler="kube")
    w.delete("b")
    w.delete("high")
    assert w.cycle() == {"low": "n0"}
