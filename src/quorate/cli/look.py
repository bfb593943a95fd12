"""``quorate why`` and ``quorate gangs``: look at the cluster with the scheduler's own core.

In: how to reach the cluster and what to look for. Out: text or JSON on standard output, and an exit
code: 0 found, 1 no such gang, 2 the cluster or the configuration is at fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quorate.core.model import GangKey
from quorate.core.reasons import Explanation, GangState, Reason
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.clock import SystemClock
from quorate.shell.config import Config, ConfigError, load
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.credentials import KubeConfigError, load_credentials
from quorate.shell.survey import Leader, SurveyError, add_owners, leader, survey

_WIDTH_OF_A_FILE = 200


class Access(NamedTuple):
    """How to reach the cluster, and the namespace to look in (empty: all)."""

    kubeconfig: Path | None
    context: str | None
    config_file: Path | None
    namespace: str


class Seen(NamedTuple):
    """What was found: the core, the keys looked for, who leads, and when."""

    scheduler: Scheduler
    keys: list[GangKey]
    leader: Leader
    now_s: float


Choose = Callable[[Scheduler], list[GangKey]]


def why(access: Access, name: str, output: str) -> int:
    """Print why the gang of that name, or the gang of the pod of that name, stands as it does."""
    namespace, _, bare = name.rpartition("/")
    access = access._replace(namespace=namespace or access.namespace)

    def choose(scheduler: Scheduler) -> list[GangKey]:
        return _named(scheduler, access.namespace, bare)

    def show(seen: Seen) -> int:
        found = _explanations(seen)
        if not found:
            typer.echo(
                f"Error: no gang and no pod of ours is named {bare} in namespace "
                f"{access.namespace}. See: quorate gangs -A --pods",
                err=True,
            )
            return 1
        if output == "json":
            _print_json([_as_json(explanation, seen.leader) for explanation in found])
            return 0
        for explanation in found:
            typer.echo(_as_text(explanation, seen.leader))
        return 0

    return _look(access, choose, show)


def gangs(access: Access, *, with_pods: bool, output: str) -> int:
    """Print the gangs of a namespace, or of all."""

    def choose(scheduler: Scheduler) -> list[GangKey]:
        return sorted(
            key
            for key, gang in scheduler.cluster.gangs.items()
            if access.namespace in ("", key.namespace)
            and (gang.ours or not gang.members)
            and (with_pods or not key.is_single)
        )

    def show(seen: Seen) -> int:
        found = _explanations(seen)
        if output == "json":
            _print_json([_as_json(explanation, seen.leader) for explanation in found])
        elif not found:
            typer.echo("No gangs found.", err=True)
        else:
            console = Console()
            width = console.width if console.is_terminal else _WIDTH_OF_A_FILE
            Console(width=width).print(_table(found, seen))
        return 0

    return _look(access, choose, show)


def _look(access: Access, choose: Choose, show: Callable[[Seen], int]) -> int:
    """Survey the cluster, explain what was chosen, and turn troubles into one line."""
    try:
        config = load(access.config_file) if access.config_file else Config.default()
        seen = asyncio.run(_survey(access, config, choose))
    except (ConfigError, KubeConfigError, SurveyError) as error:
        typer.echo(f"Error: {error}", err=True)
        return 2
    return show(seen)


async def _survey(access: Access, config: Config, choose: Choose) -> Seen:
    clock = SystemClock()
    credentials = await load_credentials(access.kubeconfig, access.context, clock=clock)
    async with KubeClient(credentials) as client:
        scheduler = await survey(client, config.policy, clock)
        keys = choose(scheduler)
        await add_owners(client, scheduler, keys, clock.now_s())
        election = config.leader_election
        holder: Awaitable[Leader] = leader(client, election.namespace, election.name)
        return Seen(scheduler, keys, await holder, clock.now_s())


def _named(scheduler: Scheduler, namespace: str, name: str) -> list[GangKey]:
    found = [
        key
        for key in scheduler.cluster.gangs
        if key.namespace == namespace and key.name == name and not key.is_single
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
            and entry.pod.namespace == namespace
        }
    )


def _explanations(seen: Seen) -> list[Explanation]:
    explainer = seen.scheduler.explainer(seen.now_s)
    return [found for key in seen.keys if (found := explainer.explain(key)) is not None]


def _print_json(values: list[dict[str, Any]]) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(values), indent=2).decode())


def _as_json(explanation: Explanation, leads: Leader) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(explanation)
    namespace, dialect, name = explanation.key
    facts["key"] = {"namespace": namespace, "dialect": dialect, "name": name.partition("@")[0]}
    facts["schedulerLeads"] = None if leads.holder is None else bool(leads.holder)
    return facts


def _as_text(explanation: Explanation, leads: Leader) -> str:
    """Return the sentence, then the facts, each on a line with its name before it."""
    members = explanation.members
    lines = [
        f"{_title(explanation.key)}: {explanation.state}"
        + ("" if explanation.reason is Reason.NONE else f", {explanation.reason}"),
        f"  {explanation.sentence}",
        "",
    ]
    counts = [
        f"{members.needed} needed",
        f"{members.exist} exist",
        f"{members.bound} bound",
        f"{members.running} running",
        *(f"{n} {what}" for n, what in _odd_members(explanation) if n),
    ]
    lines.append(f"  members   {', '.join(counts)}")
    for blocker in explanation.blockers:
        lines.append(f"  pods like {blocker.pod}: {blocker.fit} of {blocker.pods} fit now")
        lines += [f"    {rule.nodes:>6} nodes: {rule.message}" for rule in blocker.ruled_out]
        if blocker.nearest_miss:
            lines.append(f"    nearest miss: {blocker.nearest_miss}")
    lines += [f"  warning   {warning}" for warning in explanation.warnings]
    if explanation.remedy:
        lines.append(f"  remedy    {explanation.remedy}")
    if leads.holder == "" and explanation.state is not GangState.STARTED:
        lines.append("  note      no quorate scheduler holds its lease: is one running?")
    return "\n".join(lines)


def _odd_members(explanation: Explanation) -> tuple[tuple[int, str], ...]:
    members = explanation.members
    return (
        (members.gated, "scheduling-gated"),
        (members.terminating, "terminating"),
        (members.invalid, "not placeable"),
        (members.succeeded, "succeeded"),
        (members.failed, "failed"),
    )


def _title(key: GangKey) -> str:
    if key.is_single:
        return f"Pod {key}"
    words = api_words().get(key.dialect)
    return f"Gang {key} ({words.kind}, {words.api_version})" if words else f"Gang {key} (labels)"


def _table(found: list[Explanation], seen: Seen) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("NAMESPACE", "GANG", "API", "STATE", "MEMBERS", "AGE", "REASON", "WHY"):
        table.add_column(column, overflow="fold" if column == "WHY" else "ellipsis")
    for explanation in found:
        key, members = explanation.key, explanation.members
        created_s = seen.scheduler.cluster.gangs[key].created_s
        table.add_row(
            key.namespace,
            key.name.partition("@")[0],
            key.dialect,
            str(explanation.state),
            f"{members.bound}/{members.needed}",
            _age(seen.now_s - created_s),
            "" if explanation.reason is Reason.NONE else str(explanation.reason),
            explanation.sentence,
        )
    return table


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
