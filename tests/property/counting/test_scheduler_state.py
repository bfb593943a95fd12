"""Whatever happens, in any order: nothing is overcommitted, halved, lost, or forgotten."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import GangKey
from quorate.core.model.changes import JournalFound, PodChanged
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler
from tests.property.seeds import drawn
from tests.unit.core.random_worlds import Play, scripts

LACK = ("Insufficient", "Too many pods")
packings = st.sampled_from(["most-allocated", "least-allocated"])


def rebuilt(play: Play) -> Cluster:
    """A cluster that was told only of what is there now."""
    cluster = Cluster(play.policy.scheduler_names)
    for change in play.changes():
        cluster.apply(change)
    for uid, node in play.under_way.items():
        if uid in play.pods and cluster.pods[uid].where is not Where.BOUND:
            assume(cluster, uid, node, relabelled=uid in play.relabelled)
    for gang in list(cluster.gangs.values()):
        cluster.end_past_life(gang)
    return cluster


def assume(cluster, uid, node, *, relabelled):
    """A pod under way may meanwhile be terminating, and its node may be gone: move it by hand."""
    cluster.move(cluster.pods[uid], Where.RELABELLED if relabelled else Where.ASSUMED, node)


def node_facts(cluster):
    """Used amounts by node and resource, and the holders of host ports."""
    table = cluster.nodes
    used = {
        (name, resource): int(table.used(row)[column])
        for name, row in table.rows.items()
        for resource, column in table.resources.columns.items()
        if table.used(row)[column]
    }
    names = {row: name for name, row in table.rows.items()}
    ports = {
        (where, names[row], ip): count
        for where, holders in table.ports.items()
        for row, there in holders.items()
        for ip, count in there.items()
    }
    return used, ports


def counts_of(gang):
    """Whether a finished member was of an earlier life of its gang is known to who saw it alone."""
    counts = dict(zip(Where, gang.counts, strict=True))
    counts[Where.BOUND] += counts.pop(Where.PAST)
    return counts


def where_of(entry):
    return Where.BOUND if entry.where is Where.PAST else entry.where


def gang_facts(gang):
    waiting = {uid for alike in gang.waiting.values() for uid in alike}
    opinions = gang.priorities, gang.schedulers, gang.minima
    facts = [counts_of(gang), gang.ours, waiting, set(gang.members), opinions, gang.spec]
    if len(gang.minima) == 1:  # where members disagree, the one that came last decides
        facts.append(gang.min_count)
    return facts


@drawn(250)
@given(scripts(), packings)
def test_counts_by_change_equal_a_recount(script, packing):
    play = Play(packing)
    play.run(script)
    kept, fresh = play.scheduler.cluster, rebuilt(play)
    assert node_facts(kept) == node_facts(fresh)
    assert set(kept.gangs) == set(fresh.gangs)
    for key, gang in kept.gangs.items():
        assert gang_facts(gang) == gang_facts(fresh.gangs[key]), key
        assert gang.lifecycle.evicting == 0
    assert {u: (where_of(e), e.node) for u, e in kept.pods.items()} == {
        u: (where_of(e), e.node) for u, e in fresh.pods.items()
    }
    assert kept.waiting == fresh.waiting
    alive = kept.nodes.alive[: len(kept.nodes)]
    assert not np.any(kept.nodes.free[: len(kept.nodes)][~alive])


def minima_said(play: Play, key: GangKey) -> set[int | None]:
    """Return what the members of a gang say of min, those with a node among them."""
    said = [pod.membership for pod in play.pods.values() if pod.membership]
    return {one.min_count for one in said if one.key == key}


@drawn(400)
@given(scripts(without=("relabel",)), packings)
def test_what_fits_at_rest_has_been_placed_so_no_wake_up_was_missed(script, packing):
    """A successor finds nothing to do.

    It cannot know that another's pod was relabelled, nor which min was said when another bound one
    of a gang whose members disagree.
    """
    play = Play(packing)
    play.run(script)
    play.come_to_rest()
    successor = Scheduler(play.policy, identity="successor")
    journal = play.scheduler.journal().passed_on("successor")
    successor.observe([JournalFound(journal), *play.changes()])
    asked = [minima_said(play, gang.key) for gang in successor.decide(play.now_s).gangs]
    assert [said for said in asked if len(said) < 2] == []


@drawn(150)
@given(scripts(without=("relabel",)))
def test_no_gang_is_left_in_part(script):
    """Only a gang that was quorate once may be below min, unless somebody relabels what runs."""
    play = Play()
    play.run(script)
    play.come_to_rest()
    for gang in play.scheduler.cluster.gangs.values():
        assert gang.attempt is None
        assert gang.assumed == 0
        bound = [e for e in gang.members.values() if e.where is Where.BOUND]
        ours = [e for e in bound if e.pod.attempt and not e.pod.finished]
        if ours and not gang.lifecycle.once_quorate:
            assert len(bound) >= gang.min_count, gang.key


@drawn(100)
@given(scripts())
def test_every_pod_is_in_exactly_one_place(script):
    play = Play()
    play.run(script)
    play.do_decide(100.0)
    cluster, queue = play.scheduler.cluster, play.scheduler.queue
    assert set(cluster.pods) == set(play.pods)
    for uid, entry in cluster.pods.items():
        if entry.gang is None:
            continue
        assert entry.gang.members[uid] is entry
        assert cluster.gangs[entry.gang.key] is entry.gang
        in_waiting = [uid in alike for alike in entry.gang.waiting.values()].count(True)
        assert in_waiting == (entry.where is Where.WAITING)
    for key in queue.blocked:
        assert key not in queue.backing_off
    explainer = play.scheduler.explainer(play.now_s)
    for key, gang in cluster.gangs.items():
        if gang.waits:
            said = explainer.explain(key)
            assert said.message
            assert said.reason is not Reason.NONE
            for blocker in said.blockers:
                check_counts(blocker, said.nodes)


def check_counts(blocker, nodes):
    """Each node counts once, but for resources: of them it may lack several."""
    assert 0 <= blocker.fit < blocker.pods
    lacks = [rule.nodes for rule in blocker.ruled_out if rule.message.startswith(LACK)]
    others = [rule.nodes for rule in blocker.ruled_out if not rule.message.startswith(LACK)]
    assert all(0 < count <= nodes for count in lacks + others)
    assert sum(others) + max(lacks, default=0) <= nodes <= sum(others) + sum(lacks)


@drawn(60)
@given(scripts())
def test_telling_everything_again_changes_no_plan(script):
    play = Play()
    play.run(script)
    play.come_to_rest()
    play.tell(*play.changes(), *(PodChanged(pod) for pod in play.pods.values()))
    assert play.do_decide().gangs == ()
