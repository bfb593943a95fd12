"""Goal: the guard denies what would do harm as far as is known, and nothing else.

Method: tables in a tiny world; tests/property/turns/test_guard.py has the general statement.
"""

import pytest

from quorate.core.check.guard import Binding, Guard, GuardAnswer
from quorate.core.model import DeviceClass, HostPort, policy
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    ObjectChanged,
    PodBound,
    PodChanged,
    PodGone,
)
from tests.unit.core.world import GPU, TEAM, World

FOREIGN = "default-scheduler"


class Guarded(World):
    """A world with a guard that hears what the scheduler hears, just before it."""

    def __init__(self, *, tells):
        super().__init__()
        self.tells = tells
        self.guard = Guard(self.cluster)

    def observe(self, *changes):
        if hasattr(self, "guard"):
            self.guard.observe(changes)
        super().observe(*changes)

    def ask(self, name, node, *, uid=None, at_s=0.0, **options):
        binding = Binding(TEAM, name, f"uid-{name}" if uid is None else uid, node)
        self.pass_time(at_s)
        verdict = self.guard.judge(binding, at_s, **options)
        if self.tells:
            self.pass_time(at_s)
        return verdict

    def pass_time(self, now_s):
        """The shell tells the core what the guard has to say."""
        self.guard.expire(now_s)
        self.observe(*self.guard.take_changes())


@pytest.fixture(params=[True, False], ids=["told", "not told yet"])
def world(request):
    """Once with a core that has heard what was let through, once with one that will."""
    made = Guarded(tells=request.param)
    made.node("n1", cpu=4)
    made.node("n2", cpu=4)
    return made


def foreign(world, name, **more):
    world.pod(name, scheduler=FOREIGN, **more)


def test_what_fits_is_allowed_and_what_does_not_is_denied_with_what_is_free(world):
    world.running("old", "n1", cpu=3)
    foreign(world, "small", cpu=1)
    foreign(world, "large", cpu=2)
    assert world.ask("small", "n1", dry_run=True).answer is GuardAnswer.ALLOWED
    verdict = world.ask("large", "n1")
    assert not verdict.allowed
    assert verdict.message == (
        "node n1 has no room for pod team/large: it asks for 2 cpu, and 1 is free"
    )
    assert world.ask("large", "n2").allowed


def test_a_resource_that_a_node_lists_no_more_of_is_not_judged_once_devices_are_given_for_it(world):
    world.node("n1", cpu=4, gpu=0)
    foreign(world, "pod", gpu=1)
    assert not world.ask("pod", "n1").allowed
    world.observe(ObjectChanged(DeviceClass("gpus", extended=GPU)))
    assert world.ask("pod", "n1").allowed


def test_a_node_without_room_for_one_more_pod_says_so(world):
    world.node("n1", cpu=4, pods=1)
    world.running("old", "n1")
    foreign(world, "new")
    assert world.ask("new", "n1").message.endswith("another pod, and it may hold no more")


def test_room_that_a_gang_is_committing_to_is_named_with_the_gang(world):
    world.gang("g", 8)
    plan = world.decide()
    assert sum(len(one.binds) for one in plan.gangs) == 8
    foreign(world, "thief")
    verdict = world.ask("thief", "n1")
    assert verdict.message.endswith("and 0 is free; being bound there: gang team/g")


def test_binds_of_ours_pass_on_the_node_of_the_plan_and_on_no_other(world):
    world.gang("g", 4)
    (gang,) = world.decide().gangs
    bind = gang.binds[0]
    elsewhere = "n2" if bind.node == "n1" else "n1"
    assert world.ask(bind.name, bind.node).answer is GuardAnswer.ALLOWED
    verdict = world.ask(bind.name, elsewhere)
    assert verdict.message == (
        f"pod team/{bind.name} is being bound to node {bind.node} by gang team/g"
    )
    assert len(world.guard) == 0, "it is counted by the cluster already"


def test_a_bind_of_ours_is_denied_when_others_have_taken_its_room_since(world):
    world.gang("g", 4, cpu=2)
    (gang,) = world.decide().gangs
    bind = gang.binds[0]
    world.running("late", bind.node, cpu=1)  # it went past the guard
    assert not world.ask(bind.name, bind.node).allowed


def test_a_bind_that_is_repeated_after_its_answer_was_lost_is_left_to_the_api_server(world):
    world.gang("g", 4)
    (gang,) = world.decide().gangs
    bind = gang.binds[0]
    world.observe(PodBound(bind.uid, bind.node))
    assert world.ask(bind.name, bind.node).allowed
    assert world.ask(bind.name, "n2" if bind.node == "n1" else "n1").allowed


@pytest.mark.parametrize(
    ("name", "uid", "node"),
    [("nobody", None, "n1"), ("p", "other-uid", "n1"), ("p", None, "n9"), ("p", None, "")],
    ids=["pod", "uid", "node", "no node"],
)
def test_what_is_not_known_is_not_judged(world, name, uid, node):
    foreign(world, "p", cpu=100)
    verdict = world.ask(name, node, uid=uid)
    assert verdict.allowed
    assert verdict.answer is GuardAnswer.UNJUDGED


def test_a_uid_of_another_pod_is_not_judged(world):
    foreign(world, "p", cpu=100)
    foreign(world, "q")
    assert world.ask("q", "n1", uid="uid-p").answer is GuardAnswer.UNJUDGED


def test_without_a_uid_the_pod_is_found_by_its_name_until_it_is_gone(world):
    foreign(world, "p", cpu=100)
    assert not world.ask("p", "n1", uid="").allowed
    world.delete("p")
    assert world.ask("p", "n1", uid="").answer is GuardAnswer.UNJUDGED
    assert not world.guard._uids, "no name of what is gone is kept"


