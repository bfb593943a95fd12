"""Goal: a gang's object has one Event for each start, and none for replacements.

Method: a core that is told of binds; the counter of binds is asked after each.
"""

import pytest

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import GangKey, GangSpec, Membership, Pod, PodSpec
from quorate.core.model.changes import GangChanged, PodChanged
from quorate.shell.report.starts import Starts

KEY = GangKey("team", "x-k8s", "train")


@pytest.fixture
def cluster():
    made = Cluster(frozenset({"quorate"}))
    made.apply(GangChanged(GangSpec(KEY, 2, uid="g")))
    return made


def bind(cluster, starts, number):
    pod = Pod(
        uid=f"u{number}",
        namespace="team",
        name=f"train-{number}",
        scheduler="quorate",
        spec=PodSpec(),
        node="n1",
        phase="Running",
        membership=Membership(KEY),
    )
    cluster.apply(PodChanged(pod))
    starts.bound(KEY)


def test_a_start_is_told_once_about_the_object(cluster):
    """``kubectl describe podgroup`` had no Event."""
    starts = Starts()
    bind(cluster, starts, 0)
    assert starts.news(cluster.gangs[KEY]) is None
    bind(cluster, starts, 1)
    told = starts.news(cluster.gangs[KEY])
    assert told.note == "2 of 2 members have a node; 2 had to start together"
    assert told.regarding["kind"] == "PodGroup"
    assert told.regarding["name"] == "train"
    assert starts.news(cluster.gangs[KEY]) is None


def test_a_replacement_is_no_start(cluster):
    starts = Starts()
    bind(cluster, starts, 0)
    bind(cluster, starts, 1)
    starts.news(cluster.gangs[KEY])
    bind(cluster, starts, 2)
    assert starts.news(cluster.gangs[KEY]) is None


def test_a_start_that_another_leader_began_is_not_told_as_ours(cluster):
    starts = Starts()
    bind(cluster, Starts(), 0)
    bind(cluster, starts, 1)
    assert starts.news(cluster.gangs[KEY]) is None


def test_pods_of_no_gang_and_gangs_that_are_gone_are_not_remembered(cluster):
    starts = Starts()
    starts.bound(GangKey("team", "pod", "alone@u"))
    bind(cluster, starts, 0)
    starts.forget(KEY)
    bind(cluster, starts, 1)
    assert starts.news(cluster.gangs[KEY]) is None
