"""docs/operators/default-scheduler.md says what tests/e2e/placement/test_only_scheduler.py runs."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from quorate.cli.commands.manifests import render
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.shell.configuration import config
from tools.testing import call

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "operators" / "default-scheduler.md").read_text()
EXAMPLE = ROOT / "examples" / "default-scheduler"


def read(name: str) -> dict:
    return yaml.safe_load((EXAMPLE / name).read_text())


def test_the_documented_configuration_is_the_tested_one():
    [block] = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    tested = (EXAMPLE / "config.yaml").read_text()
    assert block == tested.partition("\n")[2], "all but its first line, a comment"
    made = config.parse(block, "docs")
    assert dict(made.policy.profiles)["default-scheduler"] == KUBE_SCHEDULER
    assert "default-scheduler" in made.policy.scheduler_names


def test_the_static_pod_runs_it_with_files_that_the_document_puts_there():
    spec = read("static-pod.yaml")["spec"]
    [container] = spec["containers"]
    options = dict(one.removeprefix("--").split("=") for one in container["args"][1:])
    folder = {one["name"]: one for one in spec["volumes"]}["files"]["hostPath"]["path"]
    assert folder in DOCS
    assert options == {"kubeconfig": f"{folder}/kubeconfig", "config": f"{folder}/config.yaml"}
    port = config.load(EXAMPLE / "config.yaml").health_port
    for probe in ("livenessProbe", "startupProbe"):
        assert container[probe]["httpGet"]["port"] == port
    deployed = [one for one in yaml.safe_load_all(render()) if one["kind"] == "Deployment"]
    template = deployed[0]["spec"]["template"]["spec"]
    # No cluster chooses the user of a static pod, and the files of its node are for one user alone.
    user = {"runAsUser": 65532, "runAsGroup": 65532}
    assert spec["securityContext"] == {**template["securityContext"], **user}
    assert container["securityContext"] == template["containers"][0]["securityContext"]
    assert container["image"] == template["containers"][0]["image"]


def test_the_certificate_is_that_of_the_manifests_account_and_ends():
    """The static pods had a token that never expires."""
    kinds = {one["kind"]: one["metadata"] for one in yaml.safe_load_all(render(parts=["rbac"]))}
    account = kinds["ServiceAccount"]
    name = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    assert f"kubeadm kubeconfig user --client-name={name} " in DOCS
    secrets = [one for file in EXAMPLE.iterdir() for one in yaml.safe_load_all(file.read_text())]
    assert "Secret" not in {one["kind"] for one in secrets}


@pytest.mark.parametrize("line", re.findall(r"quorate (manifests[^|`]*)", DOCS))
def test_the_documented_commands_are_calls(line, capsys):
    assert call(*shlex.split(line)) == 0
    capsys.readouterr()