def test_a_namesake_that_came_before_the_news_of_the_end_of_the_first_is_found(world):
    foreign(world, "p", uid="first")
    foreign(world, "p", uid="second", cpu=100)
    world.observe(PodGone("first"))
    assert not world.ask("p", "n1", uid="").allowed


def test_a_pod_that_a_bind_found_gone_leaves_no_name(world):
    pod = world.pod("p")
    world.observe(BindFailed(pod.uid, "n1", BindFailure.GONE))
    assert not world.guard._uids


def test_two_foreign_bindings_cannot_both_have_the_last_room(world):
    foreign(world, "a", cpu=3)
    foreign(world, "b", cpu=3)
    assert world.ask("a", "n1").allowed
    assert world.ask("a", "n1").allowed, "once more, as after a lost answer"
    assert not world.ask("b", "n1").allowed
    assert world.ask("b", "n2").allowed


def test_an_admitted_binding_counts_until_the_watch_shows_it_and_not_twice(world):
    foreign(world, "a", cpu=2)
    foreign(world, "b", cpu=2)
    foreign(world, "c", cpu=1)
    assert world.ask("a", "n1").allowed
    world.edit("a", node="n1")
    assert world.ask("b", "n1").allowed, "2 of 4 are used, not 4"
    assert not world.ask("c", "n1").allowed


def test_an_admitted_binding_that_never_came_true_stops_to_count(world):
    foreign(world, "a", cpu=3)
    foreign(world, "b", cpu=3)
    assert world.ask("a", "n1", at_s=10.0).allowed
    assert not world.ask("b", "n1", at_s=10.0 + policy.ADMITTED_S - 0.1).allowed
    assert world.ask("b", "n1", at_s=10.0 + policy.ADMITTED_S).allowed


def test_an_admitted_pod_that_goes_elsewhere_or_away_stops_to_count_at_once(world):
    for name in ("a", "b", "c"):
        foreign(world, name, cpu=3)
    assert world.ask("a", "n1").allowed
    assert world.ask("a", "n2").allowed
    assert world.ask("b", "n1").allowed
    world.delete("b")
    assert world.ask("c", "n1").allowed


def test_a_dry_run_counts_for_nothing(world):
    foreign(world, "a", cpu=3)
    foreign(world, "b", cpu=3)
    assert world.ask("a", "n1", dry_run=True).allowed
    assert world.ask("b", "n1").allowed


def test_what_was_let_through_is_out_of_reach_of_a_plan_or_else_of_its_binds(world):
    foreign(world, "a", cpu=3)
    world.lose_node("n2")
    assert world.ask("a", "n1").allowed
    world.gang("g", 4)
    plan = world.decide()
    if world.tells:
        assert not plan.gangs
    else:
        assert not world.ask(plan.gangs[0].binds[0].name, "n1").allowed


def test_a_gang_starts_when_what_was_let_through_does_not_come_true():
    world = Guarded(tells=True)
    world.node("n1", cpu=4)
    foreign(world, "a", cpu=3)
    assert world.ask("a", "n1", at_s=1.0).allowed
    world.gang("g", 4)
    assert not world.decide().gangs
    world.edit("a", labels=(("x", "y"),))
    assert not world.decide().gangs, "another change of the pod does not end the wait"
    world.pass_time(1.0 + policy.ADMITTED_S)
    assert len(world.decide().gangs) == 1


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first(world, monkeypatch):
    monkeypatch.setattr(policy, "ADMITTED_MAX", 2)
    world.node("n1", cpu=4, pods=2)
    for name in ("a", "b", "c"):
        foreign(world, name, cpu=0)
        assert world.ask(name, "n1" if name == "a" else "n2").allowed
    assert len(world.guard) == 2
    foreign(world, "d", cpu=4)
    assert world.ask("d", "n1").allowed


def test_a_resource_that_the_pod_does_not_ask_for_or_that_the_node_does_not_list_is_not_judged(
    world,
):
    world.running("greedy", "n1", cpu=9)
    foreign(world, "light", cpu=0, memory=1)
    assert world.ask("light", "n1").allowed
    foreign(world, "odd", cpu=0, requests={"example.com/license": 1})
    assert world.ask("odd", "n2").allowed
    world.node("n2", **{"example.com/license": 0})
    assert not world.ask("odd", "n2").allowed


def test_a_host_port_that_is_taken_or_promised_is_denied(world):
    port = {"host_ports": (HostPort("TCP", "0.0.0.0", 80),)}
    world.running("web", "n1", spec=port)
    foreign(world, "a", spec=port)
    foreign(world, "b", spec=port)
    assert world.ask("a", "n1").message == ("node n1 cannot take pod team/a: host port 80 is taken")
    assert world.ask("a", "n2").allowed
    assert not world.ask("b", "n2").allowed


def test_finished_pods_hold_no_room(world):
    world.running("old", "n1", cpu=4)
    foreign(world, "new", cpu=4)
    assert not world.ask("new", "n1").allowed
    world.edit("old", phase="Succeeded")
    assert world.ask("new", "n1").allowed


def test_a_pod_that_changes_its_request_is_judged_by_the_newest(world):
    pod = world.pod("p", scheduler=FOREIGN, cpu=5)
    assert not world.ask("p", "n1").allowed
    world.observe(PodChanged(world.pod("p", scheduler=FOREIGN, cpu=3)))
    assert pod.uid == world.pods["p"].uid
    assert world.ask("p", "n1").allowed
