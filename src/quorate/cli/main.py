"""The command line: ``quorate run | why | gangs | manifests | version``.

Options are read here; each command's work is in its own module. Errors are one line that says what
is wrong and what to do; exit code 2 means that the call or the cluster was at fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from quorate import __version__
from quorate.cli import look, manifests, serve

app = typer.Typer(
    name="quorate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Gang scheduling for Kubernetes: every pod that a job needs starts, or none does.",
)

Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Path of a kubeconfig; default: $KUBECONFIG, in-cluster, ~/.kube/config."),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file (kind SchedulerConfiguration)."),
]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace to look in.")]
Output = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="Form of the output.")
]


@app.command()
def run(kubeconfig: Kubeconfig = None, context: Context = None, config: ConfigFile = None) -> None:
    """Run the scheduler until it is told to stop (SIGTERM or Ctrl-C)."""
    raise typer.Exit(serve.run(kubeconfig, context, config))


@app.command()
def why(
    name: Annotated[str, typer.Argument(metavar="GANG|POD", help="A gang's or a pod's name.")],
    namespace: Namespace = None,
    output: Output = "text",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Say why a gang (or a pod's gang) stands where it stands, and what would start it."""
    access = look.Access(kubeconfig, context, config, namespace or "default")
    raise typer.Exit(look.why(access, name, output))


@app.command()
def gangs(
    namespace: Namespace = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Look in all namespaces.")
    ] = False,
    pods: Annotated[
        bool, typer.Option("--pods", help="Also list pods of ours that belong to no gang.")
    ] = False,
    output: Output = "text",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """List gangs with their state, members, age and reason."""
    where = "" if all_namespaces else namespace or "default"
    access = look.Access(kubeconfig, context, config, where)
    raise typer.Exit(look.gangs(access, with_pods=pods, output=output))


@app.command("manifests")
def print_manifests(
    namespace: Annotated[
        str, typer.Option(help="Namespace to install into.")
    ] = manifests.DEFAULT_NAMESPACE,
    image: Annotated[str, typer.Option(help="Container image.")] = manifests.DEFAULT_IMAGE,
    replicas: Annotated[
        int, typer.Option(help="Replicas: one leads, the others stand by.")
    ] = manifests.DEFAULT_REPLICAS,
    only: Annotated[
        list[str] | None, typer.Option(help=f"Part to print: {', '.join(manifests.PARTS)}.")
    ] = None,
) -> None:
    """Print all that a cluster needs: quorate manifests | kubectl apply -f -."""
    raise typer.Exit(
        manifests.manifests(namespace=namespace, image=image, replicas=replicas, only=only or ())
    )


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Entry point of the command ``quorate``."""
    app()


if __name__ == "__main__":
    main()
