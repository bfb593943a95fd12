"""The wheel without extras: what a scheduler's image holds runs, schedules, and says what it lacks.

The wheel is built and installed as pip does it. What it depends on comes from this environment by
links, package by package, so that nothing is there that the wheel does not ask for.
"""

import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from quorate import DISTRIBUTION, __version__
from tools.embedded import Embedded
from tools.harness.scheduler import Quorate
from tools.objects import gang_pods
from tools.testing import HANGS_S, wait_for

pytestmark = pytest.mark.explore
ROOT = Path(__file__).resolve().parents[2]
EXTRAS = (
    "typer",
    "click",
    "rich",
    "pygments",
    "cel",
    "prompt_toolkit",
    "cryptography",
    "pocketkube",
)
PODS = "/api/v1/namespaces/default/pods"
GANG = "pod-group.scheduling.sigs.k8s.io"


def run(*command):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, check=False
    )


def needed(wheel: Path, *extras: str) -> set[str]:
    """Return the names of all packages of others that the wheel needs, with these extras."""
    (described,) = metadata.distributions(path=[str(wheel)])
    waiting, found = [(described, extra) for extra in ("", *extras)], set()
    while waiting:
        distribution, extra = waiting.pop()
        for written in distribution.requires or ():
            one = Requirement(written)
            if one.name not in found and (not one.marker or one.marker.evaluate({"extra": extra})):
                found.add(one.name)
                waiting += [(metadata.distribution(one.name), of) for of in ("", *one.extras)]
    return found - {"pocketkube"}


def link(package: str, to: Path) -> None:
    """Put a package of this environment into another one."""
    distribution = metadata.distribution(package)
    for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        target = to / top
        if not target.exists():
            target.symlink_to(distribution.locate_file(top))


def wheel_of(home: Path, to: Path) -> Path:
    """Build the wheel of a distribution of this repository, as pip does."""
    built = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", to, home)
    assert built.returncode == 0, built.stderr
    (wheel,) = to.glob("*.whl")
    return wheel


def environment(folder: Path, wheels: Iterable[Path], *extras: str) -> Path:
    """Make an environment that has the wheels and what they need; return where its programs are."""
    made = run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    assert made.returncode == 0, made.stderr
    python = folder / "venv" / "bin" / "python"
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for wheel in wheels:
        pip = (sys.executable, "-m", "pip", "--python", python)
        installed = run(*pip, "install", "-q", "--no-deps", "--no-index", wheel)
        assert installed.returncode == 0, installed.stderr
        for package in needed(wheel, *extras):
            link(package, packages)
    return python.parent


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The folder of the programs of an environment that has the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("bare")
    return environment(folder, [wheel_of(ROOT, folder / "dist")])


