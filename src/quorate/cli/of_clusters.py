"""The commands that look at a cluster, ``why``, ``gangs`` and ``nodes``: their options and help.

Their work is in ``commands``, imported when it is called.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorate.cli.asking import offers
from quorate.cli.help_text import examples
from quorate.cli.options import (
    AllNamespaces,
    ConfigFile,
    Context,
    Kubeconfig,
    ListOutput,
    Namespace,
    NodeSelector,
    Output,
    Pods,
    RequestTimeout,
    Selector,
    SortBy,
    States,
    Watch,
)

if TYPE_CHECKING:
    from quorate.cli.commands.look import Access

REQUEST_TIMEOUT = "30s"
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|)")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_FOR_EVER_S = 1e8


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        epilog=examples(
            "why",
            "quorate why pg1",
            "quorate why job/train pod/web-0",
            "quorate why team/train -o json",
            "quorate why train -A",
        )
    )(why)
    app.command(
        epilog=examples(
            "gangs",
            "quorate gangs",
            "quorate gangs -A -o wide",
            "quorate gangs --state waiting --sort-by age",
            "quorate gangs -l app=llama -w",
            "quorate gangs -n team -o json",
        )
    )(gangs)
    app.command(
        epilog=examples(
            "nodes", "quorate nodes", "quorate nodes -l gpu=h100 -o wide", "quorate nodes -o json"
        )
    )(nodes)


def why(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="A gang, a pod or a workload: NAME, NAMESPACE/NAME or KIND/NAME (job/train).",
            autocompletion=offers.gangs,
            show_default=False,
        ),
    ],
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: RequestTimeout = REQUEST_TIMEOUT,
    config: ConfigFile = None,
) -> None:
    """Say why a gang (or a pod's gang) stands where it stands, and what would start it."""
    from quorate.cli.commands import why as command

    where = _namespace(namespace, in_all=all_namespaces)
    access = _access(kubeconfig, context, config, where, request_timeout)
    raise typer.Exit(command.why(access, names, output))


def gangs(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Only these, named as for quorate why.",
            show_default=False,
            autocompletion=offers.gangs,
        ),
    ] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    state: States = None,
    pods: Pods = False,
    sort_by: SortBy = "",
    watch: Watch = False,
    output: ListOutput = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: RequestTimeout = REQUEST_TIMEOUT,
    config: ConfigFile = None,
) -> None:
    """List gangs with their state, members, age and reason."""
    from quorate.cli.commands import gangs as command

    where = _namespace(namespace, in_all=all_namespaces)
    access = _access(kubeconfig, context, config, where, request_timeout)
    wishes = command.Wishes(names or [], pods, selector, state or [], sort_by, watch, output)
    raise typer.Exit(command.gangs(access, wishes))


def nodes(
    selector: NodeSelector = "",
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: RequestTimeout = REQUEST_TIMEOUT,
    config: ConfigFile = None,
) -> None:
    """Show which GPUs are free on which node, who has the others, and which nodes take no pods."""
    from quorate.cli.commands import nodes as command

    access = _access(kubeconfig, context, config, None, request_timeout)
    raise typer.Exit(command.nodes(access, selector, output))


def _access(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    namespace: str | None,
    request_timeout: str,
) -> Access:
    from quorate.cli.commands.look import Access

    return Access(kubeconfig, context, config, namespace, _seconds(request_timeout))


def _namespace(typed: str | None, *, in_all: bool) -> str | None:
    """Return the namespace to look in; ``""`` is all, None the context's."""
    if typed is not None and not _DNS_LABEL.fullmatch(typed):
        raise typer.BadParameter(
            f"--namespace {typed!r} is no name of a namespace: write lower-case letters, digits "
            "and -"
        )
    return "" if in_all else typed


def _seconds(typed: str) -> float:
    """Return a time span as kubectl writes it, in seconds; 0 is for ever."""
    found = _TIME.fullmatch(typed)
    if found is None:
        raise typer.BadParameter(
            f"--request-timeout {typed!r} is no time: write 30s, 2m, 1h, or 0 for ever"
        )
    return float(found[1]) * _SECONDS[found[2]] or _FOR_EVER_S
