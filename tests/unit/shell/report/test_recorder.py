"""Goal: the ring holds what entered the core and no secret, stays within its bytes, never harms.

Method: pods as the API server sends them, decoded by the watch's own code; real files.
"""

import json
import stat
import zlib
from itertools import pairwise

import msgspec
import pytest

from quorate.cli.commands.replay import Replay
from quorate.core.model import Node, Pod, PodSpec
from quorate.core.model.changes import NodeChanged, NodeGone, PodChanged, PodGone
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.recording import checkpoint
from quorate.shell.recording import file_format as recording
from quorate.shell.recording import recorder as recorder_module
from quorate.shell.recording.checkpoint import CheckpointError, capture, restore, unpacked
from quorate.shell.recording.file_format import (
    Begin,
    Checkpoint,
    Deciding,
    Observed,
    Planned,
    RecordingError,
    Stopped,
    Verified,
)
from quorate.shell.recording.recorder import Recorder
from quorate.shell.watch.pod.decoding import PodDecoder

SECRET = "hunter2-secret"


class Told:
    """A scheduler whose calls are recorded as ``shell.app`` records them."""

    def __init__(self, bytes_max=1 << 20, policy=None):
        self.scheduler = Scheduler(policy or Policy(), api_words(), "q")
        self.recorder = Recorder(self.scheduler, api_words(), "q", bytes_max)
        self.now_s = 1000.0
        self.slices = 0

    def turn_over(self):
        for _ in self.recorder.checkpoint_slices():
            self.slices += 1

    def observe(self, *changes):
        self.turn_over()
        self.recorder.observed(changes)
        self.scheduler.observe(changes)

    def decide(self):
        self.now_s += 1.0
        self.turn_over()
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
    spec = PodSpec(requests=(("cpu", 1000),))
    return PodChanged(Pod(f"uid-{name}", "team", name, "quorate", spec, **more))


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
    return [unpacked(r.state) for r in recording.read(path) if isinstance(r, Checkpoint)]


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


def test_a_large_state_is_taken_in_slices_of_few_objects(path, monkeypatch):
    told = Told(bytes_max=1 << 22)
    told.observe(*(node(f"n{number}") for number in range(20)))
    told.observe(*(pod(f"p{number}") for number in range(1500)))
    sizes = []
    real = checkpoint._Writer._block

    def counted(self, cls, objects):
        sizes.append(len(objects))
        return real(self, cls, objects)

    monkeypatch.setattr(checkpoint._Writer, "_block", counted)
    state = capture(told.scheduler)
    assert max(sizes) <= checkpoint.BLOCK_OBJECTS
    assert sum(sizes) > 3000
    replayed = Scheduler(Policy(), api_words(), "q")
    restore(replayed, state)
    assert list(replayed.cluster.pods) == list(told.scheduler.cluster.pods)
    assert replayed.decide(1001.0) == told.scheduler.decide(1001.0)


def test_a_state_is_taken_of_a_scheduler_that_placed_a_pod_as_kube_scheduler_does():
    policy = Policy(profiles=(("quorate", KUBE_SCHEDULER),))
    told = Told(policy=policy)
    told.observe(node(), pod("a"))
    told.decide()
    replayed = Scheduler(policy, api_words(), "q")
    restore(replayed, capture(told.scheduler))
    assert [entry.node for entry in replayed.cluster.pods.values()] == ["n0"]


def test_a_state_of_one_stream_as_older_files_have_it_is_read():
    told = Told()
    told.observe(node(), pod("a"))
    state = capture(told.scheduler)
    replayed = Scheduler(Policy(), api_words(), "q")
    restore(replayed, zlib.compress(unpacked(state)))
    assert replayed.decide(1001.0) == told.scheduler.decide(1001.0)


@pytest.mark.parametrize("error", [msgspec.EncodeError, MemoryError, RuntimeError])
@pytest.mark.parametrize("where", ["observed", "checkpoint"])
def test_no_failure_leaves_the_recorder_and_the_next_recording_begins_later(
    path, monkeypatch, error, where
):
    told = Told(bytes_max=40_000)
    failures = []
    told.recorder.on_failure = lambda: failures.append(told.now_s)
    real = recording.frame

    def planted(record):
        if isinstance(record, Observed if where == "observed" else Checkpoint):
            raise error("longer than 2**32-1")
        return real(record)

    with monkeypatch.context() as patched:
        patched.setattr(recording, "frame", planted)
        for number in range(120):
            told.observe(pod(f"p{number}"))
            told.decide()
            told.observe(PodGone(f"uid-p{number}"))
    assert len(failures) == 1
    assert not told.recorder.is_on
    assert told.records(path)[-1].why.startswith(error.__name__)
    told.now_s += 600
    told.decide()
    told.decide()  # it begins before the first decision after that time
    assert told.recorder.is_on
    for number in range(20):
        told.observe(node(f"n{number}"), pod(f"q{number}"))
        told.decide()
    replay = Replay()
    replay.run(told.records(path))
    assert replay.differences == 0
    assert replay.equal == replay.decisions >= 20


def test_a_recording_that_fails_again_begins_ever_later():
    told = Told(bytes_max=100)
    told.scheduler.hobby = lambda: None
    failures = []
    told.recorder.on_failure = lambda: failures.append(told.now_s)
    for number in range(100):
        told.now_s += 99
        told.observe(node(f"n{number}"))
        told.decide()
    gaps = [later - earlier for earlier, later in pairwise(failures)]
    assert len(gaps) >= 3
    assert all(later >= 1.7 * earlier for earlier, later in pairwise(gaps))


def test_the_state_of_a_cluster_with_too_many_pods_is_not_taken(path, monkeypatch):
    monkeypatch.setattr(recorder_module, "PODS_MAX", 10)
    told = Told(bytes_max=60_000)
    for number in range(900):
        told.observe(pod(f"p{number}"))
    assert told.slices == 0
    assert "is full" in told.records(path)[-1].why
    assert told.recorder.size_bytes <= 61_000
    told.decide()
    told.now_s += 1000
    for _ in range(3):
        told.decide()
    assert told.slices == 0
    assert not told.recorder.is_on
    told.observe(*(PodGone(f"uid-p{number}") for number in range(895)))
    for _ in range(3):  # at first, what the core has yet to hear of makes the state too large
        told.now_s += 3000
        told.decide()
    assert told.recorder.is_on


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
    assert told.records(path)[-1].why.startswith("CheckpointError: a builtins.function")
