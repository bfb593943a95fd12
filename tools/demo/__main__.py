"""``make demo``: starts two embedded clusters, plays the story, and leaves nothing behind."""

from __future__ import annotations

import argparse
import codecs
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tools.controlplane import ApiError, ComponentError
from tools.demo.clusters import NODES, SHAPE, ClusterError, DemoCluster
from tools.demo.screen import Screen
from tools.demo.stage import Stage, StepFailedError
from tools.demo.story import Clusters, play
from tools.signals import heeding_signals, stop_if_asked

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WAIT_S = 20.0

_INTRODUCTION = (
    "quorate starts every pod that a job needs, or none. Here is how, on a Kubernetes API in the "
    f"memory of this machine: {NODES} nodes of 4 GPUs, as CoreWeave's GB200 nodes have them. "
    "▸ is a request that kubectl would send, $ is a command that runs."
)
_NEXT = f"""
What to try next:
  make demo ARGS=--keep
      the same, and the cluster stays up for your own kubectl
  .venv/bin/quorate up --shape {SHAPE}
      a cluster of 144 such nodes, until Ctrl-C
  .venv/bin/quorate lint YOUR.yaml
      what would keep gangs of yours from starting
  README.md
      a tour, and how to install quorate in a cluster"""
_PLAIN = {"▸": ">", "✓": "+", "✗": "!", "·": ".", "─": "-"}


def main() -> int:
    """Play; return 0, 1 when a step did not come true, 2 when nothing could start.

    Raises KeyboardInterrupt: a signal asked for the end. Ctrl-C that ends ``--keep`` after the
    story is how it is meant to end: 0.
    """
    options = _options()
    codecs.register_error("plainer", _plainer)
    sys.stdout.reconfigure(errors="plainer")  # type: ignore[union-attr]
    screen = Screen()
    started: list[DemoCluster] = []
    try:
        folder = Path(tempfile.mkdtemp(prefix="quorate-demo-"))
    except OSError as error:
        screen.fail(f"Error: no temporary folder: {error}. Set TMPDIR to one that can be written.")
        return 2
    os.environ["TMPDIR"] = str(folder)  # what processes of ours leave there goes with it
    try:
        return _run(options, screen, folder, started)
    except (ClusterError, ComponentError, ApiError, OSError) as error:
        screen.end_view()
        what = " ".join(str(error).split()).rstrip(".")
        screen.fail(f"Error: {what}. To see more, run: .venv/bin/quorate up")
        return 2
    finally:
        for cluster in started:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    options: argparse.Namespace, screen: Screen, folder: Path, started: list[DemoCluster]
) -> int:
    started_s = time.monotonic()
    screen.say(_INTRODUCTION)
    for name, with_quorate in (("quorate", True), ("one-by-one", False)):
        started.append(DemoCluster(folder / name, with_quorate=with_quorate))
    clusters = Clusters(*started)
    clusters.quorate.ready()
    screen.check(f"the cluster is ready ({time.monotonic() - started_s:.1f} s)")
    pace = options.pace if options.pace is not None else float(screen.is_live)
    code = 0
    with screen:
        shown = [("quorate", clusters.quorate)]
        stage = Stage(screen, shown, options.examples, pace=pace, wait_s=options.wait)
        try:
            play(stage, clusters, options.picture)
        except StepFailedError as error:
            screen.end_view()
            screen.fail(f"{error}. To look around: make demo ARGS=--keep")
            code = 1
    if code == 0:
        screen.heading("Every step did what it said.")
    if options.keep:
        _keep(screen, clusters)
    elif code == 0:
        screen.lines(_NEXT)
    return code


def _keep(screen: Screen, clusters: Clusters) -> None:
    """Leave the clusters up until Ctrl-C."""
    screen.lines(
        "\nThe cluster stays up until Ctrl-C. In another terminal:\n\n"
        f"  export KUBECONFIG={clusters.quorate.kubeconfig}\n"
        "  kubectl get pods -o wide\n"
        "  .venv/bin/quorate gangs\n\n"
        f"The one with the other scheduler: KUBECONFIG={clusters.naive.kubeconfig}"
    )
    try:
        while True:
            stop_if_asked()
            time.sleep(0.2)
            clusters.quorate.check()
    except KeyboardInterrupt:
        screen.lines("\nStopped; nothing is left behind.")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Give ASCII for our marks where standard output has no more than that."""
    assert isinstance(error, UnicodeEncodeError), "only output has this error handler"
    lost = error.object[error.start : error.end]
    return "".join(_PLAIN.get(mark, "?") for mark in lost), error.end


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make demo", description="Plays gangs on an embedded cluster, each step checked."
    )
    add = parser.add_argument
    add("--keep", action="store_true", help="leave the cluster up until Ctrl-C")
    add(
        "--pace",
        type=_pace,
        metavar="X",
        help="2 takes twice as long, 0 does not pause (default: 1 on a terminal, else 0)",
    )
    add("--wait", type=float, default=WAIT_S, metavar="S", help="how long a check may take, in s")
    add("--picture", type=Path, metavar="FILE", help="write step 3 as an SVG, too")
    add("--examples", type=Path, default=EXAMPLES, metavar="DIR", help="play with other manifests")
    return parser.parse_args()


def _pace(text: str) -> float:
    pace = float(text)
    if not 0 <= pace <= 100:
        raise argparse.ArgumentTypeError("a pace is from 0 to 100")
    return pace


if __name__ == "__main__":
    sys.exit(heeding_signals(main))
