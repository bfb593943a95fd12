"""Goal: the ring holds what entered the core and no secret, stays within its bytes, never harms.

Method: pods as the API server sends them, decoded by the watch's own code; real files.
"""

import json
import stat
import zlib
from itertools import pairwise

import msgspec
import pytest

from quorate.cli.replay import Replay
from quorate.core.changes import GangChanged, NodeChanged, NodeGone, PodChanged, PodGone
from quorate.core.invariants import Invariant
from quorate.core.model import GangKey, GangSpec, Node, Pod, PodShape
from quorate.core.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.report import recording
from quorate.shell.report.checkpoint import CheckpointError, capture, restore
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.recorder import Recorder
from quorate.shell.report.recording import (
    Begin,
    Checkpoint,
    Deciding,
    Observed,
    Planned,
    RecordingError,
    Stopped,
    Verified,
)
from quorate.shell.report.self_check import SelfCheck
from quorate.shell.watch.pods import PodDecoder
from tests.unit.core.world import World
from tests.unit.shell.scripted_server import ManualClock

SECRET = "hunter2-secret"


class Told:
    """A scheduler whose calls are recorded as ``shell.app`` records them."""

    def __init__(self, bytes_max=1 << 20):
        self.scheduler = Scheduler(Policy(), api_words(), "q")
        self.recorder = Recorder(self.scheduler, api_words(), "q", bytes_max)
        self.now_s = 1000.0

    def observe(self, *changes):
        self.recorder.observed(changes)
        self.scheduler.observe(changes)

    def decide(self):
        self.now_s += 1.0
        self.recorder.deciding(self.now_s)
        plan = self.scheduler.decide(self.now_s)
        self.recorder.planned(plan)
        plan, problems = self.scheduler.verified(plan)
        self.recorder.verified(plan, problems)

    def records(self, path):
        recording.write(path, self.recorder.frames())
        return list(recording.read(path))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.recording"


def node(name="n0", cpu=8000):
    return NodeChanged(Node(name, (("cpu", cpu), ("pods", 110))))


def pod(name, **more):
    shape = PodShape(requests=(("cpu", 1000),))
    return PodChanged(Pod(f"uid-{name}", "team", name, "quorate", shape, **more))


# What is recorded


def test_every_call_is_recorded_in_order_with_what_it_returned(path):
    told = Told()
    told.observe(node(), pod("a"))
    told.decide()
    begin, observed, deciding, planned, verified = told.records(path)
    assert isinstance(begin, Begin)
    assert (begin.policy, begin.identity, begin.apis) == (Policy(), "q", api_words())
    assert observed == Observed([node(), pod("a")])
    assert deciding == Deciding(1001.0)
    assert isinstance(planned, Planned)
    assert planned.gangs[0].nodes == [("n0", 1)]
    assert isinstance(verified, Verified)
    assert verified.problems == []


