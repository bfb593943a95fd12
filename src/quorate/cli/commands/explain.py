"""``quorate why`` and ``quorate gangs``: survey the cluster and explain gangs with the core.

In: how to reach the cluster and what to look for. Out: text or data on standard output, and an exit
code: 0 found, 1 no such gang, 2 the cluster or the configuration is at fault.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from quorate.cli.show import gang_table, output, why_text
from quorate.cli.show.progress import Progress
from quorate.cli.show.survey_result import SurveyResult, as_data, explanations
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation
from quorate.core.scheduler import Scheduler
from quorate.shell.configuration.config import Config, ConfigError, load
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import KubeConfigError, load_credentials
from quorate.shell.leader_reservations import with_reservations
from quorate.shell.process.clock import SystemClock
from quorate.shell.survey import Leader, SurveyError, add_owners, leader, survey

_ALIKE_MAX = 3


class Access(NamedTuple):
    """How to reach the cluster, and the namespace to look in: ``""`` is all, None the context's."""

    kubeconfig: Path | None
    context: str | None
    config_file: Path | None
    namespace: str | None


Choose = Callable[[Scheduler, str], list[GangKey]]
Show = Callable[[SurveyResult, list[Explanation]], int]


def why(access: Access, name: str, form: str) -> int:
    """Explain the gang of that name, or the gang of the pod of that name; return the exit code."""
    namespace, slash, bare = name.rpartition("/")
    if not bare or (slash and not namespace):
        return output.error(f"{name!r} is no name: write GANG, or NAMESPACE/GANG")
    if namespace:
        access = access._replace(namespace=namespace)

    def choose(scheduler: Scheduler, where: str) -> list[GangKey]:
        return named(scheduler, where, bare)

    def show(result: SurveyResult, found: list[Explanation]) -> int:
        if not found:
            place = f"in namespace {result.namespace}" if result.namespace else "in any namespace"
            output.error(
                f"no gang and no pod of ours is named {bare} {place}"
                f"{_instead(result, bare)} See: quorate gangs -A --pods"
            )
            return 1
        if form in ("json", "yaml"):
            output.print_data([as_data(one, result) for one in found], form)
            return 0
        for one in found:
            output.print_lines(why_text.lines_of(one, result, wide=form == "wide"))
        return 0

    return _explain(access, choose, show)


def gangs(access: Access, *, with_pods: bool, form: str) -> int:
    """Print the gangs of one namespace or of all; return the exit code."""

    def choose(scheduler: Scheduler, where: str) -> list[GangKey]:
        return sorted(
            key
            for key, gang in scheduler.cluster.gangs.items()
            if where in ("", key.namespace)
            and (gang.ours or not gang.members)
            and (with_pods or not key.is_single)
        )

    def show(result: SurveyResult, found: list[Explanation]) -> int:
        if form in ("json", "yaml"):
            output.print_data([as_data(one, result) for one in found], form)
        elif not found:
            where = f"in namespace {result.namespace}; -A looks in all" if result.namespace else ""
            output.say(f"No gangs found{f' {where}' if where else ''}.", err=True)
        else:
            gang_table.print_table(found, result, wide=form == "wide")
        return 0

    return _explain(access, choose, show)


def _explain(access: Access, choose: Choose, show: Show) -> int:
    """Survey the cluster and show the chosen gangs. Errors become one line and exit code 2."""
    clock = SystemClock()
    try:
        config = load(access.config_file) if access.config_file else Config.default()
        with Progress(clock) as progress:
            result = asyncio.run(_survey(access, config, choose, clock, progress))
    except (ConfigError, KubeConfigError, SurveyError) as error:
        return output.error(str(error))
    return show(result, result.found)


async def _survey(
    access: Access, config: Config, choose: Choose, clock: SystemClock, progress: Progress
) -> SurveyResult:
    credentials = await load_credentials(access.kubeconfig, access.context, clock=clock)
    where = credentials.namespace if access.namespace is None else access.namespace
    async with KubeClient(credentials) as client:
        scheduler = await survey(
            client,
            config.policy,
            clock,
            on_progress=lambda read: progress.say(
                f"reading {credentials.base_url}: {read.nodes:,} nodes, {read.pods:,} pods"
            ),
        )
        keys = choose(scheduler, where)
        progress.say(f"asking for the owners of {len(keys):,} gangs")
        await add_owners(client, scheduler, keys, clock.now_s())
        election = config.leader_election
        holder: Awaitable[Leader] = leader(client, election.namespace, election.name)
        leads, now_s = await holder, clock.now_s()
        progress.say(f"explaining {len(keys):,} gangs")
        found = explanations(scheduler, keys, now_s)
        if leads.holder != "":  # the reservations of a leader end with it
            found = await with_reservations(client, scheduler, found, now_s)
        return SurveyResult(scheduler, keys, leads, now_s, where, found)


def named(scheduler: Scheduler, namespace: str, name: str) -> list[GangKey]:
    """Return the gangs of that name, else those of pods of that name; namespace ``""`` is all."""
    found = [
        key
        for key in scheduler.cluster.gangs
        if namespace in ("", key.namespace) and key.name == name and not key.is_single
    ]
    if found:
        with_pods = [key for key in found if scheduler.cluster.gangs[key].members]
        return sorted(with_pods or found)
    return sorted(
        {
            entry.gang.key
            for entry in scheduler.cluster.pods.values()
            if entry.gang is not None
            and entry.pod.name == name
            and namespace in ("", entry.pod.namespace)
        }
    )


def _instead(result: SurveyResult, name: str) -> str:
    """Return a suggestion: the same name in another namespace, or a similar name."""
    gangs = [key for key in result.scheduler.cluster.gangs if not key.is_single]
    elsewhere = sorted({key.namespace for key in gangs if key.name == name})
    if elsewhere:
        return f", but there is one in namespace {elsewhere[0]} (-n {elsewhere[0]})."
    here = {key.name for key in gangs if result.namespace in ("", key.namespace)}
    alike = difflib.get_close_matches(name, sorted(here), n=_ALIKE_MAX)
    return f"; did you mean {' or '.join(alike)}?" if alike else "."
