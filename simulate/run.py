"""One run: a seed in, an outcome out. Faults for a while, then calm, then what holds at rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import msgspec

from quorate.core.model.plan import Plan
from simulate.chaos import Chaos
from simulate.checkers.holding import Holding
from simulate.checkers.requests import Checks
from simulate.checkers.rest import unrest
from simulate.checkers.violations import Violation
from simulate.cluster.network import Link
from simulate.cluster.theme import Theme
from simulate.cluster.world import World
from simulate.fleet import CONFIG, Fleet
from simulate.logs import LOG
from simulate.themes.table import themes_of
from simulate.trace import Trace
from simulate.virtual_loop import VirtualLoop
from simulate.workload import Workload

FAULTS_S = 20.0
CALM_S_MAX = 60.0
_TICK_S = 0.5
_QUIET_S = 2.0
_PAUSE_S_MAX = 8.0


class Outcome(msgspec.Struct, kw_only=True):
    """What one seed came to."""

    seed: int
    themes: tuple[str, ...]
    met: dict[str, int]
    """What of its themes was really met, and how often."""
    digest: str
    steps: int
    faults: dict[str, int]
    checks: dict[str, int]
    violations: list[Violation]
    virtual_s: float
    replicas: int


class Run:
    """Everything of one seed; its ``themes`` are drawn from the seed if they are None."""

    def __init__(
        self, seed: int, loop: VirtualLoop, themes: Sequence[type[Theme]] | None = None
    ) -> None:
        self.world = World(seed, loop)
        self.checks = Checks(self.world.history, loop.time)
        self.holding = Holding(self.world.history, self.checks)
        self.world.check = self.checks.check
        self.themes = themes_of(self.world) if themes is None else [t(self.world) for t in themes]
        for theme in self.themes:
            self.world.policy = theme.policy(self.world.policy or CONFIG.policy)
        self.fleet = Fleet(self.world, self._planned, self._failed)
        self.workload = Workload(self.world, self.themes)
        self.chaos = Chaos(self.world, self.fleet, self.workload, self.themes)
        self.world.network.watchers.append(self.checks)
        self.faults_s, self.calm_s_max = FAULTS_S, CALM_S_MAX
        self._broken = asyncio.Event()
        self.checks.on_violation = self._broken.set
        self._trace: Trace | None = None

    async def play(self) -> None:
        """Run to rest, or to the first violation."""
        world = self.world
        self.chaos.build()
        background = [
            asyncio.create_task(world.run_kubelets()),
            asyncio.create_task(self.workload.run()),
            asyncio.create_task(self.fleet.run(world.faults.profile.replicas)),
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._controllers()),
        ]
        harm = asyncio.create_task(self.chaos.run())
        story = asyncio.create_task(self._story(harm))
        broken = asyncio.create_task(self._broken.wait())
        watched = [story, broken, *background]
        try:
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.fleet.close()
            for task in (*watched, harm):
                task.cancel()
            await asyncio.gather(*watched, harm, return_exceptions=True)

    async def _story(self, harm: asyncio.Task[None]) -> None:
        await asyncio.sleep(self.faults_s)
        harm.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await harm
        world = self.world
        world.faults.stop()
        self.chaos.mend()
        calm_since_s = world.loop.now_s
        pause_s = 1.0
        while True:
            await asyncio.sleep(pause_s)
            now_s = world.loop.now_s
            late = now_s - calm_since_s > self.calm_s_max
            if not late and now_s - world.last_write_s < _QUIET_S:
                continue
            problems = unrest(world, self.fleet.leader(), self.checks)
            problems += [problem for theme in self.themes for problem in theme.unrest()]
            if not problems:
                return
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            if late:
                for promise, text in problems:
                    self.checks.violate(promise, text)
                return

    async def _tick(self) -> None:
        """Let the checkers see that time passes."""
        while True:
            await asyncio.sleep(_TICK_S)
            leader = self.fleet.leader()
            can_act = leader is not None and not (
                self.world.network.is_out or leader.link.is_cut_off
            )
            name = leader.link.name if leader is not None and can_act else ""
            self.checks.on_tick(_TICK_S, name)
            decides = leader is not None and can_act and leader.decides
            self.holding.on_tick(_TICK_S, leader if decides else None)

    async def _controllers(self) -> None:
        """Let the controllers of the themes work."""
        chance = self.world.chance("controllers")
        while self.themes:
            await asyncio.sleep(chance.uniform(0.1, 0.5))
            for theme in self.themes:
                theme.step()
        await asyncio.Event().wait()

    def trace(self, say: Callable[[str], object]) -> None:
        """Write down what happens from now on."""
        world = self.world
        self._trace = trace = Trace(world.loop.time, say)
        world.network.watchers.insert(0, trace)
        world.store.watch_all(trace.write)
        LOG.to = trace.log

    def _planned(self, link: Link, plan: Plan) -> None:
        if self._trace is not None:
            self._trace.plan(link, plan)
        self.checks.on_plan(link, plan)
        for theme in self.themes:
            theme.on_plan(link, plan)

    def _failed(self, error: BaseException) -> None:
        self.checks.violate("the scheduler does not fail", f"{type(error).__name__}: {error}")


def run(
    seed: int,
    prepare: Callable[[Run], None] | None = None,
    *,
    themes: Sequence[type[Theme]] | None = None,
) -> Outcome:
    """Run one seed; ``prepare`` may change things before it begins.

    ``themes`` are drawn from the seed if they are None.
    """
    loop = VirtualLoop()
    errors: list[str] = []
    loop.set_exception_handler(lambda _, context: errors.append(str(context)))
    try:
        asyncio.set_event_loop(None)
        LOG.begin()
        return loop.run_until_complete(_outcome(Run(seed, loop, themes), loop, errors, prepare))
    finally:
        loop.close()


async def _outcome(
    one: Run, loop: VirtualLoop, errors: list[str], prepare: Callable[[Run], None] | None
) -> Outcome:
    if prepare is not None:
        prepare(one)
    await one.play()
    for error in [*errors, *LOG.errors]:
        one.checks.violate("no task fails unseen", error)
    world = one.world
    return Outcome(
        seed=world.seed,
        themes=tuple(theme.name for theme in one.themes),
        met=dict(world.met),
        digest=world.digest,
        steps=world.writes,
        faults=dict(world.faults.counts),
        checks=dict(one.checks.made),
        violations=one.checks.violations,
        virtual_s=loop.now_s,
        replicas=one.fleet.failovers,
    )
