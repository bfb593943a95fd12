"""Whatever happens: a recording of it, whole or a ring's rest, replays to the same plans.

Method: random worlds on a recorded scheduler. A tiny ring drops its beginning many times, so that
replay begins at a checkpoint that was taken at any moment of any attempt.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.cli.commands.replay import Replay
from quorate.core.scheduler import Scheduler
from quorate.shell.recording.checkpoint import capture, restore
from quorate.shell.recording.file_format import Checkpoint, frame, read, write
from quorate.shell.recording.recorder import Recorder
from tests.property.seeds import drawn
from tests.unit.core.random_worlds import Play, scripts
from tests.unit.core.world import APIS


class Recorded:
    """A scheduler and its recorder, told as ``shell.app`` tells them."""

    def __init__(self, scheduler, bytes_max):
        self.scheduler = scheduler
        self.recorder = Recorder(scheduler, APIS, "q", bytes_max)

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
        self.turn_over()
        self.recorder.deciding(now_s)
        plan = self.scheduler.decide(now_s)
        self.recorder.planned(plan)
        plan, problems = self.scheduler.verified(plan)
        self.recorder.verified(plan, problems)
        return plan


class RecordedPlay(Play):
    def __init__(self, bytes_max):
        super().__init__()
        self.scheduler = Recorded(self.scheduler, bytes_max)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("recordings") / "some.recording"


def replayed(play, file, until=None):
    write(file, play.scheduler.recorder.frames())
    replay = Replay()
    replay.run(read(file), until)
    assert replay.first is None, replay.first
    return replay


@drawn(150)
@given(script=scripts())
def test_a_whole_recording_replays_to_the_same_plans(file, script):
    play = RecordedPlay(1 << 20)
    play.run(script)
    replay = replayed(play, file)
    decisions = sum(move[0] == "decide" for move in script)
    assert (replay.equal, replay.differences) == (decisions, 0)
    assert replay.decisions == decisions


@drawn(150)
@given(script=scripts(), ring=st.sampled_from([30_000, 60_000]))
def test_what_is_left_of_a_ring_replays_to_the_same_plans(file, script, ring):
    play = RecordedPlay(ring)
    play.run(script)
    play.do_decide(1.0)
    replay = replayed(play, file)
    assert replay.equal == replay.decisions
    assert replay.decision == sum(move[0] == "decide" for move in script) + 1


@drawn(100)
@given(script=scripts(), later=scripts())
def test_a_restored_scheduler_goes_on_like_the_one_that_was_captured(script, later):
    play = Play()
    play.run(script)
    play.twin = Scheduler(play.policy)
    restore(play.twin, capture(play.scheduler))
    play.run(later)  # each decision is compared with the twin's
    play.come_to_rest()


def test_rings_of_random_worlds_drop_their_beginnings(file):
    """Else the property above would prove nothing."""
    dropped = 0

    @drawn(30)
    @given(script=scripts(), ring=st.just(24_000))
    def run(script, ring):
        nonlocal dropped
        play = RecordedPlay(ring)
        play.run(script)
        write(file, play.scheduler.recorder.frames())
        dropped += any(isinstance(record, Checkpoint) for record in list(read(file))[1:2])
        assert play.scheduler.recorder.size_bytes <= ring + len(frame(capture_of(play)))

    run()
    assert dropped


def capture_of(play):
    return Checkpoint(state=capture(play.scheduler.scheduler), changes=0, decisions=0)
