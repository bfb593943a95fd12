"""``make demo``: CoreWeave's two examples on a real control plane, each step told and checked.

Starts a cluster with kwok nodes and quorate beside it, plays the story with real kubectl, and stops
everything. Exit code 0 only if each step did what it says. ``--keep`` leaves the cluster up.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tools.controlplane import Cluster
from tools.running import install, running

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
STEP_S_MAX = 20.0
PACE_S = 1.5


class StepFailedError(Exception):
    """The cluster did not do what the story says."""


class Story:
    """Tells steps and checks them."""

    def __init__(self, cluster: Cluster, console: Console) -> None:
        self._cluster = cluster
        self._console = console

    def say(self, text: str) -> None:
        """Print a line of the story, at a pace that a person can follow."""
        self._console.print(f"\n[bold]{text}[/bold]")
        if self._console.is_terminal:
            time.sleep(PACE_S)

    def kubectl(self, *args: str) -> str:
        """Run kubectl as a user would, and show both the command and what it prints."""
        self._show("kubectl", args)
        output = self._cluster.kubectl(*args)
        self._console.print(output.rstrip(), highlight=False, markup=False, soft_wrap=True)
        return output

    def quorate(self, *args: str) -> str:
        """Run quorate's command line, shown likewise."""
        self._show("quorate", args)
        command = [sys.executable, "-m", "quorate.cli", *args]
        command += ["--kubeconfig", str(self._cluster.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self._console.print(
            (done.stdout or done.stderr).rstrip(), highlight=False, markup=False, soft_wrap=True
        )
        return done.stdout

    def until(self, what: str, true: Callable[[], bool]) -> None:
        """Wait until the step is done. Raises StepFailedError when it is not, in time."""
        started_s = time.monotonic()
        while not true():
            if time.monotonic() - started_s > STEP_S_MAX:
                raise StepFailedError(f"after {STEP_S_MAX:.0f} s it is still not true: {what}")
            time.sleep(0.1)
        self._console.print(
            f"[green]✓[/green] {what} ({time.monotonic() - started_s:.1f} s)", soft_wrap=True
        )

    def _show(self, command: str, args: tuple[str, ...]) -> None:
        shown = " ".join(arg.replace(f"{EXAMPLES.parent}/", "") for arg in args)
        self._console.print(f"[cyan]$ {command} {shown}[/cyan]", soft_wrap=True)

    def phases(self, selector: str) -> list[str]:
        """Return the phases of the pods that the selector selects."""
        path = f"/api/v1/namespaces/default/pods?labelSelector={selector}"
        return [pod["status"]["phase"] for pod in self._cluster.api("GET", path)["items"]]

    def why_sentence(self, selector: str) -> str:
        """Return the message of PodScheduled=False of the first such pod that has one."""
        path = f"/api/v1/namespaces/default/pods?labelSelector={selector}"
        for pod in self._cluster.api("GET", path)["items"]:
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return str(condition.get("message", ""))
        return ""


def play(story: Story) -> None:
    """Play both examples. Raises StepFailedError."""
    story.say("1. CoreWeave's PodGroup example: the gang needs 4 pods, the Deployment makes 2.")
    story.kubectl("apply", "-f", str(EXAMPLES / "coreweave-podgroup.yaml"))
    story.until(
        "both pods wait, and say why: 2 of 4 members exist; Deployment pause makes 2",
        lambda: story.why_sentence("app=pause") == "2 of 4 members exist; Deployment pause makes 2",
    )
    story.kubectl("get", "pods")
    story.quorate("why", "pg1")

    story.say("2. Make four, and all four start together.")
    story.kubectl("scale", "deployment", "pause", "--replicas=4")
    story.until("all four run", lambda: story.phases("app=pause") == ["Running"] * 4)
    story.kubectl("get", "pods", "-o", "wide")

    story.say("3. CoreWeave's label example: no PodGroup object, two labels on the pods.")
    story.kubectl("apply", "-f", str(EXAMPLES / "coreweave-labels.yaml"))
    story.until("both run", lambda: story.phases("app=nginx") == ["Running"] * 2)
    story.quorate("gangs")


def main() -> int:
    """Start everything, play, stop; return the exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster up until Ctrl-C")
    options = parser.parse_args()
    console = Console(highlight=False)
    try:
        with Cluster.start(nodes=3) as cluster:
            install(cluster)
            with running(cluster):
                play(Story(cluster, console))
                console.print("\n[bold green]Every step did what it says.[/bold green]")
                console.print("Next: make cluster, then README.md's tour, with your own manifests.")
                if options.keep:
                    console.print(f"export KUBECONFIG={cluster.kubeconfig}   (Ctrl-C stops it)")
                    while True:
                        time.sleep(3600)
    except StepFailedError as error:
        console.print(f"[red]✗ {error}[/red]")
        return 1
    except KeyboardInterrupt:
        return 0 if options.keep else 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
