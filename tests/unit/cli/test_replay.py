"""Goal: ``quorate replay`` says whether the same plans come out, and shows the first that does not.

Method: recordings of small worlds in files; the command line in this process, and in processes of
other hash seeds, because the order of a set must not decide anything.
"""

import os
import subprocess
import sys

import msgspec
import pytest

from quorate.core.model.changes import NodeChanged, PodBound, PodChanged
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.recording import file_format as recording
from quorate.shell.recording.file_format import Begin, Observed, Planned, Stopped, Verified
from quorate.shell.recording.recorder import Recorder
from tests.unit.core.world import World, binds_of
from tools.testing import HANGS_S, call


class Told:
    """What ``World`` tells its scheduler is recorded; plans are verified as in the shell."""

    def __init__(self, bytes_max=1 << 20):
        self.inner = Scheduler(Policy(), api_words(), "q")
        self.recorder = Recorder(self.inner, api_words(), "q", bytes_max)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def observe(self, changes):
        changes = list(changes)
        for _ in self.recorder.checkpoint_slices():
            pass
        self.recorder.observed(changes)
        self.inner.observe(changes)

    def decide(self, now_s):
        for _ in self.recorder.checkpoint_slices():
            pass
        self.recorder.deciding(now_s)
        plan = self.inner.decide(now_s)
        self.recorder.planned(plan)
        plan, problems = self.inner.verified(plan)
        self.recorder.verified(plan, problems)
        return plan


def recorded_world(**options):
    """Return a world in which one gang has started, one does not fit and one backs off."""
    w = World()
    w.scheduler = Told(**options)
    for name in ("n0", "n1", "n2"):
        w.node(name, cpu=4)
    w.gang("done", 4)
    w.cycle()
    w.gang("large", 40)
    w.cycle()
    return w


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.recording"


@pytest.fixture
def replay(path, capsys):
    """Write a world's recording, changed or not, and replay it."""

    def run(world, *args, change=None):
        recording.write(path, world.scheduler.recorder.frames())
        if change is not None:
            records = [change(record) for record in recording.read(path)]
            recording.write(path, [recording.frame(one) for one in records if one is not None])
        code = call("replay", str(path), *args)
        return code, *capsys.readouterr()

    return run


def test_a_recording_replays_to_the_same_plans(replay):
    code, out, err = replay(recorded_world())
    assert (code, err) == (0, "")
    assert out.startswith("replayed 53 changes and 2 decisions: 2 plans equal, 0 different, in ")
    assert len(out.splitlines()) == 1


def test_until_stops_after_a_decision_and_why_explains_the_gang_then(replay):
    w = recorded_world()
    code, out, _ = replay(w, "--why", "team/large")
    assert code == 0
    assert "Gang team/large (PodGroup, scheduling.x-k8s.io/v1alpha1): Waiting" in out
    assert "40 members must start together and 8 fit" in out
    assert "replayed 53 changes and 2 decisions" in out.splitlines()[-1]
    code, out, _ = replay(w, "--until", "1", "--why", "large")
    assert code == 1
    assert out.splitlines()[0] == "no gang and no pod of ours is named large after decision 1"
    assert "1 plan equal" in out.splitlines()[-1]
    _, out, _ = replay(w, "--until", "1", "--why", "done-0")
    assert "Gang team/done (PodGroup, scheduling.x-k8s.io/v1alpha1): Starting" in out
    _, out, _ = replay(w, "--until", "9")
    assert "note: the recording ends with decision 2" in out
    assert "0 decisions" in replay(w, "--until", "0")[1]


# Differences


def lose_a_node(record):
    """The replaying core hears of n0 with other room."""
    if isinstance(record, Observed):
        return Observed([smaller(change) for change in record.changes])
    return record


def smaller(change):
    if isinstance(change, NodeChanged) and change.node.name == "n0":
        room = (("cpu", 1000), ("pods", 9))
        return NodeChanged(msgspec.structs.replace(change.node, allocatable=room))
    return change


def test_the_first_difference_is_shown_with_the_gang_and_the_bind(replay):
    code, out, _ = replay(recorded_world(), change=lose_a_node)
    first, second, *_, last = out.splitlines()
    assert code == 1
    assert first == "decision 1 (at 1000.000) differs:"
    assert second == "  gang team/done: bind 2 of 4: recorded n0, now n1 (done-1)"
    assert ", 1 different, in " in last


def test_a_gang_that_is_not_placed_now_is_named(replay):
    def without_pods(record):
        if isinstance(record, Observed) and isinstance(record.changes[0], PodChanged):
            return None if record.changes[0].pod.name == "done-0" else record
        return record

    code, out, _ = replay(recorded_world(), change=without_pods)
    assert code == 1
    assert "  gang team/done: recorded with 4 pods on 1 node; not placed now" in out