def test_no_secret_of_a_pod_is_recorded_but_labels_are(path):
    spec = {
        "schedulerName": "quorate",
        "containers": [
            {
                "name": "main",
                "image": "registry.example/app:v1",
                "args": [f"--password={SECRET}"],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
        "imagePullSecrets": [{"name": SECRET}],
        "serviceAccountName": SECRET,
    }
    metadata = {
        "name": "p",
        "namespace": "team",
        "uid": "u1",
        "annotations": {"vault/token": SECRET, "scheduling.k8s.io/other": SECRET},
        "labels": {"app": "a-label"},
    }
    raw = {"metadata": metadata, "spec": spec, "status": {"message": SECRET, "phase": "Pending"}}
    decoded = PodDecoder(frozenset({"quorate"})).decode(json.dumps(raw).encode())
    told = Told(bytes_max=16000)
    told.observe(decoded)
    for number in range(80):
        told.decide()
        told.observe(node(cpu=number))
    assert any(isinstance(one, Checkpoint) for one in told.records(path))
    for state in (path.read_bytes(), *_states(path)):
        assert SECRET.encode() not in state
    whole = Told()
    whole.observe(decoded)
    whole.records(path)
    assert SECRET.encode() not in path.read_bytes()
    assert b"a-label" in path.read_bytes()


def _states(path):
    return [zlib.decompress(r.state) for r in recording.read(path) if isinstance(r, Checkpoint)]


def test_only_the_owner_may_read_the_file_and_it_replaces_no_links_target(tmp_path, path):
    target = tmp_path / "target"
    target.write_text("precious")
    path.symlink_to(target)
    Told().records(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert target.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["some.recording", "target"]


# The ring


def test_the_ring_stays_within_its_bytes_and_begins_with_a_state(path):
    told = Told(bytes_max=40_000)
    told.observe(node())
    for number in range(2000):
        told.observe(pod(f"p{number}"))
        told.decide()
        told.observe(PodGone(f"uid-p{number}"))
        assert told.recorder.size_bytes <= 40_000
    assert told.recorder.size_bytes > 10_000
    records = told.records(path)
    assert isinstance(records[0], Begin)
    assert isinstance(records[1], Checkpoint)
    assert records[1].decisions > 1000
    replay = Replay()
    replay.run(records)
    assert replay.differences == 0
    assert replay.equal == replay.decisions > 20
    assert replay.decision == 2000


def test_a_replica_that_only_watches_turns_over_too():
    told = Told(bytes_max=20_000)
    for number in range(1000):
        told.observe(node(f"n{number % 5}", cpu=number))
    assert told.recorder.size_bytes <= 20_000
    assert told.recorder.checkpoints > 2


def test_a_segment_ends_at_a_quiet_moment_if_there_is_one():
    busy, quiet = Told(bytes_max=64_000), Told(bytes_max=64_000)
    for number in range(40):
        busy.observe(pod(f"p{number}"))
        quiet.observe(node(f"n{number}"), NodeGone(f"n{number}"))
        busy.decide()
        quiet.decide()
    assert busy.recorder.size_bytes > 64_000 / 8
    assert busy.recorder.checkpoints == 0
    assert quiet.recorder.checkpoints == 1


def test_a_state_that_is_too_large_ends_the_recording_and_nothing_else(path):
    told = Told(bytes_max=3000)
    for number in range(200):
        told.observe(pod(f"p{number}-{'x' * 50}", labels=((f"k{number}", f"v{number * 7919}"),)))
        told.decide()
    assert not told.recorder.is_on
    (stopped,) = [one for one in told.records(path) if isinstance(one, Stopped)]
    assert "recorder.maxBytes" in stopped.why
    assert len(told.scheduler.cluster.pods) == 200


def test_a_recorder_without_bytes_records_nothing(path):
    told = Told(bytes_max=0)
    told.observe(node(), pod("a"))
    told.decide()
    assert told.recorder.size_bytes == 0
    assert [type(one) for one in told.records(path)] == [Begin]


# Files that are not whole


def test_a_file_that_is_cut_off_is_read_up_to_there(path):
    told = Told()
    told.observe(node())
    told.decide()
    whole = told.records(path)
    data = path.read_bytes()
    counts = []
    for size in range(len(data), len(recording.MAGIC) - 1, -1):
        path.write_bytes(data[:size])
        counts.append(len(list(recording.read(path))))
    assert counts[0] == len(whole)
    assert all(one >= other for one, other in pairwise(counts))
    assert counts[-1] == 0


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", "is no recording of quorate's"),
        (recording.MAGIC + b"\xff\xff\xff\xff", "record 0 is damaged: its length"),
        (recording.MAGIC + b"\0\0\0\1\xc1", "record 0 is damaged, or another version's"),
        (recording.MAGIC + b"\0\0\0\1\x01", "record 0 is damaged, or another version's"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_in_words(path, data, why):
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=why.replace("'", ".")):
        list(recording.read(path))


# Checkpoints of strangers


def test_a_checkpoint_makes_no_objects_but_those_of_the_core():
    scheduler = Scheduler(Policy(), {}, "q")
    for name in ("os:system", "quorate.shell.app:App", "quorate.core.scheduler:np", "x"):
        with pytest.raises(CheckpointError):
            restore(scheduler, _packed([[name], []]))
    with pytest.raises(CheckpointError):
        restore(scheduler, b"no zlib")
    with pytest.raises(CheckpointError):
        restore(scheduler, _packed({"a": 1}))


def _packed(document):
    return zlib.compress(msgspec.msgpack.encode(document))


def test_a_checkpoint_of_other_attributes_is_refused():
    scheduler = Scheduler(Policy(), {}, "q")
    scheduler.hobby = "chess"
    with pytest.raises(CheckpointError, match="Scheduler differs in hobby"):
        restore(Scheduler(Policy(), {}, "q"), capture(scheduler))


def test_what_has_no_bytes_ends_the_recording(path):
    told = Told(bytes_max=100)
    told.scheduler.hobby = lambda: None
    told.observe(node())
    told.observe(node("n1"))
    assert not told.recorder.is_on
    assert told.records(path)[-1].why.startswith("the state cannot be written: a builtins.function")


# The self-check


@pytest.fixture
def checked():
    w = World()
    for number in range(3):
        w.node(f"n{number}", cpu=4)
    w.gang("done", 2)
    w.cycle()
    clock = ManualClock()
    metrics = Metrics()
    return w, clock, metrics, SelfCheck(w.scheduler, metrics, clock)


def counted(metrics):
    return {
        str(invariant): value
        for invariant in Invariant
        if (value := metrics.invariant_violations.labels(str(invariant))._value.get())
    }


def test_a_violation_is_counted_once_while_it_stands_and_again_when_it_returns(checked):
    w, clock, metrics, check = checked
    check.look()
    assert counted(metrics) == {}
    assert metrics.invariant_checks._value.get() == 6  # 3 nodes, 1 gang, 2 pods
    free = w.cluster.nodes.free[0, 0]
    for broken, times in ((1, 1), (1, 1), (0, 1), (1, 2)):
        w.cluster.nodes.free[0, 0] = free - broken
        clock.time_s += 1.0
        check.look()
        assert counted(metrics) == {"node-counts": times}


def test_what_may_stand_for_a_while_is_counted_after_that_while(checked):
    w, clock, metrics, check = checked
    w.running("foreign", w.where("done-0"), cpu=4)
    for _ in range(15):
        check.look()
        assert counted(metrics) == {}
        clock.time_s += 1.0
    for _ in range(3):
        check.look()
        clock.time_s += 1.0
        assert counted(metrics) == {"node-shared-within-allocatable": 1}


def test_a_node_that_shrank_is_excused_until_it_is_no_longer_over(checked):
    w, clock, metrics, check = checked
    name = w.where("done-0")
    smaller = NodeChanged(Node(name, (("cpu", 1000), ("pods", 110))))
    check.news([smaller])
    w.observe(smaller)
    for _ in range(3):
        check.look()
        clock.time_s += 20.0
    assert counted(metrics) == {}
    w.node(name, cpu=4)
    check.look()
    w.observe(smaller)  # nobody told the check that it shrank: our binds are over
    for _ in range(3):
        check.look()
        clock.time_s += 20.0
    assert set(counted(metrics)) == {"node-within-allocatable"}


def test_a_look_takes_a_bounded_time_and_goes_on_where_it_ended(checked):
    w, _, metrics, _ = checked

    class Slow(ManualClock):
        def monotonic_s(self):
            self.time_s += 0.0006
            return self.time_s

    check = SelfCheck(w.scheduler, metrics, Slow())
    seen = []
    for _ in range(5):  # the fourth look ends the round
        check.look()
        seen.append(metrics.invariant_checks._value.get())
    assert seen == [2, 4, 6, 6, 8]


def test_objects_that_go_while_a_round_is_under_way_are_passed_over(checked):
    w, _, metrics, check = checked
    check._round = check._objects()
    next(check._round)
    w.lose_node("n1")
    w.drop_object(GangKey("team", "x-k8s", "done"))
    w.delete("done-0", "done-1")
    w.observe(GangChanged(GangSpec(GangKey("team", "x-k8s", "later"), 2)))
    w.decide()
    check.look()
    assert counted(metrics) == {}
