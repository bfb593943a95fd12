"""``quorate up`` as a user meets it: starting, stopping, keeping, and what can be wrong."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.signals import ignores
from tools import objects
from tools.embedded import Embedded
from tools.testing import HANGS_S, call, wait_for

UP = [sys.executable, "-m", "quorate.cli", "up"]
PODS = "/api/v1/namespaces/default/pods"


def up(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*UP, *args], capture_output=True, text=True, timeout=HANGS_S, check=False
    )


def started(
    tmp_path: Path, *args: str, kubeconfig: Path | None = None, before: Iterable[str] = ()
) -> tuple[subprocess.Popen, Path]:
    """Start a cluster whose temporary files are in ``tmp_path``; give it and its kubeconfig.

    ``before`` is what the command line begins with.
    """
    kubeconfig = kubeconfig or tmp_path / "kubeconfig"
    old = kubeconfig.read_bytes() if kubeconfig.exists() else None
    command = [*before, *UP, "--write-kubeconfig", str(kubeconfig), *args]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )

    def is_up() -> bool:
        written = kubeconfig.exists() and kubeconfig.read_bytes() != old
        return written or process.poll() is not None

    wait_for(is_up, "it is up")
    return process, kubeconfig


@pytest.mark.parametrize(
    ("number", "before"),
    [
        pytest.param(signal.SIGINT, [], id="SIGINT"),
        pytest.param(signal.SIGTERM, [], id="SIGTERM", marks=pytest.mark.explore),
        pytest.param(
            signal.SIGINT,
            ignores(signal.SIGINT),
            id="SIGINT, which who started it ignores",
            marks=pytest.mark.explore,
        ),
    ],
)
def test_it_says_what_to_type_and_leaves_nothing_behind(tmp_path, number, before):
    process, kubeconfig = started(tmp_path, "--nodes", "4", before=before)
    assert yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    process.send_signal(number)
    out, err = process.communicate(timeout=HANGS_S)
    assert (process.returncode, err) == (0, "")
    assert "export KUBECONFIG=" in out
    assert "4 nodes" in out
    assert "quorate why" in out
    assert re.search(r"^Metrics are at http://127.0.0.1:[0-9]+/metrics$", out, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.explore
@pytest.mark.parametrize(
    ("args", "nodes"),
    [
        ("--shape=coreweave-h100 --gpu-nodes=16", "17 nodes (16 x 8 GPUs, 1 CPU node)"),
        ("--nodes=5 --gpu-nodes=2", "5 nodes (2 x 8 GPUs, 3 CPU nodes)"),
    ],
)
def test_the_banner_says_which_nodes_there_are_and_how_long_it_took(tmp_path, args, nodes):
    """--nodes 16 gave 15 GPU nodes and a CPU node, and nobody said so.

    "ready in 0.1 s" left out the imports, which take longer than all else.
    """
    started_s = time.monotonic()
    process, kubeconfig = started(tmp_path, *args.split())
    took_s = time.monotonic() - started_s
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANGS_S)
    assert (process.returncode, err) == (0, "")
    assert f"with {nodes} at https://127.0.0.1:" in out
    ready_s = float(re.search(r"ready in ([0-9.]+) s", out)[1])
    assert 0.2 < ready_s <= took_s + 0.5
    assert f"export KUBECONFIG={kubeconfig}" in out


@pytest.mark.explore
def test_what_it_says_to_type_works_from_any_folder(tmp_path):
    """How quorate gets on PATH was not said, and the example was in a clone only."""
    line = [*UP, "--nodes", "1"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as process:
        lines = []
        while not lines or not lines[-1].startswith("Ctrl-C stops"):
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
    told = [line.strip() for line in lines]
    assert f"export PATH={Path(sys.executable).parent}:$PATH" in told
    (example,) = [line for line in told if line.startswith("kubectl apply -f ")]
    assert Path(example.removeprefix("kubectl apply -f ")).is_file()


def test_a_cluster_in_the_background_is_ready_on_return_and_down_stops_it(tmp_path):
    """There was no --wait, no background and no down."""
    kubeconfig = tmp_path / "kubeconfig"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    line = [*UP, "--background", "--nodes", "2", "--write-kubeconfig", str(kubeconfig)]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=HANGS_S, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    pid = re.search(r"^quorate down ([0-9]+) stops the cluster", done.stdout, re.MULTILINE)[1]
    cli = [sys.executable, "-m", "quorate.cli"]
    try:
        listed = subprocess.run(
            [*cli, "nodes", "--kubeconfig", str(kubeconfig)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert listed.stdout.startswith("Nodes: 2, ")
    finally:
        stopped = subprocess.run([*cli, "down", pid], capture_output=True, text=True, check=False)
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    again = subprocess.run([*cli, "down", pid], capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert again.stderr == f"Error: process {pid} is no quorate up of yours\n"


TIDIES_UP = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: None)
print("ready", flush=True)
signal.pause()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
time.sleep(0.3)
pathlib.Path(sys.argv[1]).touch()
"""


