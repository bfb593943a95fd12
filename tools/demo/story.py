"""The story: four things that gangs do, each told, done and checked.

In: a stage and two clusters, of which one has quorate and the other a scheduler of single pods.
Raises StepFailedError.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.demo.clusters import DemoCluster
from tools.demo.naive import NaiveScheduler
from tools.demo.stage import Stage
from tools.demo.world import BLUE, NGINX, PG1, RED, Picture, end_if_whole, look

_MAKES_TWO = "2 of 4 members exist; Deployment pause makes 2"
_NAIVE_PAUSE_S = 0.3
_STUCK_S = 0.5


class Clusters(NamedTuple):
    """Two clusters with the same nodes."""

    quorate: DemoCluster
    naive: DemoCluster


def play(stage: Stage, clusters: Clusters, picture: Path | None = None) -> None:
    """Play all of it; ``picture`` is a file for an SVG of two gangs with room for one.

    Raises StepFailedError, ClusterError, and OSError when the file cannot be written.
    """
    _waits_and_says_why(stage, clusters.quorate)
    _labels(stage, clusters.quorate)
    _two_gangs(stage, clusters, picture)
    _loses_a_pod(stage, clusters.quorate)


def _waits_and_says_why(stage: Stage, cluster: DemoCluster) -> None:
    stage.step("1/4  A gang that cannot start says why")
    stage.say("CoreWeave's PodGroup example needs 4 pods, and its Deployment makes 2.")
    stage.apply("coreweave-podgroup.yaml", cluster)
    stage.until(
        cluster,
        f"neither pod starts, and both say why: {_MAKES_TWO}",
        lambda now: (
            [(one.node, one.why) for one in now.gang(PG1).members] == [("", _MAKES_TWO)] * 2
        ),
    )
    stage.snapshot()
    stage.why(cluster, PG1.name)
    stage.scale(cluster, "pause", 4)
    stage.until(
        cluster,
        "all 4 pods run",
        lambda now: now.gang(PG1).running == len(now.gang(PG1).members) == PG1.needed,
    )
    stage.snapshot()


def _labels(stage: Stage, cluster: DemoCluster) -> None:
    stage.step("2/4  Two labels make a gang, too")
    stage.say("No PodGroup here: one label of the pods names the gang, one says that it needs 2.")
    stage.apply("coreweave-labels.yaml", cluster)
    stage.until(
        cluster,
        "both pods run",
        lambda now: now.gang(NGINX).running == len(now.gang(NGINX).members) == NGINX.needed,
    )
    stage.snapshot()


def _two_gangs(stage: Stage, clusters: Clusters, picture: Path | None) -> None:
    quorate, naive = clusters
    stage.step("3/4  Two gangs, and room for one")
    naive.ready()
    stage.show(("one pod at a time", naive), ("quorate", quorate))
    stage.say(
        "Teams blue and red need 8 pods of 2 GPUs each: all 16 GPUs. The same file goes to two "
        "equal clusters. On the left a scheduler takes pods one by one; on the right is quorate."
    )
    with _scheduling(naive, _NAIVE_PAUSE_S * stage.pace):
        stage.apply("two-gangs.yaml", naive, quorate)
        stage.until(
            quorate,
            "quorate: one gang runs whole, the other waits and holds nothing",
            lambda now: _running(now) == [0, 8] and _placed(now) == [0, 8] and _all_wait(now),
        )
        stage.until(
            naive,
            "one pod at a time: both gangs are half started, and no GPU is free",
            _is_deadlocked,
            lambda now: f" ({now.gang(BLUE).running} and {now.gang(RED).running} of 8)",
        )
        stage.snapshot()
        if picture is not None:
            stage.draw(picture)
        stage.say(
            "A gang works once all its members have met, and ends when its work is done. "
            "Let that happen where it can:"
        )
        _end_what_can(stage, clusters)


def _end_what_can(stage: Stage, clusters: Clusters) -> None:
    """Apply one rule to both clusters: a gang whose members all run comes to its end."""
    quorate, naive = clusters
    before = _where(look(naive.client))
    whole = [gang for gang in (BLUE, RED) if end_if_whole(quorate.client, gang)]
    stage.require(len(whole) == 1, "one gang of quorate's could work")
    first = whole[0]
    second = RED if first is BLUE else BLUE
    stage.require(
        not any(end_if_whole(naive.client, gang) for gang in (BLUE, RED)),
        "with one pod at a time, neither gang can work",
    )
    stage.until(
        quorate,
        f"quorate: {first.name} is done, and {second.name} runs whole",
        lambda now: now.gang(first).is_done and now.gang(second).is_whole,
    )
    time.sleep(_STUCK_S)
    stage.require(_where(look(naive.client)) == before, "with one pod at a time, nothing moves")
    stage.until(
        naive,
        "one pod at a time: nothing has moved; somebody has to delete a gang",
        _is_deadlocked,
    )
    stage.snapshot()


def _loses_a_pod(stage: Stage, cluster: DemoCluster) -> None:
    stage.step("4/4  A gang that loses a pod")
    stage.show(("quorate", cluster))
    stage.say("pg1 is running. A pod that replaces a lost one need not wait for three more.")
    before = {one.uid: one for one in look(cluster.client).gang(PG1).members}
    lost = min(before.values(), key=lambda one: one.name)
    rest = before.keys() - {lost.uid}
    stage.delete_pod(cluster, lost.name)

    def is_replaced(now: Picture) -> bool:
        uids = {one.uid for one in now.gang(PG1).members}
        return rest < uids and lost.uid not in uids and now.gang(PG1).running == PG1.needed

    def by_whom(now: Picture) -> str:
        return next(one.name for one in now.gang(PG1).members if one.uid not in before)

    stage.until(
        cluster,
        "the other 3 still run, and in the place of the lost pod runs ",
        is_replaced,
        by_whom,
    )
    stage.snapshot()


@contextlib.contextmanager
def _scheduling(cluster: DemoCluster, pause_s: float) -> Iterator[None]:
    """Run the scheduler of single pods; it answers to the name that the manifests give."""
    stop = threading.Event()
    scheduler = NaiveScheduler(cluster.client, "quorate", pause_s)
    thread = threading.Thread(target=scheduler.run, args=(stop,), name="naive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _running(now: Picture) -> list[int]:
    return sorted(now.gang(gang).running for gang in (BLUE, RED))


def _placed(now: Picture) -> list[int]:
    return sorted(now.gang(gang).placed for gang in (BLUE, RED))


def _all_wait(now: Picture) -> bool:
    """Whether the gang that has nothing is complete and says why it waits."""
    waiting = [now.gang(gang) for gang in (BLUE, RED) if not now.gang(gang).placed]
    return all(len(one.members) == one.gang.needed and one.why for one in waiting)


def _is_deadlocked(now: Picture) -> bool:
    """Whether both gangs have all their pods, hold some GPUs, lack others, and none is free."""
    gangs = [now.gang(gang) for gang in (BLUE, RED)]
    halves = all(0 < one.running == one.placed < len(one.members) == 8 for one in gangs)
    return halves and now.gpus_free == 0 and all(one.why for one in gangs)


def _where(now: Picture) -> dict[str, tuple[str, str]]:
    return {
        one.uid: (one.node, one.phase) for gang in (BLUE, RED) for one in now.gang(gang).members
    }
