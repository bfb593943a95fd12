"""Command line: build the control plane, or run one until Ctrl-C."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tools.controlplane import versions
from tools.controlplane.build import BuildError, build
from tools.controlplane.client import ApiError
from tools.controlplane.cluster import Cluster, say
from tools.controlplane.golang import GoError
from tools.controlplane.process import ComponentError

_KNOWN = (*versions.BINARIES, *versions.TOOLS, *versions.OPERATORS)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; give the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "build" and (odd := [one for one in options.names if one not in _KNOWN]):
        parser.error(f"there is no {odd[0]}; there are {', '.join(_KNOWN)}")
    try:
        if options.command == "build":
            names = options.names or versions.BINARIES
            return _build(names, if_possible=options.if_possible)
        return _up(options)
    except (GoError, BuildError, ComponentError, ApiError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # before the cluster was up; everything is stopped by now
        return 130


def _build(names: Sequence[str], *, if_possible: bool) -> int:
    already_built = not versions.missing_binaries(names)
    try:
        build(say, names)
    except GoError as error:
        if not if_possible or os.environ.get("CI"):
            raise
        print(f"{error}\nTests that need it are skipped.")
        return 0
    if already_built:
        print(f"Built already: {versions.folders(names)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build the binaries missing in the cache")
    building.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"only these, of {', '.join(_KNOWN)}"
        f" (without a name the first {len(versions.BINARIES)}, which make a cluster)",
    )
    building.add_argument(
        "--if-possible",
        action="store_true",
        help="where Go cannot be had, say so and go on (but not in CI)",
    )
    up = commands.add_parser("up", help="run a control plane until Ctrl-C")
    up.add_argument("--nodes", type=int, default=4, help="how many fake nodes (4)")
    up.add_argument("--gpus", type=int, default=0, help="nvidia.com/gpu of each node (0)")
    up.add_argument("--cpu", default="32", help="cpu of each node (32)")
    up.add_argument("--memory", default="128Gi", help="memory of each node (128Gi)")
    up.add_argument(
        "--keep-data",
        type=Path,
        metavar="DIR",
        help="keep data and logs in this folder; a second start finds them",
    )
    return parser


def _up(options: argparse.Namespace) -> int:
    build(say)
    stop = threading.Event()
    with Cluster.start(options.keep_data) as cluster:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        _add_missing_nodes(cluster, options)
        print(f"Kubeconfig: {cluster.kubeconfig}")
        print("Type next, in another terminal:")
        print(f"  export KUBECONFIG={cluster.kubeconfig}")
        programs = [Path(sys.executable).parent, cluster.kubectl_path.parent]
        programs += (
            [versions.binary("helm").parent] if not versions.missing_binaries(["helm"]) else []
        )
        print(f"  export PATH={':'.join(map(str, programs))}:$PATH")
        print("  kubectl get nodes")
        print(f"Logs: {cluster.data_dir}. Ctrl-C stops the control plane.", flush=True)
        stop.wait()
        say("stopping")
    return 0


def _add_missing_nodes(cluster: Cluster, options: argparse.Namespace) -> None:
    allocatable = {"cpu": options.cpu, "memory": options.memory}
    if options.gpus:
        allocatable["nvidia.com/gpu"] = str(options.gpus)
    present = {node["metadata"]["name"] for node in cluster.api("GET", "/api/v1/nodes")["items"]}
    wanted = [f"node-{i}" for i in range(options.nodes)]
    cluster.create_nodes([n for n in wanted if n not in present], allocatable=allocatable)


if __name__ == "__main__":
    sys.exit(main())
