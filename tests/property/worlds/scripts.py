"""What worlds are about: themes, settings and scripts, all drawn from a seed.

A script is a list of moves, each with a seed of its own, so that a script without some of its moves
is a script: failures are made smaller by leaving moves out.
"""

from __future__ import annotations

import random

import msgspec

from quorate.core.model import GangKey
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER, Profile
from tests.property.worlds import bounds
from tests.property.worlds.shapes import Taste
from tests.property.worlds.themes import BASE, THEMES, Theme
from tests.unit.core.world import LABELS, key

PACKED = Profile(packing="most-allocated", preempts=False)
ALL_GANGS = (
    key("x"),
    key("y"),
    key("l", LABELS),
    key("s", "sigs"),
    key("v", "volcano"),
    key("n", "native"),
    key("m", LABELS),
)


class Setting(msgspec.Struct):
    """What a world is like, besides its script."""

    seed: int
    theme: str
    policy: Policy
    taste: Taste
    gangs: tuple[GangKey, ...]
    priorities: dict[GangKey, int]
    schedulers: dict[GangKey, str]
    label_mins: dict[GangKey, int]
    kube_schedulers: tuple[str, ...]
    nodes_max: int = 4
    members_max: int = 4
    gates: float = 0.1
    checks: float = 0.1
    """How often the core's own invariants are checked after a decision."""
    rest_checks: float = 0.5
    """How often at rest."""
    faults: bool = True
    lags: bool = False
    twin: bool = False
    is_exact: bool = True
    """Whether the bounds of this world leave the search for a placement its full length."""
    expects_defects: bool = False
    """Whether defects are planted, so that the core may set gangs and objects aside."""
    bounds: dict[str, int] = {}
    """Bounds of the core that are set small in this world."""


def draw(seed: int, theme: str = "") -> tuple[Setting, list[tuple[str, int]]]:
    """Return the world of a seed: its setting and its script. ``theme`` draws it of that theme."""
    chance = random.Random(seed)
    name = chance.choices(list(THEMES), [one.weight for one in THEMES.values()])[0]
    name = theme or name
    setting = _setting(seed, name, THEMES[name], chance)
    return setting, _script(setting, THEMES[name], chance)


def _setting(seed: int, name: str, theme: Theme, chance: random.Random) -> Setting:
    gangs = tuple(chance.sample(ALL_GANGS, chance.choice([2, 3, 4, 7])))
    if not any(one.dialect != LABELS for one in gangs):
        gangs = (*gangs, key("x"))
    taste = msgspec.structs.replace(Taste(), **theme.taste, pool_seed=chance.randrange(2**32))
    policy, is_exact = _policy(chance, theme)
    return Setting(
        seed=seed,
        theme=name,
        policy=policy,
        taste=taste,
        gangs=gangs,
        priorities={one: chance.choice([0, 0, 0, 5]) for one in gangs},
        schedulers={
            one: "default-scheduler" if chance.random() < 0.1 else "quorate" for one in gangs
        },
        label_mins={one: chance.choice([1, 2, 2, 3]) for one in gangs if one.dialect == LABELS},
        kube_schedulers=("default-scheduler",) * 3 + ("packed",),
        nodes_max=chance.choice(theme.nodes),
        members_max=chance.choice(theme.members),
        gates=theme.gates,
        faults=chance.random() < theme.faults,
        lags=chance.random() < theme.lags,
        twin=chance.random() < 0.05,
        is_exact=is_exact,
        bounds=bounds.small(chance) if chance.random() < theme.few else {},
    )


def _policy(chance: random.Random, theme: Theme) -> tuple[Policy, bool]:
    steps = chance.choice([20_000] * 9 + [50, 1_000])
    few = chance.random() < theme.few
    policy = Policy(
        scheduler_names=("quorate", "default-scheduler", "packed"),
        profiles=(("default-scheduler", KUBE_SCHEDULER), ("packed", PACKED)),
        packing=chance.choice(["most-allocated", "least-allocated"]),
        attempt_timeout_s=chance.choice([10.0, 60.0]),
        avoid_s=chance.choice([20.0, 300.0]),
        hold_s=chance.choice([0.0, 30.0, 300.0]),
        binds_per_plan_max=chance.choice([1, 2, 5]) if few else 100_000,
        singles_per_plan_max=chance.choice([1, 2]) if few else 64,
        preemptions_per_plan_max=chance.choice([1, 2]) if few else 20,
        search_steps_max=steps,
        held_slots_per_gang_max=chance.choice([1, 2]) if few else 256,
        held_slots_per_namespace_max=chance.choice([1, 3]) if few else 512,
        hold_s_max=chance.choice([50.0, 1800.0]),
    )
    return policy, steps >= 20_000


def _script(setting: Setting, theme: Theme, chance: random.Random) -> list[tuple[str, int]]:
    def move(name: str) -> tuple[str, int]:
        return name, chance.randrange(2**32)

    script = [move("first_nodes"), move("first_specs")]
    script += [move(name) for name in theme.begins]
    weights = BASE | theme.moves
    names, likes = list(weights), list(weights.values())
    script += [move(name) for name in chance.choices(names, likes, k=chance.choice(theme.length))]
    nudges = theme.nudged_by or weights
    for _ in range(chance.choice(theme.nudges)):
        script.append(move("rest"))
        few = chance.choices(list(nudges), list(nudges.values()), k=chance.choice([1, 1, 2]))
        script += [move(name) for name in few]
    return [*script, move("rest")]


def seed_of(run: int, number: int) -> int:
    """Return the seed of a run's world of this number."""
    return random.Random(f"{run}/{number}").randrange(2**48)
