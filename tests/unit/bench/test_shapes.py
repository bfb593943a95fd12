"""The shapes that are measured: their pods mean what their names say, and the table adds up."""

import dataclasses
import json

import pytest

from bench.cluster import shape_report, shapes
from bench.cluster.measurement import Result
from bench.cluster.shape_bench import peers_of, pods_per_s
from bench.cluster.shapes import SHAPES
from quorate.core.model.changes import PodBound
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.scheduler import Scheduler
from quorate.shell.watch.objects import watched_kinds

NAME = "default-scheduler"
NODES = 9
SMALL = [
    dataclasses.replace(
        shape, measured=5, standing=min(shape.standing, 3), hopeless=min(shape.hopeless, 3)
    )
    for shape in SHAPES
]
BY_NAME = {shape.name: shape for shape in SMALL}


class World:
    """A core that stands in for the cluster's own scheduler and is told objects as JSON."""

    def __init__(self, shape):
        policy = Policy(scheduler_names=(NAME,), profiles=((NAME, KUBE_SCHEDULER),))
        self.scheduler = Scheduler(policy)
        kinds = watched_kinds(frozenset(policy.scheduler_names)).values()
        self._decoders = {kind.resource.kind: kind.changed for kind in kinds}
        self.tell(shapes.nodes(NODES, own_resources=shape.own_resources))
        if shape.has_volumes:
            volumes, claims = shapes.volumes(shape)
            self.tell([*shapes.csi_nodes(NODES), *volumes, *claims])
        self.tell(shapes.standing_pods(shape))
        self.tell(shapes.hopeless_pods(shape.hopeless, "hopeless"))

    def tell(self, objects):
        for one in objects:
            metadata = {"uid": one["metadata"]["name"], "namespace": "bench", **one["metadata"]}
            raw = json.dumps({**one, "metadata": metadata}).encode()
            self.scheduler.observe([self._decoders[one["kind"]](raw)])

    def placed(self, shape):
        """Return the node's number of each measured pod that a plan has a place for, in order."""
        self.tell(shapes.pods(shape, "run", shape.measured))
        plan, problems = self.scheduler.verified(self.scheduler.decide(0.0))
        assert not problems
        binds = [bind for gang in plan.gangs for bind in gang.binds]
        self.scheduler.observe(PodBound(bind.uid, bind.node) for bind in binds)
        assert all(bind.name.startswith("run-") for bind in binds), "what is hopeless stays so"
        return {
            int(bind.name.rpartition("-")[2]): int(bind.node.rpartition("-")[2]) for bind in binds
        }


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.name)
def test_the_measured_pods_of_each_shape_have_a_place_beside_those_that_stand(shape):
    assert len(World(shape).placed(shape)) == shape.measured


def zones(places):
    return [place % len(shapes.ZONES) for place in places.values()]


def result(peer, seconds, *, binds=100, **fields):
    return Result(case="spread-hard", peer=peer, run=0, seconds=seconds, binds=binds, **fields)


SHAPE = dataclasses.replace(BY_NAME["spread-hard"], measured=100, timeout_s=50.0)


def test_a_row_has_medians_with_their_ranges_and_the_ratio_of_the_medians():
    results = [result("quorate", s, cpu_ms_per_bind=0.5) for s in (0.1, 0.2, 0.25)]
    results += [result("kube-scheduler", s, other_cores=0.7) for s in (1.0, 2.0, 4.0)]
    assert shape_report.row(SHAPE, results) == [
        "500 (400 to 1,000)",
        "50 (25 to 100)",
        "10.00",
        ">= 3.0",
        "",
        "0.50 / -",
        "0.7",
    ]


def test_a_target_that_is_missed_says_so_and_a_run_that_did_not_end_how_far_it_came():
    results = [result("quorate", None, binds=20), result("kube-scheduler", 1.0)]
    ours, _, ratio, _, verdict, *_ = shape_report.row(SHAPE, results)
    assert (ours, ratio, verdict) == ("0, only 20 bound", "0.00", "MISSED")


def test_a_run_that_failed_counts_for_nothing():
    results = [result("quorate", 1.0), result("kube-scheduler", 1.0, error="it died")]
    assert shape_report.row(SHAPE, results)[:5] == ["100", "-", "-", ">= 3.0", ""]


def test_of_a_stream_each_pods_wait_counts_and_what_was_not_bound_is_told():
    waits_s = [0.01] * 95 + [0.3] * 5
    ours = result("quorate", 1.0, binds=99, created_to_bound_s=waits_s)
    theirs = result("kube-scheduler", 1.0, created_to_bound_s=[2 * one for one in waits_s])
    assert list(shape_report.wait_rows(SHAPE, [ours, theirs])) == [
        ["quorate", "10", "10", "300", "1"],
        ["kube-scheduler", "20", "20", "600", "0"],
        ["p99, ratio", "", "", "0.50, wanted <= 1.0", ""],
    ]


def test_the_throughput_of_a_run_that_did_not_end_is_that_up_to_its_time_limit():
    assert pods_per_s(SHAPE, result("quorate", None, binds=25)) == 0.5
    assert pods_per_s(SHAPE, result("quorate", 4.0)) == 25.0


def test_both_schedulers_are_given_the_same_pods_and_others_do_not_take_part():
    peers = peers_of(["ceiling", "quorate", "native", "kube-scheduler"])
    assert [peer.name for peer in peers] == ["quorate", "kube-scheduler"]
    assert {peer.scheduler_name for peer in peers} == {NAME}
