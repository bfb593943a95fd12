"""Play a world by its seed."""

from __future__ import annotations

import time

import msgspec

from tests.property.seeds import SEED, times
from tests.property.worlds import large
from tests.property.worlds.findings import kind_of
from tests.property.worlds.scripts import draw, seed_of
from tests.property.worlds.world import World


def some_worlds(count, *themes, of=World, **setting):
    """Yield ``times`` so many worlds of the kept seed, by turns of each theme, and their scripts.

    ``of`` is the class of world, ``setting`` what differs from what is drawn.
    """
    for number in range(times(count)):
        drawn, script = draw(seed_of(SEED, number), themes[number % len(themes)])
        yield of(msgspec.structs.replace(drawn, **setting)), script


class Result(msgspec.Struct):
    """What became of one world. ``kind`` is "" if all was well."""

    seed: int
    theme: str
    kind: str = ""
    text: str = ""
    seconds: float = 0.0


def play(seed, theme=""):
    """Play the world of a seed."""
    begin_s = time.process_time()
    setting, script = draw(seed, theme)
    error = error_of(setting, script)
    result = Result(seed, setting.theme, seconds=time.process_time() - begin_s)
    if error is not None:
        result.kind, result.text = kind_of(error), str(error)
    return result


def play_large(seed):
    """Play the large world of a seed."""
    begin_s = time.process_time()
    name = list(large.BUILDERS)[seed % len(large.BUILDERS)]
    result = Result(seed, f"large {name}")
    try:
        large.play(name, seed)
    except Exception as error:
        result.kind, result.text = kind_of(error), f"{name}, seed {seed}: {error}"
    result.seconds = time.process_time() - begin_s
    return result


def error_of(setting, script, log=None):
    """Return what went wrong in a world, or None."""
    try:
        world = World(setting)
        world.log = log
        world.play(script)
    except Exception as error:
        return error
    return None
