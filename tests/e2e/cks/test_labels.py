"""Labels of the platform's domains are refused to users, on nodes and namespaces, and no others."""

import json

import pytest

from tests.e2e.cks.conftest import DOCUMENTED, grant, labels_of

pytestmark = [pytest.mark.core, pytest.mark.real]
NODE = "labelled"
PATH = f"/api/v1/nodes/{NODE}"
STATE = "node.coreweave.cloud/state"


@pytest.fixture
def node(cluster, tenants):
    cluster.create_nodes([NODE], labels={STATE: "production"})
    yield f"node/{NODE}"
    cluster.delete(PATH)


@pytest.mark.parametrize(
    "label",
    [
        f"{STATE}=triage",
        f"{STATE}-",
        "coreweave.cloud/any=x",
        "coreweave.com/any=x",
        "a.b.coreweave.com/any=x",
    ],
)
def test_a_label_of_these_domains_is_refused_with_the_documented_words(
    cluster, tenants, node, label
):
    before = labels_of(cluster, PATH)
    said = tenants.jane.refused("label", "--overwrite", node, label)
    assert "(Forbidden)" in said
    assert DOCUMENTED in said
    assert label.rstrip("-").partition("=")[0] in said
    assert labels_of(cluster, PATH) == before


@pytest.mark.parametrize(
    "label",
    [
        "team=vision",
        "example.com/coreweave.cloud=x",
        "notcoreweave.cloud/any=x",
        "coreweave.cloud.example.com/any=x",
        "coreweave.cloud=x",
    ],
)
def test_any_other_label_passes(cluster, tenants, node, label):
    tenants.jane.kubectl("label", node, label)
    key, _, value = label.partition("=")
    assert labels_of(cluster, PATH)[key] == value
    assert labels_of(cluster, PATH)[STATE] == "production"


def test_the_status_of_a_node_is_no_way_around_it(cluster, tenants, node):
    change = json.dumps({"metadata": {"labels": {STATE: "zap"}}})
    said = tenants.jane.refused("patch", node, "--subresource=status", "-p", change)
    assert DOCUMENTED in said
    assert labels_of(cluster, PATH)[STATE] == "production"


def test_a_node_is_not_created_with_one(cluster, tenants):
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "own", "labels": {STATE: "x"}}}
    assert DOCUMENTED in tenants.jane.refused("create", "-f", "-", manifest=made)
    assert not cluster.exists("/api/v1/nodes/own")


def test_namespaces_are_kept_as_nodes_are(cluster, tenants):
    name = tenants.name()
    tenants.jane.kubectl("create", "namespace", name)
    said = tenants.jane.refused("label", "namespace", name, "qos.coreweave.com/class=x")
    assert DOCUMENTED in said
    tenants.jane.kubectl("label", "namespace", name, "class=x")


def test_whom_the_platform_s_role_is_bound_to_writes_them(cluster, tenants, node):
    said = tenants.zed.refused("label", "--overwrite", node, f"{STATE}=triage")
    assert DOCUMENTED in said
    grant(cluster, "quorate-cks-platform", "org:zeta")
    try:
        tenants.zed.kubectl("label", "--overwrite", node, f"{STATE}=triage")
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "cks-quorate-cks-platform")
    assert labels_of(cluster, PATH)[STATE] == "triage"


def test_labels_of_pods_in_these_domains_are_the_users_own(cluster, tenants):
    """They choose how a pod may be interrupted by them."""
    name = tenants.name()
    tenants.jane.kubectl("create", "namespace", name)
    label = "qos.coreweave.cloud/interruptable=true"
    run = ("-n", name, "run", "batch", "--image=pause", f"--labels={label}", "--dry-run=server")
    assert "pod/batch created" in tenants.jane.kubectl(*run)
