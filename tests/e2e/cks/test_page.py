"""What the page on these rules gives to try does what the page says."""

import re
import shlex

import pytest

from tests.paths import ROOT
from tools.controlplane import KubectlError

pytestmark = [pytest.mark.core, pytest.mark.real]
PAGE = (ROOT / "docs" / "operators" / "coreweave.md").read_text()
SEEN = {
    "create namespace vision": "namespace/vision created",
    "label namespace kube-system team=vision": "the namespace is of the control plane.",
    "label namespace vision ns.coreweave.cloud/org-": "are not allowed.",
    "label node n1 node.coreweave.cloud/state=production": "are not allowed.",
    "-n vision run a --image pause": "node.coreweave.cloud/reserved: acme",
    "label node n1 node.coreweave.cloud/reserved=acme": "node/n1 labeled",
    "taint node n1": "node/n1 tainted",
}
"""By a part of a command, what is seen. In the order of the page."""


@pytest.fixture
def as_on_the_page(cluster, tenants):
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
        try:
            said = cluster.kubectl(*shlex.split(command))
        except KubectlError as error:
            said = str(error)
            assert "(Forbidden)" in said
        assert seen in said
