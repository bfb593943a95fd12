"""The options that commands share, so that each is named, grouped and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from quorate.cli import plain_options as plain
from quorate.cli.asking import offers

CLUSTER = "Cluster"
SELECTION = "Selection"
OUTPUT = "Output"

Form = Literal["table", "json", "yaml", "wide"]
ListForm = Literal["table", "json", "yaml", "wide", "name"]
DataForm = Literal["yaml", "json"]


def _told(option: plain.Option, panel: str = CLUSTER, *, show_default: bool = False) -> Any:  # noqa: ANN401
    """Return an option that both command lines have, as typer wants it."""
    return typer.Option(
        *option.names,
        metavar=option.metavar,
        help=option.help,
        show_default=show_default,
        rich_help_panel=panel,
    )


Kubeconfig = Annotated[
    Path | None,
    _told(plain.KUBECONFIG),
]
Context = Annotated[
    str | None,
    _told(plain.CONTEXT),
]
ConfigFile = Annotated[
    Path | None,
    _told(plain.CONFIG),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Namespace to look in; else that of the kubeconfig's context.",
        autocompletion=offers.namespaces,
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
AllNamespaces = Annotated[
    bool,
    typer.Option(
        "--all-namespaces", "-A", help="Look in all namespaces.", rich_help_panel=SELECTION
    ),
]
Output = Annotated[
    Form,
    typer.Option(
        "--output", "-o", help="Form of the output; wide says more.", rich_help_panel=OUTPUT
    ),
]
VersionOutput = Annotated[
    Form, typer.Option(*plain.FORM.names, help=plain.FORM.help, rich_help_panel=OUTPUT)
]
DataOutput = Annotated[
    DataForm, typer.Option("--output", "-o", help="Form of the output.", rich_help_panel=OUTPUT)
]

RequestTimeout = Annotated[
    str,
    typer.Option(
        "--request-timeout",
        metavar="TIME",
        help="How long the API server may be silent: 30s, 2m, 1h; 0 is for ever.",
        rich_help_panel=CLUSTER,
    ),
]

# Of ``quorate gangs``

ListOutput = Annotated[
    ListForm,
    typer.Option(
        "--output", "-o", help="Form of the output; wide says more.", rich_help_panel=OUTPUT
    ),
]
Pods = Annotated[
    bool,
    typer.Option(
        "--pods",
        help="Also list pods of ours that belong to no gang.",
        rich_help_panel=SELECTION,
    ),
]
Selector = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Only gangs with a pod of these labels: key=value, 'key in (a,b)', !key.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
NodeSelector = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Only nodes with these labels: key=value, 'key in (a,b)', !key.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        autocompletion=offers.states,
        help="Only gangs in this state: waiting, starting, started, finished, failed; several "
        "with commas.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
SortBy = Annotated[
    str,
    typer.Option(
        "--sort-by",
        metavar="FIELD",
        autocompletion=offers.sort_words,
        help="name, age, state, members, min, gpus, place, priority, reason, or a path into the "
        "JSON such as .metadata.name. Else by name, with ended gangs last.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch", "-w", help="Go on, and print each gang that changes.", rich_help_panel=OUTPUT
    ),
]

# Of ``quorate up``

Nodes = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="How many nodes in all; else the shape's own number.",
        show_default=False,
    ),
]
GpuNodes = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="How many nodes with GPUs; others in proportion, or up to --nodes in all.",
        show_default=False,
    ),
]
Background = Annotated[
    bool,
    typer.Option("--background", help="Return when the cluster is ready; `quorate down` stops it."),
]
ShapeName = Annotated[
    str,
    typer.Option(
        metavar="FILE|PRESET",
        help="What the nodes are like; `list` names presets.",
        autocompletion=offers.presets,
    ),
]
Port = Annotated[
    int,
    typer.Option(
        min=0, max=65535, metavar="PORT", help="Port of the API server; 0: any that is free."
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Keep what the cluster holds in this folder.", show_default=False
    ),
]
WriteKubeconfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Have a context of the cluster in this kubeconfig, as the current one, as long as it "
        "runs; what else the file holds stays.",
        show_default=False,
    ),
]
NoScheduler = Annotated[
    bool, typer.Option("--no-scheduler", help="Only the cluster: no quorate in it.")
]
UpConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="quorate's configuration file.", show_default=False),
]
RunTimeOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="How long pods of jobs run: 30s, uniform(10s, 60s), exponential(30s), "
        "lognormal(30s, 1); else until they are deleted.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="Draw names and run times from this seed.", show_default=False),
]
NoAgents = Annotated[
    bool, typer.Option("--no-agents", help="No kubelets of ours: for kwok, for instance.")
]
NoControllers = Annotated[
    bool,
    typer.Option("--no-controllers", help="No controllers: for a kube-controller-manager."),
]

# Of ``quorate lint``

ManifestFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Manifests (YAML or JSON), folders of them, or - for standard input.",
        show_default=False,
    ),
]
LifecycleRules = Annotated[
    Path | None,
    _told(plain.RULES),
]
LeaseNamespace = Annotated[
    str,
    _told(plain.LEASE_NAMESPACE, show_default=True),
]
HealthPort = Annotated[
    int,
    _told(plain.HEALTH_PORT, show_default=True),
]
LintNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Namespace of objects that name none; else default.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
LintShape = Annotated[
    str | None,
    typer.Option(
        help="Also check against the nodes of a shape: a file, or a preset of quorate up.",
        autocompletion=offers.presets,
        metavar="FILE|PRESET",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
LintSchedulers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A schedulerName that places gangs in your cluster; repeat it for more.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        help="A rule to leave out; repeat it for more.",
        metavar="RULE",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 1 for warnings as well.", rich_help_panel=SELECTION),
]

# Of ``quorate down``

ClusterId = Annotated[
    int | None,
    typer.Argument(
        metavar="PID", help="The cluster's process; else the only one.", show_default=False
    ),
]

ListClusters = Annotated[
    bool, typer.Option("--list", help="List the clusters of yours that run, and stop none.")
]

# Of ``quorate record`` and ``quorate replay``

ProcessId = Annotated[
    int | None,
    typer.Argument(
        metavar=plain.PROCESS_ID.metavar, help=plain.PROCESS_ID.help, show_default=False
    ),
]
RecordTo = Annotated[
    str | None,
    _told(plain.RECORD_TO, OUTPUT),
]
RecordingFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A recording.", show_default=False)
]
Until = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Stop after decision N, counted from the start of the scheduler.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
WhyThen = Annotated[
    str | None,
    typer.Option(
        metavar="GANG",
        help="Say why this gang stands where it stands, as of the last decision.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]
