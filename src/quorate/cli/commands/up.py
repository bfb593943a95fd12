"""``quorate up``: a cluster in this process, with quorate as its scheduler, until Ctrl-C.

In: how many nodes of which shape, a port, a folder. Out: a running cluster, its kubeconfig, what
to type next. Exit code 0 after Ctrl-C, 2 when something of the call is at fault.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from pocketkube.access import kubeconfig
from pocketkube.agents.settings import Settings as AgentSettings
from pocketkube.agents.settings import parse_run_time
from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.controllers.claims.volume_binding import PROVISIONER
from pocketkube.errors import ApiError
from pocketkube.objects import Object
from pocketkube.private_files import write_private
from pocketkube.server.http import ListenError
from pocketkube.store.journal import DataError
from quorate.cli import kubeconfig_file, processes
from quorate.cli.commands import background
from quorate.cli.commands.manifests import render
from quorate.cli.kubeconfig_file import KubeconfigFileError
from quorate.cli.show import output
from quorate.cli.show.output import say
from quorate.core.model.quantity import counts_gpus, parse_amount
from quorate.core.words.counting import counted
from quorate.shapes.shape_file import ShapeError, load, nodes_of, nodes_with_gpus, presets
from quorate.shell import app
from quorate.shell.configuration.config import Config, ConfigError
from quorate.shell.configuration.config import load as load_config
from quorate.shell.configuration.config import parse as parse_config
from quorate.shell.kube.identity.credentials import KubeConfigError, load_credentials
from quorate.shell.kube.paths import address
from quorate.shell.lease.leadership import LeaseLostError
from quorate.shell.process import logs
from quorate.shell.process.clock import SystemClock
from quorate.shell.serve.bounded_http import ServeError

_DEFAULT_CONFIG = """
apiVersion: quorate.dev/v1alpha1
kind: SchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
"""
_OWN = "-up"
"""How the names of the objects end that are this command's own."""
_PAUSE_S = 1.0
_STOPS = (signal.SIGINT, signal.SIGTERM)
_EXAMPLE = Path("examples/coreweave-podgroup.yaml")
_GC_THRESHOLDS = (100_000, 50, 100)
"""Objects come and go as plain data without cycles: look for cycles seldom."""


class Wishes(NamedTuple):
    """What the command line says."""

    nodes: int | None
    gpu_nodes: int | None
    shape: str
    port: int
    data: Path | None
    write_kubeconfig: Path | None
    scheduler: bool
    config: Path | None
    run_time: str | None
    seed: int | None
    agents: bool = True
    controllers: bool = True


class UpError(Exception):
    """The cluster cannot be as wished; the text says what to do."""


def up(wishes: Wishes) -> int:
    """Run a cluster until a signal says stop; return the exit code."""
    started_s = time.monotonic() - processes.own_age_s()
    if wishes.shape == "list":
        for name, what in presets():
            say(f"{name:<18}{what}")
        return 0
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # until there is who tidies up
    folder = wishes.data or Path(tempfile.mkdtemp(prefix="quorate-up-"))
    try:
        asyncio.run(_serve(wishes, folder, started_s))
    except (UpError, ListenError, DataError, ShapeError, KubeconfigFileError) as error:
        return output.error(str(error))
    except (ConfigError, KubeConfigError, ServeError) as error:
        return output.error(str(error))
    except OSError as error:
        what = f"{error.filename or folder}: {error.strerror or error}"
        return output.error(f"{what}; name another folder with --data" if wishes.data else what)
    finally:
        if wishes.data is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _serve(wishes: Wishes, folder: Path, started_s: float) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, stop.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    config = load_config(wishes.config) if wishes.config else _default_config()
    if wishes.write_kubeconfig is not None:
        kubeconfig_file.check(wishes.write_kubeconfig)
    logs.set_up("warning", config.log_format)
    clock = SystemClock()
    options = Options(
        port=wishes.port,
        durable=wishes.data is not None,
        seed=wishes.seed,
        agents=_agents(wishes.run_time),
        runs_agents=wishes.agents,
        runs_controllers=wishes.controllers,
        name="quorate",
    )
    cluster = EmbeddedCluster(
        folder, now_s=clock.now_s, monotonic_s=clock.monotonic_s, options=options
    )
    cluster.add(_nodes(wishes, cluster))
    async with cluster:
        tasks = [asyncio.create_task(stop.wait()), asyncio.create_task(cluster.failed())]
        metrics: asyncio.Future[str] = loop.create_future()
        if wishes.scheduler:
            tasks.append(asyncio.create_task(_schedule(config, cluster, clock, stop, metrics)))
        else:
            metrics.set_result("")
        gc.freeze()  # what is there at the start lives on: do not walk over it again
        gc.set_threshold(*_GC_THRESHOLDS)
        async with _ended_together(tasks, stop):
            await _until_first_ends([metrics, *tasks])
            if metrics.done():
                with _context_in(wishes.write_kubeconfig, cluster) as context:
                    took_s = time.monotonic() - started_s
                    _announce(wishes, cluster, context, metrics.result(), took_s)
                    await _until_first_ends(tasks)


