"""Play many worlds: ``python -m tests.property.worlds --worlds 20000 --seed 7 --processes 2``.

Prints progress, then each class of failure with how often it was met and in which worlds.
``--world N`` plays one world of the run alone, and ``--shrink`` makes it as small as it can.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter

from tests.property.seeds import SEED
from tests.property.worlds import shrinking
from tests.property.worlds.findings import kind_of
from tests.property.worlds.running import error_of, play, play_large
from tests.property.worlds.scripts import draw, seed_of
from tests.property.worlds.themes import THEMES

_SHOWN = 4
"""So many worlds are named for each class of failure."""
_LARGE = 250
"""One world in so many is a large one."""


def main(arguments=None):
    options = parsed(arguments)
    if options.world is not None:
        return show(options)
    print(f"worlds 1 to {options.worlds} of seed {options.seed}", flush=True)
    tally = Tally()
    numbers = range(1, options.worlds + 1)
    jobs = ((options.seed, number, options.theme) for number in numbers)
    begin_s = time.monotonic()
    if options.processes > 1:
        with multiprocessing.get_context("fork").Pool(options.processes) as pool:
            for found in pool.imap_unordered(play_one, jobs, chunksize=8):
                tally.add(*found, begin_s)
    else:
        for job in jobs:
            tally.add(*play_one(job), begin_s)
    tally.summary(options, time.monotonic() - begin_s)
    return 1 if tally.kinds else 0


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="tests.property.worlds", description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the run; fresh if not given")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--theme", default="", choices=["", *THEMES], help="worlds of it alone")
    parser.add_argument("--world", type=int, help="play the world of this number alone")
    parser.add_argument("--shrink", action="store_true", help="... and make it smaller")
    parser.add_argument("--tries", type=int, default=1000, help="of making it smaller (1000)")
    return parser.parse_args(arguments)


def play_one(job):
    run, number, theme = job
    seed = seed_of(run, number)
    if number % _LARGE == 0 and not theme:
        return number, play_large(seed)
    return number, play(seed, theme)


class Tally:
    """Classes of failure, and the worlds in which they were met."""

    def __init__(self):
        self.played = 0
        self.kinds = Counter()
        self.worlds, self.texts = {}, {}
        self.seconds, self.of_theme = Counter(), Counter()
        self._said_s = 0.0

    def add(self, number, result, begin_s):
        self.played += 1
        self.seconds[result.theme] += result.seconds
        self.of_theme[result.theme] += 1
        if result.kind:
            if result.kind not in self.kinds:
                print(f"world {number} ({result.theme}): {result.kind}", flush=True)
            self.kinds[result.kind] += 1
            self.worlds.setdefault(result.kind, []).append(number)
            self.texts.setdefault(result.kind, result.text)
        elapsed_s = time.monotonic() - begin_s
        if elapsed_s - self._said_s >= 10.0:
            self._said_s = elapsed_s
            rate = 60 * self.played / elapsed_s
            failed = self.kinds.total()
            print(f"{self.played} worlds, {rate:.0f} a minute, {failed} failed", flush=True)

    def summary(self, options, elapsed_s):
        rate = 60 * self.played / max(self.seconds.total(), 0.001)
        print(f"{self.played} worlds of seed {options.seed} in {elapsed_s:.0f} s")
        print(f"{rate:.0f} worlds in a minute of one core's time")
        for theme, played in sorted(self.of_theme.items()):
            each_ms = 1000 * self.seconds[theme] / played
            print(f"  {theme:<24} {played:>6} worlds of {each_ms:.0f} ms")
        print(f"{self.kinds.total()} failed, in {len(self.kinds)} classes")
        for kind, times in self.kinds.most_common():
            numbers = ", ".join(map(str, sorted(self.worlds[kind])[:_SHOWN]))
            print(f"{times:>6} {kind}\n       worlds {numbers}; {self.texts[kind][:150]!r}")


def show(options):
    """Play one world, and say what happens in it."""
    if options.world % _LARGE == 0 and not options.theme:
        print(play_large(seed_of(options.seed, options.world)))
        return 1
    setting, script = draw(seed_of(options.seed, options.world), options.theme)
    error = error_of(setting, script)
    if error is None:
        print(f"world {options.world} of seed {options.seed} ({setting.theme}) is well")
        return 0
    if not options.shrink:
        print("\n".join(shrinking.story(setting, script)))
        traceback.print_exception(error)
        return 1
    kind = kind_of(error)
    print(f"# {kind}: {error}")
    script = shrinking.shrunk(setting, script, kind, options.tries // 3)
    found = shrinking.shrunk_news(setting, shrinking.news_of(setting, script), kind, options.tries)
    if found is None:
        print("\n".join(shrinking.story(setting, script)))
    else:
        print("\n".join(shrinking.program(setting, *found)))
    return 1


if __name__ == "__main__":
    sys.exit(main())