@pytest.fixture(scope="module")
def pocket(tmp_path_factory):
    """Pocketkube's wheel, where there is no quorate."""
    folder = tmp_path_factory.mktemp("pocket")
    return environment(folder, [wheel_of(ROOT / "embedded", folder / "dist")])


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Both wheels, with the extras that ``quorate up`` asks for."""
    folder = tmp_path_factory.mktemp("both")
    homes = {"quorate": ROOT, "pocketkube": ROOT / "embedded"}
    wheels = [wheel_of(home, folder / name) for name, home in homes.items()]
    return environment(folder, wheels, "cli", "embedded")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Embedded.start(tmp_path_factory.mktemp("cluster"), nodes=3, durable=False) as started:
        yield started


def scheduler(bare, cluster, folder):
    class Bare(Quorate):
        command_line = staticmethod(lambda *args: [str(bare / "quorate"), *args])

    return Bare(
        cluster, folder, {"leaderElection": {"enabled": False}}, kubeconfig=cluster.kubeconfig
    )


def create(cluster, *pods):
    for pod in pods:
        cluster.api("POST", PODS, pod)


def bound(cluster, gang):
    pods = cluster.api("GET", f"{PODS}?labelSelector=gang%3D{gang}")["items"]
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


def gang(name, count):
    labels = {f"{GANG}/name": name, f"{GANG}/min-available": str(count)}
    return gang_pods(name, count, labels=labels)


def test_the_wheel_says_what_it_is(bare):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wheel,) = (bare.parents[1] / "dist").glob("*.whl")
    (described,) = metadata.distributions(path=[str(wheel)])
    said = described.metadata
    assert wheel.name == f"quorate_scheduler-{__version__}-py3-none-any.whl"
    assert (said["Name"], said["Version"]) == (DISTRIBUTION, __version__)
    assert (said["License-Expression"], said["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert sorted(said.get_all("Classifier")) == sorted(project["classifiers"])
    assert set(said.get_all("Provides-Extra")) == {"cli", "devices", "embedded", "test"}
    assert {one.split("/")[0] for one in map(str, described.files or ())} == {
        "quorate",
        f"quorate_scheduler-{__version__}.dist-info",
    }
    assert sorted((one.group, one.name, one.value) for one in described.entry_points) == [
        ("console_scripts", "kubectl-quorate", "quorate.cli.entry:main"),
        ("console_scripts", "quorate", "quorate.cli.entry:main"),
    ]
    for written in described.requires or ():
        one = Requirement(written)
        if not (one.marker and "test" in str(one.marker)):
            pinned = {"pocketkube": {"=="}}.get(one.name, {">="})
            assert pinned <= {limit.operator for limit in one.specifier}, written
    assert "# quorate" in said.get_payload(), "the README is its page"


def test_no_extra_can_be_imported(bare):
    for name in (*EXTRAS, "kubernetes", "pytest"):
        said = run(bare / "python", "-c", f"import {name}").stderr
        assert f"No module named '{name}'" in said


@pytest.mark.parametrize("command", [("quorate",), ("python", "-m", "quorate")])
def test_run_explains_itself_and_the_others_say_what_to_install(bare, command):
    command = (bare / command[0], *command[1:])
    helped = run(*command, "run", "--help")
    assert helped.returncode == 0
    for option in ("--kubeconfig", "--context", "--config"):
        assert option in helped.stdout
    assert re.fullmatch(r"[\w.]+\n", run(*command, "version").stdout)
    assert "pip install 'quorate-scheduler[cli]'" in run(*command, "--help").stdout
    done = run(*command, "run", "--kubeconfig", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: nothing: no such kubeconfig; give its path")
    refused = run(*command, "why", "train")
    assert refused.returncode == 2
    assert "pip install 'quorate-scheduler[cli]'" in refused.stderr


def test_it_binds_a_gang(bare, cluster, tmp_path):
    running = scheduler(bare, cluster, tmp_path).start()
    try:
        create(cluster, *gang("whole", 4)[:3])
        create(cluster, gang("whole", 4)[3])
        wait_for(lambda: bound(cluster, "whole") == 4, "the gang is bound")
    finally:
        assert running.stop() == 0, running.log_file.read_text()


def test_a_recording_can_be_taken_in_the_container(bare, cluster, tmp_path):
    running = scheduler(bare, cluster, tmp_path).start()
    try:
        to = tmp_path / "q.recording"
        done = run(bare / "quorate", "record", running.process.pid, "--output", to)
        assert done.returncode == 0, done.stderr
        assert to.stat().st_size > 0
    finally:
        running.stop()


def claim_a_gpu(cluster):
    """Write a class with a selector, a node's device, a claim, and a pod that needs it."""
    api = "/apis/resource.k8s.io/v1"
    node = cluster.api("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    expression = 'device.driver == "gpu.example.com"'
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1}
    slices = {"driver": "gpu.example.com", "nodeName": node, "pool": pool}
    for path, kind, spec in (
        ("deviceclasses", "DeviceClass", {"selectors": [{"cel": {"expression": expression}}]}),
        ("resourceslices", "ResourceSlice", {**slices, "devices": [{"name": "gpu-0"}]}),
        (
            "namespaces/default/resourceclaims",
            "ResourceClaim",
            {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        ),
    ):
        body = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "gpus"}}
        cluster.api("POST", f"{api}/{path}", {**body, "spec": spec})
    claims = [{"name": "gpu", "resourceClaimName": "gpus"}]
    (pod,) = gang_pods("claimant", 1)
    pod["metadata"]["labels"] = {}
    create(cluster, {**pod, "spec": {**pod["spec"], "resourceClaims": claims}})


def test_pods_with_selectors_of_devices_wait_for_the_extra_and_others_go_on(
    bare, cluster, tmp_path
):
    running = scheduler(bare, cluster, tmp_path).start()
    try:
        claim_a_gpu(cluster)

        def said():
            status = cluster.api("GET", f"{PODS}/claimant-0")["status"]
            return [one.get("message", "") for one in status.get("conditions", ())]

        wait_for(
            lambda: "pip install 'quorate-scheduler[devices]'" in str(said()), "the reason is told"
        )
        create(cluster, *gang("beside", 3))
        wait_for(lambda: bound(cluster, "beside") == 3, "the gang is bound")
        assert "pip install 'quorate-scheduler[devices]'" in str(said())
    finally:
        assert running.stop() == 0, running.log_file.read_text()


def until_ready(command, told, folder):
    """Run a program of an environment until it has told its kubeconfig; return what it printed."""
    log = folder / "log"
    with log.open("w") as to:
        process = subprocess.Popen([str(part) for part in command], stdout=to, stderr=to)
    try:
        wait_for(lambda: told in log.read_text() or process.poll() is not None, "it is ready")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS_S) == 0, log.read_text()
    return log.read_text()


def test_pocketkube_runs_where_there_is_no_quorate(pocket, tmp_path):
    assert "No module named 'quorate'" in run(pocket / "python", "-c", "import quorate").stderr
    said = until_ready([pocket / "pocketkube", "--nodes", "2"], "export KUBECONFIG=", tmp_path)
    assert "with 2 nodes" in said


def test_quorate_up_runs_from_both_wheels(both, tmp_path):
    said = until_ready([both / "quorate", "up", "--nodes", "2"], "export KUBECONFIG=", tmp_path)
    assert "with 2 nodes" in said
    assert "quorate schedules" in said


def test_lint_knows_shapes_without_the_embedded_cluster(both):
    program = (
        "import sys; sys.modules['pocketkube'] = None\n"
        "from quorate.cli.main import call; sys.exit(call(sys.argv[1:]))"
    )
    job = ROOT / "examples" / "coreweave-podgroup.yaml"
    linted = run(both / "python", "-c", program, "lint", "--shape", "small", job)
    assert linted.returncode == 0, linted.stderr + linted.stdout
