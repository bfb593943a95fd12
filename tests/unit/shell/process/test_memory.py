"""Searches for cycles never look through all that is known of a large cluster."""

import gc

import pytest

from quorate.core.model import Pod, PodSpec
from quorate.core.model.changes import PodChanged
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.process import memory
from quorate.shell.process.memory import YoungCollector, freeze_memory, prepare_memory


@pytest.fixture
def searches():
    """What each search for cycles looked through: a generation."""
    seen, thresholds = [], gc.get_threshold()

    def note(phase, info):
        if phase == "start":
            seen.append((info["generation"], len(gc.get_objects())))

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_while_much_is_listed_only_new_objects_are_looked_through(searches):
    prepare_memory()
    searches.clear()
    listed = [[number] for number in range(20 * memory.YOUNG_MAX)]
    assert len(listed) == 20 * memory.YOUNG_MAX
    assert {generation for generation, _ in searches} == {0, 1}


def test_what_was_listed_is_not_looked_through_again(searches):
    prepare_memory()
    listed = [[number] for number in range(20 * memory.YOUNG_MAX)]
    freeze_memory()
    searches.clear()
    gc.collect()
    [(generation, looked_through)] = searches
    assert generation == 2
    assert looked_through < len(listed) / 10


def test_a_list_of_pods_that_are_all_known_is_looked_through_in_parts(searches):
    def pod(number):
        labels = tuple((f"key-{n}", f"value-{number}") for n in range(5))
        return Pod(f"u{number}", "team", f"p{number}", "other", PodSpec(), labels=labels)

    prepare_memory()
    scheduler, young = Scheduler(Policy()), YoungCollector()
    for _ in range(3):
        for start in range(0, 20_000, 500):
            scheduler.observe([PodChanged(pod(start + n)) for n in range(500)])
            young.changed(500)
            assert len(gc.get_objects(0)) < 2 * memory.YOUNG_MAX
            assert len(gc.get_objects(1)) < 2 * memory.MIDDLE_MAX * memory.YOUNG_MAX
    assert 2 not in {generation for generation, _ in searches}
