"""What the page on these rules gives to try does what the page says."""

import re
import shlex

import pytest

from tests.paths import ROOT
from tools.controlplane import KubectlError
from tools.testing import wait_for

pytestmark = [pytest.mark.core, pytest.mark.real]
PAGE = (ROOT / "docs" / "operators" / "coreweave.md").read_text()
SEEN = {
    "create namespace vision": "namespace/vision created",
    "label namespace kube-system team=vision": "the namespace is of the control plane.",
    "label namespace vision ns.coreweave.cloud/org-": "are not allowed.",
    "label node n1 node.coreweave.cloud/state=production": "are not allowed.",
    "-n vision run a --image pause": "node.coreweave.cloud/reserved: acme",
    "label node n1 node.coreweave.cloud/state=nowhere": "there is no state",
    "get nodes -L node.kubernetes.io/type": "n1",
    "label node n1 node.coreweave.cloud/state=production node": "node/n1 labeled",
    "get nodes -L node.coreweave.cloud/state": "acme",
    "label node n1 node.coreweave.cloud/state-": "node/n1 unlabeled",
    "label node n1 node.coreweave.cloud/state=zap": "node/n1 labeled",
    "describe node n1": "reserved for zap",
    "get node n1 -o yaml": "quorate",
}
"""By a part of a command, what is seen. In the order of the page."""


@pytest.fixture
def as_on_the_page(cluster, tenants, keeper):
    cluster.create_nodes(["n1"])
    yield
    cluster.delete("/api/v1/nodes/n1")
    cluster.kubectl("delete", "namespace", "vision", "--wait=false")


def test_the_commands_to_try_do_what_is_said(cluster, as_on_the_page):
    rules = PAGE[PAGE.index("## The rules") : PAGE.index("## Names")]
    commands = re.findall(r"(?m)(?:`|^)kubectl ([^`\n]+)", rules)
    assert len(commands) == len(SEEN)
    for command, (part, seen) in zip(commands, SEEN.items(), strict=True):
        assert part in command
        if command.startswith(("get", "describe")):
            wait_for(
                lambda call=command, seen=seen: seen in typed(cluster, call), f"{seen} is seen"
            )
        else:
            assert seen in typed(cluster, command)


def typed(cluster, command: str) -> str:
    """Return what kubectl says; it may be a refusal by rules, and no other mistake."""
    try:
        return cluster.kubectl(*shlex.split(command))
    except KubectlError as error:
        if "ValidatingAdmissionPolicy" in str(error):
            return str(error)
        raise