async def _until_first_ends(tasks: Sequence[asyncio.Future[Any]]) -> None:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


@contextlib.asynccontextmanager
async def _ended_together(
    tasks: Sequence[asyncio.Task[Any]], stop: asyncio.Event
) -> AsyncIterator[None]:
    """End the tasks after the body; the scheduler, from 2 on, by itself."""
    try:
        yield
    finally:
        stop.set()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait(tasks[2:], timeout=5.0) if tasks[2:] else None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _context_in(path: Path | None, cluster: EmbeddedCluster) -> Iterator[str]:
    """Have a context of the cluster in somebody's kubeconfig, as long as the cluster runs."""
    if path is None:
        yield ""
        return
    added = kubeconfig_file.add(path, json.loads(cluster.kubeconfig.read_text()))
    try:
        yield added.context
    finally:
        try:
            kubeconfig_file.remove(added)
        except KubeconfigFileError as error:
            output.error(f"context {added.context} stays in {path}: {error}")


async def _schedule(
    config: Config,
    cluster: EmbeddedCluster,
    clock: SystemClock,
    stop: asyncio.Event,
    metrics: asyncio.Future[str],
) -> None:
    """Run quorate with the rights that its manifests give and no others.

    It starts anew when it has lost its lease, as its pod would: the cluster outlives it, and what
    was deleted of its rights is made again. ``metrics`` becomes where they are served.
    """
    namespace = config.leader_election.namespace
    path = cluster.folder / "kubeconfig-quorate"

    def on_listening(port: int) -> None:
        if not metrics.done():
            metrics.set_result(f"http://{address(config.health_host, port)}/metrics")

    while not stop.is_set():
        try:
            cluster.add(_manifests(namespace))
            token = cluster.service_account_token(namespace, f"quorate{_OWN}")
            written = kubeconfig(
                cluster.inner_server, cluster.ca, token, user="quorate", name="quorate"
            )
            write_private(path, written)
            await app.run(config, await load_credentials(path, clock=clock), stop, on_listening)
        except (LeaseLostError, ApiError) as error:
            if not metrics.done():
                raise
            output.error(f"{error}; the scheduler starts anew")
            await asyncio.sleep(_PAUSE_S)


def _default_config() -> Config:
    """Return the defaults, with pods that name no scheduler, for nobody else takes them here.

    Health pages are on loopback, at any port: two clusters may run at once.
    """
    return msgspec.structs.replace(
        parse_config(_DEFAULT_CONFIG, "quorate up"), health_host="127.0.0.1", health_port=0
    )


def _agents(run_time: str | None) -> AgentSettings:
    if run_time is None:
        return AgentSettings()
    try:
        return AgentSettings(run_time=parse_run_time(run_time))
    except ValueError as error:
        raise UpError(f"--run-time {run_time}: {error}") from None


