"""Chaos: one function of the core raises an exception at one of its calls, in a random world.

The scheduler has to go on: nothing escapes through its door, all that the world's accounts forbid
stays forbidden, and at rest, when what was set aside has been tried again, a fresh scheduler finds
nothing to do. Functions are found by playing worlds under a trace and counting calls; that function
is then hit, in one of the worlds that reach it, at a call that the seed draws.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import operator
import sys
from collections import Counter
from typing import NamedTuple

import msgspec

from tests.property.worlds.findings import FindingError, kind_of
from tests.property.worlds.scripts import draw, seed_of
from tests.property.worlds.world import World

THEMES = ("gangs", "life", "kube", "kube rules", "tied", "volumes", "devices", "moved", "restarts")
"""Worlds of these themes are played, one after the other."""
DOOR = frozenset(
    {
        *("Scheduler.observe", "Scheduler.decide", "Scheduler.verified"),
        *("Scheduler.apply", "Scheduler.may_complete", "Scheduler.journal", "Scheduler.incidents"),
        *("Scheduler.explainer", "Explainer.__init__", "Explainer.explain"),
    }
)
"""The door itself: these contain, and are not hit."""
LIBRARY = frozenset({"Library.compile", "Library.run", "Library._optional"})
"""What is raised in them is what the CEL library raises: a selector is broken then."""
_MOVES_MAX = 26


class PlantedError(Exception):
    """A defect of ours, as chaos plants it."""


class BareError(BaseException):
    """One that nobody contains: to show that such a one is seen."""


class Target(NamedTuple):
    """A function of the core, by its file and qualified name."""

    module: str
    name: str

    def __str__(self):
        return f"{self.module}:{self.name}"


def target_of(code):
    return Target(code.co_filename.rpartition("/quorate/")[2], code.co_qualname)


def small_world(run, number):
    """Return the setting and the script of a world that is played in a few milliseconds."""
    setting, script = draw(seed_of(run, number), THEMES[number % len(THEMES)])
    setting = msgspec.structs.replace(
        setting,
        twin=False,
        checks=0.0,
        rest_checks=1.0,
        is_exact=True,
        bounds={"GREEDY_ORDERS_MAX": 3},  # more of them call nothing else, and cost most
        policy=msgspec.structs.replace(setting.policy, search_steps_max=20_000),
    )
    moves = [move for move in script if move[0] != "rest"]
    begins = [move for move in moves if move[0].startswith(("first_", "begin_"))]
    others = [move for move in moves if move not in begins]
    return setting, [*begins, *others[:_MOVES_MAX], script[-1]]


class Trace:
    """Calls the door under a trace of all function calls."""

    def calls(self, owner, name, *arguments):
        before = sys.gettrace()
        sys.settrace(self.on_call)
        try:
            return getattr(owner, name)(*arguments)
        finally:
            sys.settrace(before)

    def on_call(self, frame, event, _):
        raise NotImplementedError


class Counting(Trace):
    """Counts the calls of each function."""

    def __init__(self):
        self.counts = Counter()

    def on_call(self, frame, event, _):
        if is_run(frame):
            self.counts[frame.f_code] += 1


class Planting(Trace):
    """Raises at one call of one function."""

    def __init__(self, code, place, error):
        self.code, self.left, self.error = code, place, error

    def calls(self, owner, name, *arguments):
        if self.left <= 0:
            return getattr(owner, name)(*arguments)  # what was to be raised was raised
        return super().calls(owner, name, *arguments)

    def on_call(self, frame, event, _):
        if frame.f_code is self.code and is_run(frame):
            self.left -= 1
            if self.left == 0:
                raise self.error(f"planted in {self.code.co_qualname}")


def is_run(frame):
    """Whether the function begins or goes on; else it is a generator that is closed.

    What is raised while Python closes a generator reaches nobody, so it shows nothing.
    """
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "RESUME"


def play(setting, script, trace):
    world = World(msgspec.structs.replace(setting, expects_defects=True))
    world.calls = trace.calls
    world.play(script)
    return world


def reached(run, worlds):
    """Return for each function of the core the worlds that call it.

    Each with how often it does, and how many calls of all functions it takes to play it.
    """
    found = {}
    for number in range(worlds):
        setting, script = small_world(run, number)
        trace = Counting()
        with contextlib.suppress(Exception):  # what is wrong without chaos is found elsewhere
            play(setting, script, trace)
            calls = trace.counts.total()
            for code, times in trace.counts.items():
                if is_target(code):
                    found.setdefault(code, []).append((number, times, calls))
    return found


def is_target(code):
    if "/quorate/core/" not in code.co_filename or code.co_name.startswith("<"):
        return False
    return code.co_qualname not in DOOR | LIBRARY


class Hit(NamedTuple):
    """One try: the function, the world, and which of its calls fails."""

    code: object
    number: int
    place: int

    def __str__(self):
        return f"{target_of(self.code)} at call {self.place} in world {self.number}"


def hits(run, found, chance, count):
    """Draw so many functions to hit.

    Of two worlds that call a function the smaller one is played: a few worlds cost as much as all
    others together.
    """
    codes = sorted(found, key=lambda code: (target_of(code), code.co_firstlineno))
    chosen = chance.sample(codes, min(count, len(codes)))
    for code in chosen:
        number, times, _ = min(chance.choices(found[code], k=2), key=lambda world: world[2])
        yield Hit(code, number, chance.randint(1, times))


def hit_of(run, number, name, place):
    """Return the hit of a function by its name, as ``Target`` writes it, in one world of a run.

    None: the world does not call it, as when its drawing has changed. Raises AttributeError or
    ModuleNotFoundError: there is no such function.
    """
    module, _, qualified = name.removeprefix("core/").partition(":")
    owner = importlib.import_module("quorate.core." + module.removesuffix(".py").replace("/", "."))
    operator.attrgetter(qualified)(owner)
    trace = Counting()
    play(*small_world(run, number), trace)
    for code, times in trace.counts.items():
        if str(target_of(code)) == name:
            return Hit(code, number, min(place, times))
    return None


def failure_of(run, hit, contained=True):
    """Play a world with one defect; return what is wrong, or ""."""
    setting, script = small_world(run, hit.number)
    trace = Planting(hit.code, hit.place, PlantedError if contained else BareError)
    try:
        play(setting, script, trace)
    except (PlantedError, BareError):
        return f"escapes: {hit}"
    except FindingError as error:
        return f"{error.kind}: {hit}: {error.text}"
    except Exception as error:
        return f"{kind_of(error)}: {hit}"
    return "" if trace.left <= 0 else f"was not met: {hit}"
