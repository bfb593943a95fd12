"""Look at the cluster once for a command, or again and again for ``--watch``.

In: how to reach the cluster, and what is wanted. Out: a ``SurveyResult``, or one line and exit code
2: the cluster or the configuration is at fault. Called by ``why``, ``gangs``, ``nodes``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from quorate.cli.asking.mistakes import perhaps_meant
from quorate.cli.asking.names import Name, find
from quorate.cli.asking.owners_elsewhere import owners_elsewhere
from quorate.cli.asking.told import is_leaders, line_in, told
from quorate.cli.show import output
from quorate.cli.show.progress import Progress
from quorate.cli.show.survey_result import SurveyResult, with_mistakes
from quorate.core.model import GangKey
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler
from quorate.core.words.counting import counted
from quorate.shell.configuration.config import Config, ConfigError, load
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import KubeConfigError, load_credentials
from quorate.shell.process.clock import SystemClock
from quorate.shell.survey import (
    Leader,
    Observed,
    ReadSoFar,
    SurveyError,
    View,
    add_owners,
    leader,
    observing,
)

BAD_CALL = 2
WATCH_S = 1.0
"""How often ``--watch`` looks for news, at most."""
_LEASE_S = 5.0
"""How long the Lease may be waited for: what it says only adds to the rest."""
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


Show = Callable[[SurveyResult], int]
ShowNext = Callable[[SurveyResult], object]
_T = TypeVar("_T")


class Wanted(NamedTuple):
    """What a command asks for: ``choose`` returns the gangs, given a core and a namespace.

    ``names`` are what was typed. ``with_nodes`` is for those who count what is free.
    """

    choose: Callable[[Scheduler, str], list[GangKey]]
    names: Sequence[Name] = ()
    with_nodes: bool = False

    def view(self, where: str) -> View:
        """Return what to look at, given the namespace that is meant (``""``: all)."""
        if self.with_nodes:
            return View("", with_nodes=True)
        places = {name.namespace or where for name in self.names} or {where}
        return View(places.pop() if len(places) == 1 else "")

    def is_elsewhere(self, result: SurveyResult) -> bool:
        """Whether what was asked for by name, or what it lacks, may be in another namespace."""
        is_missing = any(not find(result.scheduler, result.namespace, one) for one in self.names)
        return is_missing or any(
            one.reason is Reason.GANG_OBJECT_MISSING or not one.members.total
            for one in (result.found if self.names else ())
        )


def look(access: Access, wanted: Wanted, show: Show, *, again: ShowNext | None = None) -> int:
    """Survey the cluster and show what is wanted; return the exit code.

    With ``again``, every later state is given to it, until Ctrl-C.
    """
    clock = SystemClock()
    try:
        config = load(access.config_file) if access.config_file else Config.default()
        return asyncio.run(_look(access, config, wanted, clock, show, again))
    except (ConfigError, KubeConfigError, SurveyError) as error:
        return output.error(str(error))


async def _look(
    access: Access,
    config: Config,
    wanted: Wanted,
    clock: SystemClock,
    show: Show,
    again: ShowNext | None,
) -> int:
    credentials = await load_credentials(access.kubeconfig, access.context, clock=clock)
    where = credentials.namespace if access.namespace is None else access.namespace
    async with KubeClient(credentials, timeout_s=access.timeout_s + _MARGIN_S) as client:
        with Progress(clock) as progress:
            url = credentials.base_url
            one = _Look(client, url, config, access.timeout_s, where, wanted, clock, progress.say)
            leads = await one.leader()
            policy = one.policy(leads)
            view = wanted.view(where)
            async with one.observing(view, policy) as observed:
                result = await one.result(observed, leads)
                if view.namespace and wanted.is_elsewhere(result):
                    with contextlib.suppress(SurveyError):  # it may be that we may not look there
                        async with one.observing(View(""), policy) as everywhere:
                            result = await one.result(everywhere, leads)
                progress.stop()
                code = show(result)
                if again is not None and code != BAD_CALL:
                    await _go_on(one._replace(say=lambda _said: None), observed, again)
    return code


async def _go_on(one: _Look, observed: Observed, again: ShowNext) -> None:
    """Show every later state until cancelled. Raises SurveyError."""
    clock, took_s = one.clock, 0.0
    while True:
        await asyncio.sleep(max(WATCH_S, took_s * _WATCH_SHARE))
        if observed.take_news():
            began_s = clock.monotonic_s()
            again(await one.result(observed, await one.leader()))
            took_s = clock.monotonic_s() - began_s


class _Look(NamedTuple):
    """What a look at the cluster needs, beside what was observed."""

    client: KubeClient
    url: str
    config: Config
    timeout_s: float
    where: str
    wanted: Wanted
    clock: SystemClock
    say: Callable[[str], object]

    async def leader(self) -> Leader:
        """Return who leads now, as far as it can be told in time."""
        election = self.config.leader_election
        lease = leader(self.client, election.namespace, election.name)
        return await self._in_time(lease, _LEASE_S) or Leader(None)

    def policy(self, leads: Leader) -> Policy:
        """Return the configured policy with the scheduler names that the leader says it owns."""
        names = leads.scheduler_names
        policy = self.config.policy
        return msgspec.structs.replace(policy, scheduler_names=names) if names else policy

    def observing(
        self, view: View, policy: Policy
    ) -> contextlib.AbstractAsyncContextManager[Observed]:
        """Observe the cluster while the context lasts. Raises SurveyError."""
        return observing(
            self.client,
            view,
            policy,
            self.clock,
            timeout_s=self.timeout_s,
            on_progress=self._say_read,
        )

    def _say_read(self, read: ReadSoFar) -> None:
        nodes = f"{read.nodes:,} nodes, " if self.wanted.with_nodes else ""
        self.say(f"reading {self.url}: {nodes}{read.pods:,} pods")

    async def result(self, observed: Observed, leads: Leader) -> SurveyResult:
        """Explain the chosen gangs; what only adds to that is left out when it takes too long."""
        scheduler, gangs = observed.scheduler, observed.scheduler.cluster.gangs
        keys = self.wanted.choose(scheduler, self.where)
        for key in keys:
            gangs[key].take_marks()
        self.say(f"asking for the owners of {counted(len(keys), 'gang', form=',')}")
        now_s = self.clock.now_s()
        to_come = owners_elsewhere(self.client, scheduler.cluster, keys)
        elsewhere = await self._in_time(to_come) or {}
        own = [key for key in keys if key in elsewhere or not is_leaders(gangs[key])]
        asked = [*own, *perhaps_meant(scheduler, keys)]
        await self._in_time(add_owners(self.client, scheduler, asked, now_s))
        self.say(f"explaining {counted(len(keys), 'gang', form=',')}")
        explainer = scheduler.explainer(now_s)
        made = [told(gangs[key], observed.heard(key), explainer, now_s) for key in keys]
        found = with_mistakes(scheduler, [one.explanation for one in made], elsewhere)
        if leads.holder == "":  # the reservations of a leader end with it
            found = [msgspec.structs.replace(one, held="") for one in found]
        said = {one.explanation.key: one.said for one in made if one.said is not None}
        line = line_in(gangs, observed.heard, observed.namespace)
        return SurveyResult(scheduler, keys, leads, now_s, self.where, found, said, line)

    async def _in_time(self, work: Awaitable[_T], most_s: float = float("inf")) -> _T | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(self.timeout_s, most_s)):
                return await work
        return None
