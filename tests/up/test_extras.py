"""The wheel without extras: what a scheduler's image holds runs, schedules, and says what it lacks.

The wheel is built and installed as pip does it. What it depends on comes from this environment by
links, package by package, so that nothing is there that the wheel does not ask for.
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.e2e.harness.scheduler import Quorate
from tests.e2e.harness.world import gang_pods, wait_for
from tools.embedded import Embedded

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("typer", "click", "rich", "pygments", "cel", "prompt_toolkit", "cryptography")
PODS = "/api/v1/namespaces/default/pods"
GANG = "pod-group.scheduling.sigs.k8s.io"


def run(*command):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, check=False
    )


def needed(wheel: Path) -> set[str]:
    """Return the names of all packages that the wheel needs without extras."""
    (described,) = metadata.distributions(path=[str(wheel)])
    waiting, found = [described], set()
    while waiting:
        for written in waiting.pop().requires or ():
            one = Requirement(written)
            if one.name not in found and (not one.marker or one.marker.evaluate({"extra": ""})):
                found.add(one.name)
                waiting.append(metadata.distribution(one.name))
    return found


def link(package: str, to: Path) -> None:
    """Put a package of this environment into another one."""
    distribution = metadata.distribution(package)
    for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        target = to / top
        if not target.exists():
            target.symlink_to(distribution.locate_file(top))


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The folder of the programs of an environment that has the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("bare")
    built = run(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", ROOT
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    made = run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    assert made.returncode == 0, made.stderr
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    installed = run(*pip, "install", "-q", "--no-deps", "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for package in needed(wheel):
        link(package, packages)
    return python.parent


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


def test_no_extra_can_be_imported(bare):
    for name in (*EXTRAS, "kubernetes_asyncio", "pytest"):
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
    assert "pip install 'quorate[cli]'" in run(*command, "--help").stdout
    done = run(*command, "run", "--kubeconfig", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: nothing: no such kubeconfig; give its path")
    refused = run(*command, "why", "train")
    assert refused.returncode == 2
    assert "pip install 'quorate[cli]'" in refused.stderr


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

        wait_for(lambda: "pip install 'quorate[devices]'" in str(said()), "the reason is told")
        create(cluster, *gang("beside", 3))
        wait_for(lambda: bound(cluster, "beside") == 3, "the gang is bound")
        assert "pip install 'quorate[devices]'" in str(said())
    finally:
        assert running.stop() == 0, running.log_file.read_text()
