"""Whatever happens: a recording of it, whole or a ring's rest, replays to the same plans.

Method: random worlds on a recorded scheduler. A tiny ring drops its beginning many times, so that
replay begins at a checkpoint that was taken at any moment of any attempt.
"""

import pytest

from quorate.cli.commands.replay import Replay
from quorate.core.scheduler import Scheduler
from quorate.shell.recording.checkpoint import capture, restore
from quorate.shell.recording.file_format import Checkpoint, Stopped, frame, read, write
from quorate.shell.recording.recorder import Recorder
from tests.property.worlds.running import some_worlds
from tests.property.worlds.world import World
from tests.unit.core.world import APIS

THEMES = ("gangs", "life", "kube", "rules", "full", "moved", "volumes", "devices")
WHOLE, RING = 1 << 30, 64_000


class Recorded:
    """A scheduler that is recorded, as ``shell.app`` does."""

    bytes_max = WHOLE

    def __init__(self, policy, *, identity):
        self.scheduler = Scheduler(policy, identity=identity)
        self.recorder = Recorder(self.scheduler, APIS, identity, self.bytes_max)
        self.decisions = 0

    def __getattr__(self, name):
        return getattr(self.scheduler, name)

    def turn_over(self):
        for _ in self.recorder.checkpoint_slices():
            pass

    def observe(self, changes):
        self.turn_over()
        self.recorder.observed(changes)
        self.scheduler.observe(changes)

    def decide(self, now_s):
        self.decisions += 1
        self.turn_over()
        self.recorder.deciding(now_s)
        plan = self.scheduler.decide(now_s)
        self.recorder.planned(plan)
        return plan

    def verified(self, plan):
        plan, problems = self.scheduler.verified(plan)
        self.recorder.verified(plan, problems)
        return plan, problems


class RecordedWorld(World):
    scheduler_class = Recorded


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("recordings") / "some.recording"


def replayed(world, file):
    write(file, world.scheduler.recorder.frames())
    replay = Replay()
    replay.run(read(file), None)
    assert replay.first is None, replay.first
    return replay


def test_a_whole_recording_replays_to_the_same_plans(file):
    for world, script in some_worlds(150, *THEMES, of=RecordedWorld, bounds={}):
        world.play(script)
        replay = replayed(world, file)
        assert replay.equal == replay.decisions == world.scheduler.decisions


def test_what_is_left_of_a_ring_replays_to_the_same_plans(monkeypatch, file):
    monkeypatch.setattr(Recorded, "bytes_max", RING)
    dropped = 0
    for world, script in some_worlds(80, *THEMES, of=RecordedWorld, bounds={}):
        world.play(2 * script)
        replay = replayed(world, file)
        assert replay.equal == replay.decisions
        records = list(read(file))
        ended = isinstance(records[-1], Stopped)  # a state that is too large for the ring
        assert ended or replay.decision == world.scheduler.decisions
        dropped += any(isinstance(record, Checkpoint) for record in records[1:2])
        whole = Checkpoint(state=capture(world.scheduler.scheduler), changes=0, decisions=0)
        assert world.scheduler.recorder.size_bytes <= RING + len(frame(whole))
    assert dropped


def test_a_restored_scheduler_goes_on_like_the_one_that_was_captured():
    for world, script in some_worlds(100, *THEMES, twin=False):
        half = len(script) // 2
        world.play(script[:half])
        world.twin = Scheduler(world.setting.policy)
        restore(world.twin, capture(world.scheduler))
        world.play(script[half:])  # each decision is compared with the twin's