def test_a_gang_that_is_placed_only_now_and_evictions_and_times_are_named(replay):
    def emptied(record):
        if isinstance(record, Planned) and record.gangs:
            return Planned(digest="0", evictions=["u"], wake_at_s=1.0, touched=record.touched)
        return record

    _, out, _ = replay(recorded_world(), change=emptied)
    assert "  gang team/done: not placed when recorded; now with 4 pods on 1 node" in out
    assert "  evictions: recorded 1, now 0" in out
    assert "  next look: recorded 1.0, now 1060.0" in out


def test_a_verification_that_comes_out_otherwise_is_a_difference(replay):
    def refused(record):
        if isinstance(record, Verified):
            return Verified(digest="0", problems=["node n0 would hold 5"])
        return record

    code, out, _ = replay(recorded_world(), change=refused)
    assert code == 1
    assert "verification found 1 problems when it was recorded, and 0 now" in out
    assert "node n0 would hold 5" in out


def test_after_a_difference_the_next_checkpoint_is_taken_over(replay):
    w = recorded_world(bytes_max=40_000)
    for index in range(60):
        w.pod(f"single-{index}", cpu=0)
        w.cycle()
    assert w.scheduler.recorder.checkpoints
    seen = []

    def first_otherwise(record):
        seen.append(record)
        if isinstance(record, Planned) and sum(isinstance(r, Planned) for r in seen) == 1:
            return Planned(digest="0")
        return record

    code, out, _ = replay(w, change=first_otherwise)
    assert code == 1
    assert ", 1 different, in " in out.splitlines()[-1]


# Notes and errors


def test_other_versions_and_early_ends_are_said(replay):
    def of_the_past(record):
        if isinstance(record, Begin):
            return msgspec.structs.replace(record, quorate="0.0.9")
        return Stopped("too large") if isinstance(record, Observed) else record

    _, out, _ = replay(recorded_world(), change=of_the_past)
    assert "note: quorate 0.0.9 recorded this, " in out
    assert "note: the recording ended early: too large" in out


def test_files_that_cannot_be_replayed_are_one_line(path, capsys):
    def error():
        assert call("replay", str(path)) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        return err

    assert "cannot be read: No such file" in error()
    path.write_text("no recording")
    assert "is no recording of quorate's" in error()
    path.write_bytes(recording.MAGIC)
    assert "holds no records" in error()
    path.write_bytes(recording.MAGIC + recording.frame(Observed([])))
    assert "the recording has no beginning" in error()


def test_a_defect_of_the_core_is_shown_where_it_happens(replay, monkeypatch):
    w = recorded_world()
    made = Scheduler.decide

    def fails(self, now_s):
        if any(key.name == "large" for key in self.cluster.gangs):
            raise KeyError("a defect")
        return made(self, now_s)

    monkeypatch.setattr(Scheduler, "decide", fails)
    code, out, err = replay(w)
    assert code == 1
    assert "KeyError: 'a defect'" in err
    assert "1 plan equal, 0 different, in " in out
    assert out.endswith("s, then failed with KeyError\n")


# Other processes


def test_no_order_of_a_set_decides_anything(path):
    """Many gangs at once, with outcomes in one batch; each process orders its sets otherwise."""
    w = World()
    w.scheduler = Told()
    for index in range(12):
        w.node(f"n{index}", cpu=4, labels={"zone": f"z{index % 3}"})
    for index in range(20):
        w.gang(f"g{index}", 3, cpu=1 + index % 2)
    for after_s in (0.0, 1.0, 70.0, 1.0):
        plan = w.decide(after_s)
        w.observe(*[PodBound(bind.uid, bind.node) for bind in binds_of(plan)[::2]])
    for index in range(0, 20, 3):
        w.delete(f"g{index}-0")
    leave_in_part(w)
    for after_s in (1.0, 5.0, 100.0):
        plan = w.decide(after_s)
        w.observe(*[PodBound(bind.uid, bind.node) for bind in binds_of(plan)])
    recording.write(path, w.scheduler.recorder.frames())
    for seed in ("0", "1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-m", "quorate.cli", "replay", str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def leave_in_part(w):
    """A dead leader left some gangs bound in part: they are news of one batch."""
    for index in range(6):
        which = w.object(f"left{index}", 2)
        for member in range(2):
            node = {"node": "n1", "attempt": "dead-1"} if not member else {}
            w.pod(f"left{index}-{member}", which, cpu=0, **node)
