"""Whatever happens in any world: safe, live, explained, and without a defect of ours.

``QUORATE_SEED`` draws others; ``python -m tests.property.worlds`` plays many, or one of them alone.
"""

import pytest

from tests.property.seeds import SEED, kept, times
from tests.property.worlds.running import play
from tests.property.worlds.scripts import seed_of

WORLDS = times(400)
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_no_world_breaks_a_promise(part):
    failed = []
    for index in range(1 + part, 1 + WORLDS, PARTS):
        result = play(seed_of(SEED, index))
        if result.kind:
            seed = f"seed {result.seed}"
            again = f"python -m tests.property.worlds --seed {SEED} --world {index} --shrink"
            failed.append(f"{result.kind} ({result.theme}, {seed})\n    {result.text}\n    {again}")
    assert not failed, f"{len(failed)} worlds failed:\n" + "\n".join(failed)


def test_no_world_that_once_failed_breaks_a_promise():
    results = [play(seed) for seed in kept("worlds")]
    assert not [result for result in results if result.kind]
