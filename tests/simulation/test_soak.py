"""The scheduler keeps its promises under faults, and the same seed is the same run."""

import gc
import os
import subprocess
import sys

import pytest

from simulate.__main__ import replay
from simulate.run import run
from simulate.soak import soak
from tests.property.seeds import first, kept, times

SEEDS = times(80)
THEMED_SEEDS = times(120)
FIRST_SEED = first("simulation")


@pytest.mark.timeout(1800)
def test_no_seed_breaks_a_promise():
    failed = []
    summary = soak(SEEDS, FIRST_SEED, with_themes=False, on_failure=failed.append)
    assert not [f"{replay(one.seed, has_themes=False)}: {one.violations[0]}" for one in failed]
    assert summary.seeds == SEEDS


def test_no_seed_that_once_failed_breaks_a_promise():
    broken = []
    for one in kept("simulation"):
        seed, themes = (one[0], ()) if isinstance(one, list) else (one, None)
        broken += [(one, violation) for violation in run(seed, themes=themes).violations]
    assert not broken


@pytest.mark.timeout(1800)
def test_with_themes_every_kind_of_fault_and_of_check_occurs_and_no_promise_is_broken():
    failed = []
    summary = soak(THEMED_SEEDS, FIRST_SEED, on_failure=failed.append)
    assert not [f"make sim SEED={one.seed}: {one.violations[0]}" for one in failed]
    assert len(summary.faults) >= 20
    assert all(summary.faults.values()), summary.faults
    assert len(summary.checks) >= 10


@pytest.mark.parametrize("seed", [7, 8])
def test_the_same_seed_is_the_same_run(seed):
    assert run(seed) == run(seed)


def test_a_run_leaves_no_memory_behind_that_is_never_looked_through():
    """A scheduler freezes what it has listed; here thousands of them share one process."""
    gc.unfreeze()  # what an earlier test has frozen may end during the run, and be one less
    frozen = gc.get_freeze_count()
    run(7)
    assert gc.get_freeze_count() == frozen


def test_another_seed_is_another_run():
    assert run(7).digest != run(8).digest


def test_a_run_does_not_depend_on_how_this_process_hashes():
    program = "import sys; from simulate.__main__ import main; sys.exit(main(sys.argv[1:]))"
    lines = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program, "--seed", "12"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        lines.add(done.stdout)
    assert len(lines) == 1
