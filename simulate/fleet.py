"""Replicas of the scheduler: the production ``App`` on simulated connections, killed and restarted.

A replica that dies runs no further line: its tasks are cancelled, and what they still try to send
in their ``finally`` blocks goes nowhere. What was sent before arrives.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable

import msgspec

from quorate.core.model.plan import Plan
from quorate.core.model.policy import Policy
from quorate.shell.app import App
from quorate.shell.configuration.config import Config, LeaderElection
from quorate.shell.kube.client import KubeClient
from quorate.shell.lease.leadership import LeaseLostError
from simulate.cluster.network import Connection, Link
from simulate.cluster.world import EPOCH_S, SYSTEM, World
from simulate.virtual_loop import GROUP

ATTEMPT_S = 5.0
HOLD_S = 8.0
"""Short: when a run comes to rest nothing is held any more, so all that fits has to be placed."""
_BURIAL_TURNS_MAX = 100
CONFIG = Config(
    policy=Policy(
        attempt_timeout_s=ATTEMPT_S, hold_s=HOLD_S, backoff_s=0.5, backoff_s_max=4.0, avoid_s=8.0
    ),
    leader_election=LeaderElection(
        namespace=SYSTEM, lease_duration_s=4, renew_deadline_s=2.5, retry_period_s=1.0
    ),
)


def config_of(world: World) -> Config:
    """Return what each replica is configured with."""
    if world.policy is None:
        return CONFIG
    return msgspec.structs.replace(CONFIG, policy=world.policy)


class ReplicaClock:
    """The clocks of one machine: the wall clock may jump, the other never does."""

    def __init__(self, world: World) -> None:
        self._loop = world.loop
        self.ahead_s = 0.0

    def now_s(self) -> float:
        """Return wall clock time."""
        return EPOCH_S + self._loop.now_s + self.ahead_s

    def monotonic_s(self) -> float:
        """Return the seconds that have passed."""
        return self._loop.now_s


class Replica(App):
    """The production scheduler; checkers see each plan before it is carried out."""

    lease_in_thread = False
    owns_memory = False

    def __init__(
        self,
        world: World,
        name: str,
        on_plan: Callable[[Link, Plan], None],
        on_killed: Callable[[], None],
    ) -> None:
        self.link = Link(name, on_killed)
        self.clock = ReplicaClock(world)
        self._on_plan = on_plan

        def connect(write_connections_max: int) -> KubeClient:
            del write_connections_max
            return Connection(world.network, self.link)

        super().__init__(config_of(world), connect, self.clock, name)

    @property
    def leads(self) -> bool:
        """Whether it may act now."""
        return self._may_write()

    @property
    def decides(self) -> bool:
        """Whether its watches have told it of all: it decides nothing before."""
        return self._feed.is_synced

    def _commit(self, plan: Plan) -> None:
        self.link.steps = self.scheduler.planner.steps_taken
        self._on_plan(self.link, plan)
        super()._commit(plan)


class Fleet:
    """Keeps some replicas running, each with a new name after each end."""

    def __init__(
        self,
        world: World,
        on_plan: Callable[[Link, Plan], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._world = world
        self._on_plan = on_plan
        self._on_failure = on_failure
        self._chance: random.Random = world.chance("fleet")
        self._slots: list[_Slot] = []
        self._made = 0
        self.failovers = 0

    @property
    def replicas(self) -> list[Replica]:
        """Return the replicas that run."""
        return [slot.replica for slot in self._slots if slot.replica is not None]

    def leader(self) -> Replica | None:
        """Return the replica that may act, if there is one."""
        return next((replica for replica in self.replicas if replica.leads), None)

    async def run(self, count: int) -> None:
        """Keep ``count`` replicas running, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                slot = _Slot()
                self._slots.append(slot)
                group.create_task(self._keep(slot))

    def stop(self, replica: Replica) -> None:
        """Ask a replica to end by itself, as a rolling update does."""
        for slot in self._slots:
            if slot.replica is replica:
                slot.stop.set()

    def close(self) -> None:
        """Kill all."""
        for slot in self._slots:
            slot.kill()

    async def _keep(self, slot: _Slot) -> None:
        while True:
            await self._one_life(slot)
            self.failovers += 1
            await asyncio.sleep(self._chance.uniform(0.05, 1.5))

    async def _one_life(self, slot: _Slot) -> None:
        self._made += 1
        slot.stop, slot.dead = asyncio.Event(), asyncio.Event()
        replica = Replica(self._world, f"replica_{self._made}", self._on_plan, slot.kill)
        slot.replica, slot.tasks = replica, []
        context = contextvars.copy_context()
        context.run(GROUP.set, slot.tasks)
        life = asyncio.get_running_loop().create_task(replica.schedule(slot.stop), context=context)
        dead = asyncio.ensure_future(slot.dead.wait())
        try:
            await asyncio.wait([life, dead], return_when=asyncio.FIRST_COMPLETED)
        finally:
            dead.cancel()
            slot.kill()
            await _bury(slot.tasks)
            slot.replica = None
        if not life.cancelled():
            error = life.exception()
            if error is not None and not isinstance(error, LeaseLostError):
                self._on_failure(error)


class _Slot:
    def __init__(self) -> None:
        self.replica: Replica | None = None
        self.stop = asyncio.Event()
        self.dead = asyncio.Event()
        self.tasks: list[asyncio.Task[object]] = []

    def kill(self) -> None:
        """Let the replica die: nothing that it does from now on has an effect."""
        if self.replica is None or not self.replica.link.is_alive:
            return
        self.replica.link.is_alive = False
        self.dead.set()
        for task in self.tasks:
            task.cancel()


async def _bury(tasks: list[asyncio.Task[object]]) -> None:
    """Cancel what is left of a dead replica until nothing of it runs."""
    for _ in range(_BURIAL_TURNS_MAX):
        alive = [task for task in tasks if not task.done()]
        if not alive:
            return
        for task in alive:
            task.cancel()
        await asyncio.sleep(0)
    raise RuntimeError(f"tasks that cannot be cancelled: {alive}")