def _nodes(wishes: Wishes, cluster: EmbeddedCluster) -> Iterator[Object]:
    """Give the wished nodes; none when the folder has some and nothing else was asked for."""
    if wishes.gpu_nodes is not None:
        return nodes_with_gpus(load(wishes.shape), wishes.gpu_nodes, wishes.nodes)
    if wishes.nodes == 0 or (wishes.nodes is None and cluster.node_count):
        return iter(())
    return iter(nodes_of(load(wishes.shape), wishes.nodes))


def _manifests(namespace: str) -> Iterator[Object]:
    """Give what quorate needs here, so that it can be installed as well, by Helm or by kubectl.

    Its rights have names of their own: an installation neither meets nor removes them. Helm takes
    the definitions for its own, and leaves them when it uninstalls.
    """
    text = render(namespace=namespace, parts=("crds", "rbac", "userroles"))
    for obj in filter(None, yaml.load_all(text, Loader=_LOADER)):
        if obj["kind"] == "CustomResourceDefinition":
            release = {"release-name": "quorate", "release-namespace": namespace}
            marks = {f"meta.helm.sh/{key}": value for key, value in release.items()}
            obj["metadata"]["annotations"].update(marks)
            obj["metadata"].setdefault("labels", {})["app.kubernetes.io/managed-by"] = "Helm"
        elif obj["kind"] != "Namespace":
            named = [obj["metadata"], *obj.get("subjects", ())]
            for one in [*named, obj["roleRef"]] if "roleRef" in obj else named:
                one["name"] += _OWN
        yield obj
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",  # the name that kind and minikube give to theirs
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _to_type() -> list[str]:
    """Return what to type next: with an example of the repository, if it is there."""
    here = _EXAMPLE.exists()
    there = Path(__file__).resolve().parents[4] / _EXAMPLE
    if here or there.exists():
        example = [f"kubectl apply -f {_EXAMPLE if here else there}", "quorate why pg1"]
    else:
        example = ["kubectl run hello --image=busybox", "quorate why hello"]
    return ["kubectl get nodes", example[0], "quorate gangs -A", example[1]]


def _counted(cluster: EmbeddedCluster) -> str:
    """Return how many nodes there are, and of which kinds: ``15 x 8 GPUs, 1 CPU node``."""
    sizes = Counter(_gpus(node) for node in cluster.api.find_all("nodes"))
    cpu_only = sizes.pop(0, 0)
    kinds = [f"{count} x {counted(size, 'GPU')}" for size, count in sorted(sizes.items())]
    if cpu_only:
        kinds.append(counted(cpu_only, "CPU node"))
    total = counted(cluster.node_count, "node")
    return f"{total} ({', '.join(kinds)})" if sizes else total


def _gpus(node: Object) -> int:
    listed = node.get("status", {}).get("allocatable", {})
    return sum(parse_amount(name, str(listed[name])) for name in listed if counts_gpus(name))


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _announce(
    wishes: Wishes, cluster: EmbeddedCluster, context: str, metrics: str, took_s: float
) -> None:
    what = "quorate schedules all pods" if wishes.scheduler else "no scheduler runs"
    say(
        f"Kubernetes {cluster.version} (embedded) with {_counted(cluster)} at {cluster.server}, "
        f"ready in {took_s:.1f} s; {what}."
    )
    if metrics:
        say(f"Metrics are at {metrics}")
    if context:
        say(f"Context {context} is the current one of {wishes.write_kubeconfig} meanwhile.")
    say("")
    say(f"  export KUBECONFIG={wishes.write_kubeconfig if context else cluster.kubeconfig}")
    if shutil.which("quorate") is None:
        say(f"  export PATH={Path(sys.executable).parent}:$PATH")
    for line in _to_type() if wishes.scheduler else ["kubectl get nodes"]:
        say(f"  {line}")
    kept = f"kept in {wishes.data}" if wishes.data else "gone with it; keep it with --data DIR"
    say("")
    say(f"{background.ENDED_BY} What it holds is {kept}.")