def test_down_returns_when_the_process_has_tidied_up(tmp_path):
    line = [sys.executable, "-c", TIDIES_UP, str(tmp_path / "tidy"), "quorate", "up"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        cli = [sys.executable, "-m", "quorate.cli", "down", str(process.pid)]
        subprocess.run(cli, capture_output=True, check=True, timeout=HANGS_S)
        assert (tmp_path / "tidy").exists()


@pytest.mark.explore
def test_a_background_that_cannot_start_says_why_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = up("--background", "--port", str(taken.getsockname()[1]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


MINE = """\
# my clusters
apiVersion: v1
kind: Config
clusters: [{name: prod, cluster: {server: "https://prod.example"}}]
users: [{name: me, user: {token: mine}}]
contexts: [{name: prod, context: {cluster: prod, user: me}}]
current-context: prod
"""


@pytest.fixture
def my_config(tmp_path):
    path = tmp_path / "my-kubeconfig"
    path.write_text(MINE)
    path.chmod(0o644)
    return path


def test_a_context_comes_into_my_kubeconfig_and_goes_again(tmp_path, my_config):
    process, _ = started(tmp_path, "--nodes", "1", kubeconfig=my_config)
    found = yaml.safe_load(my_config.read_text())
    assert [one["name"] for one in found["contexts"]] == ["prod", "quorate"]
    assert found["current-context"] == "quorate"
    assert stat.S_IMODE(my_config.stat().st_mode) == 0o600
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANGS_S)
    assert (process.returncode, err) == (0, "")
    assert f"Context quorate is the current one of {my_config} meanwhile." in out
    assert my_config.read_text() == MINE


@pytest.mark.explore
@pytest.mark.parametrize("args", [["--shape", "typo"], ["--port", "1", "--run-time", "soon"]])
def test_a_start_that_fails_leaves_my_kubeconfig_alone(my_config, args):
    before = my_config.stat()
    done = up("--write-kubeconfig", str(my_config), *args)
    assert done.returncode == 2
    after = my_config.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_mode,
    )


@pytest.mark.explore
def test_a_file_that_is_no_kubeconfig_is_named_and_left_alone(tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("buy milk\n")
    done = up("--write-kubeconfig", str(notes))
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {notes} is no kubeconfig: ")
    assert done.stderr.count("\n") == 1
    assert notes.read_text() == "buy milk\n"


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = up("--port", str(port))
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: port {port} is in use: choose another with --port, or 0 for any that is free\n"
    )


@pytest.mark.explore
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--shape", "no-such-shape"], "no-such-shape"),
        (["--nodes", "-1"], "--nodes"),
        (["--run-time", "soon"], "--run-time soon"),
        (["--config", "no-such-file.yaml"], "no-such-file.yaml"),
        (["--data", "/proc/quorate"], "/proc/quorate"),
    ],
)
def test_a_bad_call_is_one_line_that_names_what_is_wrong(args, said):
    done = up(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.explore
def test_presets_are_listed():
    done = up("--shape", "list")
    assert done.returncode == 0
    assert "coreweave-h100" in done.stdout


@pytest.mark.explore
def test_a_folder_serves_one_cluster_at_a_time(tmp_path):
    with Embedded.start(tmp_path):
        done = up("--data", str(tmp_path))
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_it_holds_survives_kill_9(tmp_path):
    with Embedded.start(tmp_path, nodes=2) as cluster:
        body = {"metadata": {"name": "kept"}, "data": {"k": "v"}}
        path = "/api/v1/namespaces/default/configmaps"
        made = cluster.api("POST", path, body)
        cluster.restart_apiserver(kill=True)
        assert cluster.api("GET", f"{path}/kept") == made
        assert len(cluster.api("GET", "/api/v1/nodes")["items"]) == 2
        later = cluster.api("POST", path, {"metadata": {"name": "later"}})
    versions = [int(one["metadata"]["resourceVersion"]) for one in (made, later)]
    assert versions[0] < versions[1]


@pytest.mark.explore
def test_a_corrupt_folder_is_named_and_left_as_it_is(tmp_path):
    with Embedded.start(tmp_path):
        pass
    file = tmp_path / "state.journal"
    broken = file.read_bytes()[:5000] + b"rubbish" * 1000
    file.write_bytes(broken)
    done = up("--data", str(tmp_path))
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert file.read_bytes() == broken


def test_a_gang_whose_pods_name_no_scheduler_starts_whole_and_is_listed(tmp_path, capsys):
    """It started, was absent from ``gangs``, and ``why`` of its pod said that it is not ours."""
    key = "pod-group.scheduling.sigs.k8s.io/"
    labels = {f"{key}name": "g", f"{key}min-available": "3"}
    with Embedded.start(tmp_path, scheduler=True, nodes=2) as cluster:

        def create(name: str) -> None:
            cluster.api("POST", PODS, objects.pod(name, scheduler=None, labels=labels))

        def statuses() -> list[dict]:
            return [pod["status"] for pod in cluster.api("GET", PODS)["items"]]

        create("g-0")
        create("g-1")
        wait_for(lambda: all("conditions" in one for one in statuses()), "both are told")
        assert [one["phase"] for one in statuses()] == ["Pending", "Pending"]
        create("g-2")
        wait_for(lambda: [one["phase"] for one in statuses()] == ["Running"] * 3, "all run")
        assert call("gangs", f"--kubeconfig={cluster.kubeconfig}") == 0
        assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["g", "Started", "3/3"]
        assert call("why", "pod/g-0", f"--kubeconfig={cluster.kubeconfig}") == 0


def test_pods_that_name_no_scheduler_run_with_volumes_of_the_default_class(tmp_path):
    with Embedded.start(tmp_path, scheduler=True, nodes=2) as cluster:
        namespace = "/api/v1/namespaces/default"
        cluster.api("POST", f"{namespace}/persistentvolumeclaims", objects.claim("data"))
        source = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        pod = objects.pod("dbg", scheduler=None, requests=None, volumes=[source])
        cluster.api("POST", f"{namespace}/pods", pod)

        def phase(path: str) -> str:
            return cluster.api("GET", f"{namespace}/{path}")["status"]["phase"]

        wait_for(lambda: phase("pods/dbg") == "Running", "it runs")
        assert phase("persistentvolumeclaims/data") == "Bound"


def configured(tmp_path: Path, line: str) -> tuple[str, str]:
    head = "apiVersion: quorate.dev/v1alpha1\nkind: SchedulerConfiguration\n"
    (tmp_path / "config.yaml").write_text(f"{head}healthAddress: 127.0.0.1:0\n{line}\n")
    return ("--config", str(tmp_path / "config.yaml"))


def starts(cluster: Embedded, name: str) -> None:
    """Create a pod for quorate, which runs when this returns."""
    cluster.api("POST", PODS, objects.pod(name, requests=None))
    path = f"{PODS}/{name}"
    wait_for(lambda: cluster.api("GET", path)["status"]["phase"] == "Running", f"{name} runs")


def test_the_cluster_outlives_its_scheduler_which_starts_anew(tmp_path):
    """The whole cluster ended with a traceback when the scheduler's account was deleted."""
    extra = configured(tmp_path, "leaderElection: {renewDeadlineSeconds: 3}")
    with Embedded.start(tmp_path / "up", scheduler=True, nodes=2, extra=extra) as cluster:
        starts(cluster, "first")  # so it leads
        cluster.api("DELETE", "/api/v1/namespaces/quorate-system")
        wait_for(lambda: "starts anew" in cluster.log_file.read_text(), "it lost its lease")
        starts(cluster, "later")
        assert "Traceback" not in cluster.log_file.read_text()


@pytest.mark.explore
def test_a_configuration_that_says_so_leaves_pods_that_name_no_scheduler_alone(tmp_path):
    extra = configured(tmp_path, "schedulerNames: [quorate]")
    with Embedded.start(tmp_path / "up", scheduler=True, nodes=2, extra=extra) as cluster:
        other = objects.pod("other", scheduler="default-scheduler", requests=None)
        cluster.api("POST", PODS, other)
        starts(cluster, "ours")
        assert "nodeName" not in cluster.api("GET", f"{PODS}/other")["spec"]


def test_without_its_extra_it_says_what_to_install():
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from quorate.cli.main import call; sys.exit(call(['up']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: cryptography is not installed: ")
    assert "quorate-scheduler[embedded]" in done.stderr
