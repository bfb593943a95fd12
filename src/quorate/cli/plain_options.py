"""What ``quorate`` can do without the extra ``cli``: commands and options, as data.

Both command lines are made from it, the one of typer (``main``) and the one of argparse
(``plain``), so that they cannot differ. Imports nothing that is not Python's own.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Option(NamedTuple):
    """An option, or an argument if its name has no dashes."""

    names: tuple[str, ...]
    help: str
    kind: type = str
    choices: tuple[str, ...] = ()
    default: str | int | None = None
    metavar: str | None = None


DESCRIPTION: Final = (
    "Gang scheduling for Kubernetes: every pod that a job needs starts, or none does."
)
FORMS: Final = ("table", "json", "yaml", "wide")

KUBECONFIG: Final = Option(
    ("--kubeconfig",),
    "Path of a kubeconfig; else $KUBECONFIG, the pod's own account, ~/.kube/config.",
    metavar="FILE",
)
CONTEXT: Final = Option(
    ("--context",), "Context of the kubeconfig; else its current one.", metavar="NAME"
)
CONFIG: Final = Option(
    ("--config",), "Configuration file (kind SchedulerConfiguration).", metavar="FILE"
)
RULES: Final = Option(
    ("--rules",), "Organizations of the cluster (kind WorkloadRules); needed.", metavar="FILE"
)
LEASE_NAMESPACE: Final = Option(
    ("--namespace", "-n"),
    "Namespace of the Lease.",
    default="quorate-system",
    metavar="NAMESPACE",
)
HEALTH_PORT: Final = Option(
    ("--health-port",),
    "Port of /healthz, /readyz and /metrics; 0: any.",
    kind=int,
    default=10273,
    metavar="PORT",
)
PROCESS_ID: Final = Option(
    ("pid",), "The scheduler's process; else the only one.", kind=int, metavar="PID"
)
RECORD_TO: Final = Option(
    ("--output",),
    "Where to put it, - for standard output; else quorate-PID.recording, here.",
    metavar="FILE",
)
FORM: Final = Option(
    ("--output", "-o"), "Form of the output.", choices=FORMS, default="table", metavar="FORM"
)


class Command(NamedTuple):
    """A command: what it does, and its options."""

    help: str
    options: tuple[Option, ...]


COMMANDS: Final = {
    "run": Command(
        "Run the scheduler until it is told to stop (SIGTERM or Ctrl-C).",
        (KUBECONFIG, CONTEXT, CONFIG),
    ),
    "cks-nodes": Command(
        "Keep nodes reserved and tainted as their labels say (CoreWeave's node life-cycle).",
        (RULES, LEASE_NAMESPACE, HEALTH_PORT, KUBECONFIG, CONTEXT),
    ),
    "record": Command(
        "Take the recording of a scheduler that runs on this machine, or in this container.",
        (PROCESS_ID, RECORD_TO, CONFIG),
    ),
    "version": Command("Print the version.", (FORM,)),
}

OTHERS: Final = {
    "up": "cli,embedded",
    "down": "cli",
    "why": "cli",
    "gangs": "cli",
    "nodes": "cli",
    "lint": "cli",
    "replay": "cli",
    "manifests": "cli",
    "completion": "cli",
}
"""Commands that need extras, and which."""
