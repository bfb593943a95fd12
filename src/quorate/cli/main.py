"""The command line: ``quorate up | run | why | gangs | lint | record | ... | version``.

Options are read here; each command's work is in its own module, imported when it is called, because
numpy and aiohttp take longer to import than ``quorate version`` may take. Errors are one line that
says what is wrong and what to do.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from quorate import DISTRIBUTION
from quorate.cli import manifests_options as of_manifests
from quorate.cli import of_clusters, plain
from quorate.cli.commands import manifests as defaults
from quorate.cli.help_text import examples, exit_codes, without_types
from quorate.cli.options import (
    Background,
    ClusterId,
    ConfigFile,
    Context,
    DataFolder,
    DataOutput,
    GpuNodes,
    HealthPort,
    Ignore,
    Kubeconfig,
    LeaseNamespace,
    LifecycleRules,
    LintNamespace,
    LintSchedulers,
    LintShape,
    ListClusters,
    ManifestFiles,
    NoAgents,
    NoControllers,
    Nodes,
    NoScheduler,
    Output,
    Port,
    ProcessId,
    RecordingFile,
    RecordTo,
    RunTimeOption,
    Seed,
    ShapeName,
    Strict,
    Until,
    UpConfig,
    VersionOutput,
    WhyThen,
    WriteKubeconfig,
)
from quorate.cli.plain_options import COMMANDS, DESCRIPTION

app = typer.Typer(
    name="quorate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
    help=DESCRIPTION,
    epilog=exit_codes(),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        plain.version("table")
        raise typer.Exit(0)


@app.callback()
def quorate(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""
    del version


@app.command(
    epilog=examples(
        "up",
        "quorate up",
        "quorate up --nodes 10 --gpu-nodes 4",
        "quorate up --shape coreweave-h100 --gpu-nodes 64",
        "quorate up --data ./cluster",
        "quorate up --background --write-kubeconfig ~/.kube/config",
    )
)
def up(
    nodes: Nodes = None,
    gpu_nodes: GpuNodes = None,
    shape: ShapeName = "small",
    port: Port = 0,
    data: DataFolder = None,
    write_kubeconfig: WriteKubeconfig = None,
    no_scheduler: NoScheduler = False,
    config: UpConfig = None,
    run_time: RunTimeOption = None,
    seed: Seed = None,
    no_agents: NoAgents = False,
    no_controllers: NoControllers = False,
    background: Background = False,
) -> None:
    """Start a cluster in this process, scheduled by quorate, until Ctrl-C."""
    try:
        from quorate.cli.commands import up as command
    except ModuleNotFoundError as error:
        from quorate.cli.show.output import error as complain

        hint = f"{error.name} is not installed: pip install '{DISTRIBUTION}[embedded]'"
        raise typer.Exit(complain(hint)) from None

    if background:
        from quorate.cli.commands import background as behind

        raise typer.Exit(behind.up(sys.argv[1:]))
    wishes = command.Wishes(
        nodes=nodes,
        gpu_nodes=gpu_nodes,
        shape=shape,
        port=port,
        data=data,
        write_kubeconfig=write_kubeconfig,
        scheduler=not no_scheduler,
        config=config,
        run_time=run_time,
        seed=seed,
        agents=not no_agents,
        controllers=not no_controllers,
    )
    raise typer.Exit(command.up(wishes))


@app.command(epilog=examples("down", "quorate down", "quorate down --list", "quorate down 4711"))
def down(pid: ClusterId = None, lists: ListClusters = False) -> None:
    """Stop a cluster of quorate up on this machine, and wait until it is gone."""
    from quorate.cli.commands import background as command

    raise typer.Exit(command.down(pid, lists=lists))


@app.command(
    help=COMMANDS["run"].help,
    epilog=examples("run", "quorate run", "quorate run --config scheduler.yaml --context staging"),
)
def run(  # noqa: D103 - COMMANDS says what it does
    kubeconfig: Kubeconfig = None, context: Context = None, config: ConfigFile = None
) -> None:
    from quorate.cli.commands import serve

    raise typer.Exit(serve.run(kubeconfig, context, config))


@app.command(
    help=COMMANDS["cks-nodes"].help,
    epilog=examples("cks-nodes", "quorate cks-nodes --rules rules.yaml"),
)
def cks_nodes(  # noqa: D103 - as above
    rules: LifecycleRules = None,
    namespace: LeaseNamespace = "quorate-system",
    health_port: HealthPort = 10273,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    from quorate.cli.commands import serve

    raise typer.Exit(serve.keep_nodes(rules, namespace, health_port, kubeconfig, context))


of_clusters.add_to(app)


@app.command(
    epilog=examples(
        "lint",
        "quorate lint job.yaml",
        "quorate lint manifests/ --strict -o json",
        "helm template my-chart | quorate lint - --shape shape.yaml",
    )
)
def lint(
    files: ManifestFiles,
    namespace: LintNamespace = None,
    shape: LintShape = None,
    scheduler_name: LintSchedulers = None,
    ignore: Ignore = None,
    strict: Strict = False,
    output: Output = "table",
) -> None:
    """Check manifests before they are applied: whether their gangs can ever start.

    Where all is well, say what was understood: each gang, its min, its pods and their GPUs.
    """
    from quorate.cli.commands import lint as command

    call = command.Call(files, namespace, shape, scheduler_name or [], ignore or [], strict, output)
    raise typer.Exit(command.lint(call))


@app.command(
    help=COMMANDS["record"].help,
    epilog=examples(
        "record",
        "quorate record",
        "quorate record 4711 --output trouble.recording",
        "kubectl -n quorate-system exec LEADER -- quorate record --output - > q.recording",
    ),
)
def record(  # noqa: D103 - as above
    pid: ProcessId = None, to: RecordTo = None, config: ConfigFile = None
) -> None:
    from quorate.cli.commands import record as command

    raise typer.Exit(command.record(pid, to, config))


@app.command(
    epilog=examples(
        "replay",
        "quorate replay q.recording",
        "quorate replay q.recording --until 120 --why team/train",
    )
)
def replay(file: RecordingFile, until: Until = None, why: WhyThen = None) -> None:
    """Give a recording to a new core, and compare its plans with the recorded ones."""
    from quorate.cli.commands import replay as command

    raise typer.Exit(command.replay(file, until, why))


@app.command(
    "manifests",
    epilog=examples(
        "manifests",
        "quorate manifests --image IMAGE | kubectl apply -f -",
        "quorate manifests --only crds --only rbac | kubectl apply -f -",
        "quorate manifests --only rbac --preemption | kubectl apply -f -",
        "quorate manifests --image IMAGE --without devices --without volcano-queues",
        "quorate manifests --only networkpolicy | kubectl apply -f -",
        "quorate manifests --component cks-policies --rules rules.yaml | kubectl apply -f -",
    ),
)
def print_manifests(
    namespace: of_manifests.Namespace = defaults.DEFAULT_NAMESPACE,
    image: of_manifests.Image = defaults.DEFAULT_IMAGE,
    replicas: of_manifests.Replicas = defaults.DEFAULT_REPLICAS,
    only: of_manifests.Only = None,
    preemption: of_manifests.Preemption = False,
    without: of_manifests.Without = None,
    network_policy: of_manifests.NetworkPolicy = False,
    component: of_manifests.Component = None,
    rules: of_manifests.Rules = None,
    kube_version: of_manifests.KubeVersion = None,
    output: DataOutput = "yaml",
) -> None:
    """Print all that a cluster needs to run quorate, for kubectl apply."""
    raise typer.Exit(
        defaults.manifests(
            namespace=namespace,
            image=image,
            replicas=replicas,
            only=only or (),
            preemption=preemption,
            without=without or (),
            network_policy=network_policy,
            component_name=component,
            rules=rules,
            kube_version=kube_version,
            output=output,
        )
    )


@app.command(
    epilog=examples(
        "completion",
        "source <(quorate completion bash)",
        "source <(quorate completion zsh)",
        "quorate completion fish | source",
    ),
)
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.", show_default=False)
    ],
) -> None:
    """Print a script that makes a shell complete commands, gangs, namespaces and presets."""
    from quorate.cli.commands import completion as command

    raise typer.Exit(command.completion(shell))


@app.command(
    help=COMMANDS["version"].help,
    epilog=examples("version", "quorate version", "quorate version -o json"),
)
def version(output: VersionOutput = "table") -> None:  # noqa: D103 - as above
    plain.version(output)


def call(args: Sequence[str] | None = None) -> int:
    """Carry out one command line, ``sys.argv``'s by default, and return the exit code."""
    try:
        code = _command()(args=args, prog_name=plain.called_by(), standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _bad_call(error)
    except BrokenPipeError:  # such as ``| head``: what was wanted has been read
        sys.stdout = None  # else its last flush complains
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return code if isinstance(code, int) else 0


def _command() -> Any:  # noqa: ANN401 - typer's own class has no public name
    """Return the whole command, without typer's options that write into shells' start-up files."""
    command: Any = typer.main.get_command(app)
    writing = ("install_completion", "show_completion")
    command.params = [one for one in command.params if one.name not in writing]
    context = typer.Context(command, **command.context_settings)
    for one in (command, *command.commands.values()):
        without_types(one, context)
    return command


def _bad_call(error: typer.TyperException) -> int:
    """Say in one line what is wrong with the options, and where the right ones are."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else plain.called_by()
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    if message:  # else it was a call without a command, and the help has been printed
        ending = "" if message.endswith(("?", ".", ")")) else "."
        from quorate.cli.show.output import error as complain

        return complain(f"{message}{ending} See: {command} --help")
    return 0


def main() -> None:
    """Entry point of the command ``quorate``."""
    try:
        code = call()
    except Exception as error:  # a defect of ours: its words may be a stranger's
        from quorate.cli.show import output

        output.defect(error)
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
