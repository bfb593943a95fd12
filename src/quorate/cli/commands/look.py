"""Look at the cluster once for a command, or again and again for ``--watch``.

In: how to reach the cluster, and which gangs are wanted. Out: a ``SurveyResult``, or one line and
exit code 2: the cluster or the configuration is at fault. Called by ``why``, ``gangs``, ``nodes``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from quorate.cli.asking.mistakes import perhaps_meant
from quorate.cli.asking.owners_elsewhere import owners_elsewhere
from quorate.cli.show import output
from quorate.cli.show.progress import Progress
from quorate.cli.show.survey_result import SurveyResult, explanations
from quorate.core.model import GangKey
from quorate.core.scheduler import Scheduler
from quorate.core.words.counting import counted
from quorate.shell.configuration.config import Config, ConfigError, load
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import KubeConfigError, load_credentials
from quorate.shell.leader_reservations import with_reservations
from quorate.shell.process.clock import SystemClock
from quorate.shell.survey import Leader, Observed, SurveyError, add_owners, leader, observing

BAD_CALL = 2
WATCH_S = 1.0
"""How often ``--watch`` looks for news, at most."""
_MARGIN_S = 5.0
"""A single request may take that much longer, so that our own limit is the one that is met."""
_WATCH_SHARE = 4
"""A watch rests this many times as long as its last look took: it is one reader among many."""


class Access(NamedTuple):
    """How to reach the cluster, and the namespace to look in: ``""`` is all, None the context's.

    ``timeout_s`` is how long the API server may be silent.
    """

    kubeconfig: Path | None
    context: str | None
    config_file: Path | None
    namespace: str | None
    timeout_s: float


Choose = Callable[[Scheduler, str], list[GangKey]]
Show = Callable[[SurveyResult], int]
ShowNext = Callable[[SurveyResult], object]
_T = TypeVar("_T")


def look(access: Access, choose: Choose, show: Show, *, again: ShowNext | None = None) -> int:
    """Survey the cluster and show the chosen gangs; return the exit code.

    With ``again``, every later state is given to it, until Ctrl-C.
    """
    clock = SystemClock()
    try:
        config = load(access.config_file) if access.config_file else Config.default()
        return asyncio.run(_look(access, config, choose, clock, show, again))
    except (ConfigError, KubeConfigError, SurveyError) as error:
        return output.error(str(error))


async def _look(
    access: Access,
    config: Config,
    choose: Choose,
    clock: SystemClock,
    show: Show,
    again: ShowNext | None,
) -> int:
    credentials = await load_credentials(access.kubeconfig, access.context, clock=clock)
    where = credentials.namespace if access.namespace is None else access.namespace
    async with KubeClient(credentials, timeout_s=access.timeout_s + _MARGIN_S) as client:
        with Progress(clock) as progress:
            sight = observing(
                client,
                config.policy,
                clock,
                timeout_s=access.timeout_s,
                on_progress=lambda read: progress.say(
                    f"reading {credentials.base_url}: {read.nodes:,} nodes, {read.pods:,} pods"
                ),
            )
            async with sight as observed:
                one = _Look(client, config, access.timeout_s, where, choose, clock)
                result = await one.result(observed.scheduler, progress.say)
                progress.stop()
                code = show(result)
                if again is not None and code != BAD_CALL:
                    await _go_on(one, observed, again)
    return code


async def _go_on(one: _Look, observed: Observed, again: ShowNext) -> None:
    """Show every later state until cancelled. Raises SurveyError."""
    clock, took_s = one.clock, 0.0
    while True:
        await asyncio.sleep(max(WATCH_S, took_s * _WATCH_SHARE))
        if observed.take_news():
            began_s = clock.monotonic_s()
            again(await one.result(observed.scheduler, lambda _said: None))
            took_s = clock.monotonic_s() - began_s


class _Look(NamedTuple):
    """What a look at the cluster needs, beside what was observed."""

    client: KubeClient
    config: Config
    timeout_s: float
    where: str
    choose: Choose
    clock: SystemClock

    async def result(self, scheduler: Scheduler, say: Callable[[str], object]) -> SurveyResult:
        """Explain the chosen gangs; what only adds to that is left out when it takes too long."""
        keys = self.choose(scheduler, self.where)
        say(f"asking for the owners of {counted(len(keys), 'gang', form=',')}")
        now_s = self.clock.now_s()
        asked = [*keys, *perhaps_meant(scheduler, keys)]
        await self._in_time(add_owners(self.client, scheduler, asked, now_s))
        election = self.config.leader_election
        lease = leader(self.client, election.namespace, election.name)
        leads = await self._in_time(lease) or Leader(None)
        say(f"explaining {counted(len(keys), 'gang', form=',')}")
        to_come = owners_elsewhere(self.client, scheduler.cluster, keys)
        found = explanations(scheduler, keys, now_s, await self._in_time(to_come))
        if leads.holder != "":  # the reservations of a leader end with it
            more = with_reservations(self.client, scheduler, found, now_s)
            found = await self._in_time(more) or found
        return SurveyResult(scheduler, keys, leads, now_s, self.where, found)

    async def _in_time(self, work: Awaitable[_T]) -> _T | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timeout_s):
                return await work
        return None
