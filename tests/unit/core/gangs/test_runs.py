"""A run goes on when its last life is over: what succeeded in it counts towards min (ADR 14)."""

import pytest

from tests.unit.core.world import world

OF_ONE, OF_NEXT = {"run": "one"}, {"run": "next"}


def test_the_last_of_a_run_is_replaced_alone_when_the_others_have_succeeded():
    """It waited for ever: "1 of 3 members exist"."""
    w = world(cpu=8)
    gang = w.gang("tune", 3, **OF_ONE)
    w.cycle()
    w.edit("tune-0", phase="Succeeded")
    w.edit("tune-1", phase="Succeeded")
    w.edit("tune-2", phase="Failed")
    w.pod("again", gang, **OF_ONE)
    assert set(w.cycle()) == {"again"}
    assert w.cluster.gangs[gang].started


def test_those_that_failed_together_start_together_and_what_succeeded_counts():
    w = world(cpu=3)
    gang = w.gang("tune", 3, **OF_ONE)
    w.cycle()
    w.edit("tune-0", phase="Succeeded")
    w.pod("other", cpu=2)
    w.edit("tune-1", phase="Failed")
    w.edit("tune-2", phase="Failed")
    w.pod("again-1", gang, **OF_ONE)
    assert set(w.cycle()) == {"other"}
    assert w.why(gang).message.startswith("2 of 3 members exist; 1 of them has succeeded")
    w.pod("again-2", gang, **OF_ONE)
    assert w.cycle() == {}
    assert "2 members must start together and 1 fit" in w.why(gang).message
    w.delete("other")
    assert set(w.cycle()) == {"again-1", "again-2"}


def test_the_smaller_last_wave_of_a_job_starts():
    """Of 5 completions, 4 at a time, the last waited for ever."""
    w = world(cpu=8)
    gang = w.gang("waves", 4, **OF_ONE)
    w.cycle()
    for index in range(4):
        w.edit(f"waves-{index}", phase="Succeeded")
    w.pod("last", gang, **OF_ONE)
    assert set(w.cycle()) == {"last"}


@pytest.mark.parametrize("owners", [(OF_NEXT,), (OF_ONE, OF_NEXT), ({},)])
def test_what_succeeded_counts_for_nothing_in_another_run(owners):
    """Pods of another run, pods without a controller, or such among those of one that goes on."""
    w = world(cpu=8)
    gang = w.gang("tune", 3, **OF_ONE)
    w.cycle()
    for index in range(3):
        w.edit(f"tune-{index}", phase="Succeeded")
    for index, owner in enumerate(owners):
        w.pod(f"again-{index}", gang, **owner)
    assert w.cycle() == {}
    assert w.why(gang).message.startswith(f"{len(owners)} of 3 members exist")


def test_a_successor_counts_what_succeeded_too():
    w = world(cpu=8)
    gang = w.object("tune", 3)
    ended = {"node": "n0", "attempt": "old-1", "attempt_size": 3, "started": True}
    w.pod("tune-0", gang, phase="Succeeded", **ended, **OF_ONE)
    w.pod("tune-1", gang, phase="Succeeded", **ended, **OF_ONE)
    w.pod("tune-2", gang, phase="Failed", **ended, **OF_ONE)
    w.pod("again", gang, **OF_ONE)
    assert set(w.cycle()) == {"again"}


def test_min_resources_ask_nothing_again_for_what_succeeded():
    w = world(cpu=3)
    gang = w.gang("spark", 3, gang_spec={"min_resources": (("cpu", 3000),)}, **OF_ONE)
    w.cycle()
    w.pod("other", cpu=1)
    w.edit("spark-0", phase="Succeeded")
    w.edit("spark-1", phase="Succeeded")
    w.cycle()
    w.edit("spark-2", phase="Failed")
    w.pod("again", gang, **OF_ONE)
    assert set(w.cycle()) == {"again"}
