"""The options of ``quorate manifests``, as typer wants them. Read by ``main``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.cli.commands import manifests as defaults
from quorate.cli.options import SELECTION

COMPONENTS = "Components"

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Namespace to install into.",
        rich_help_panel=SELECTION,
    ),
]

Image = Annotated[
    str,
    typer.Option(
        metavar="IMAGE",
        help="Container image. None is published yet: name one that you have built.",
        rich_help_panel=SELECTION,
    ),
]

Replicas = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Replicas: one leads, the others stand by.",
        rich_help_panel=SELECTION,
    ),
]

Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PART",
        help=f"Part to print: {', '.join(defaults.PARTS)}; repeat it for more.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]

Without = Annotated[
    list[defaults.Withheld] | None,
    typer.Option(
        metavar="RIGHT",
        help="A right to leave out where nobody needs it: devices (to write ResourceClaims), "
        "volcano-queues (to make Volcano's queues, and say what gangs take of each); repeat it "
        "for both.",
        show_default=False,
        rich_help_panel=SELECTION,
    ),
]

Component = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Print a component instead of the scheduler: cks-policies, the rules of CoreWeave's "
        "workload scheduling for a cluster of your own (docs/operators/coreweave.md).",
        show_default=False,
        rich_help_panel=COMPONENTS,
    ),
]

Rules = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --component: the organizations of the cluster, and names that differ.",
        show_default=False,
        rich_help_panel=COMPONENTS,
    ),
]

KubeVersion = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="With --component: the API server's version. Before 1.36 nothing can be added to pods "
        "at admission.",
        show_default=False,
        rich_help_panel=COMPONENTS,
    ),
]

Preemption = Annotated[
    bool,
    typer.Option(
        "--preemption",
        help="Let quorate delete pods of lower priority (docs/operators/default-scheduler.md).",
        rich_help_panel=SELECTION,
    ),
]

NetworkPolicy = Annotated[
    bool,
    typer.Option(
        "--network-policy",
        help="Close quorate's ports to all but the kubelets and "
        "namespaces labelled quorate.dev/scrapes=true (docs/operators/security.md).",
        rich_help_panel=SELECTION,
    ),
]
