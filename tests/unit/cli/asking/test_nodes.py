"""Goal: ``quorate nodes`` shows what is free, who has the rest, and which nodes take no pods.

Method: the command line in this process, against a server that answers by path over real HTTP.
"""

import json
import re
from functools import partial

import pytest
import yaml

from quorate.core.model.quantity import counts_gpus
from tests.paths import ROOT
from tests.unit.cli.api_server import NODES, PODS, kubeconfig, listing, serving, small_cluster
from tests.unit.cli.api_server import pod as plain_pod
from tools import objects
from tools.testing import call

GPU = "nvidia.com/gpu"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def node(name, gpus=8, *, taints=(), cordoned=False, labels=None):
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"} | ({GPU: str(gpus)} if gpus else {})
    spec = {"unschedulable": cordoned, "taints": list(taints)}
    return objects.node(name, labels=labels, allocatable=amounts, **spec)


def pod(name, group, on, gpus, **more):
    return plain_pod(name, group, node=on, requests={"cpu": "1", GPU: str(gpus)}, **more)


def gpu_cluster():
    """Four nodes of 8 GPUs, of which one is cordoned and one is not ready, and one without GPUs."""
    server = small_cluster()
    foreign = pod("solo", None, "g2", 3, scheduler="another")
    ended = pod("past-0", "past", "g2", 8, status={"phase": "Succeeded"})
    pods = [pod("train-0", "train", "g1", 8), pod("train-1", "train", "g2", 4), foreign, ended]
    server.answers |= {
        NODES: listing(
            node("c1", 0),
            node("g1", labels={"rack": "r1"}),
            node("g2"),
            node("g3", cordoned=True),
            node("g4", taints=[NOT_READY]),
        ),
        PODS: listing(*pods),
    }
    return server


@pytest.fixture(scope="module")
def cluster():
    with serving(gpu_cluster()) as server:
        yield server


@pytest.fixture
def nodes(quorate):
    return partial(quorate, "nodes")


def test_sums_map_and_legend(nodes):
    """Nothing showed nodes and free GPUs, though the demo draws exactly that map."""
    code, out, err = nodes()
    assert (code, err) == (0, "")
    sums, _, rest = out.partition("\n\n")
    table, _, legend = rest.partition("\n\n")
    assert sums.splitlines() == [
        "Nodes: 5, of which 3 ready, 1 cordoned, 1 not-ready",
        "GPUs:  32 (4 x 8): 15 in use, 1 free, 16 out of reach",
        "       0 nodes have all their GPUs free",
    ]
    assert [line.split() for line in table.splitlines()] == [
        ["NODE", "STATE", "GPUS", "FREE", "CPU", "MEMORY", "PODS"],
        ["g1", "ready", *"AAAAAAAA", "0/8", "63/64", "512/512Gi", "1"],
        ["g2", "ready", *"AAAABBB·", "1/8", "62/64", "512/512Gi", "2"],
        ["g3", "cordoned", *"xxxxxxxx", "8/8", "64/64", "512/512Gi", "0"],
        ["g4", "not-ready", *"xxxxxxxx", "8/8", "64/64", "512/512Gi", "0"],
        ["c1", "ready", "-", "-", "64/64", "512/512Gi", "0"],
    ]
    assert legend.splitlines() == [
        "A  team/train: 12 GPUs on 2 nodes",
        "B  team/solo: 3 GPUs on 1 node",
    ]
    assert max(map(len, table.splitlines())) < 80


LIFE = "node.coreweave.cloud"
LIFE_FIELDS = {"state", "reserved", "desired", "leaving"}


def test_nodes_of_a_life_cycle_have_its_state_and_reservation(tmp_path, capsys):
    def marked(name, state, reserved, desired="acme", **spec):
        labels = {f"{LIFE}/state": state, f"{LIFE}/reserved": reserved}
        labels |= {f"{LIFE}/reserved-desired": desired, **spec.pop("labels", {})}
        taint = {"key": f"{LIFE}/reserved", "value": "hash", "effect": "NoSchedule"}
        return node(name, labels=labels, taints=[taint], **spec)

    leaving = {"qos.coreweave.cloud/pending-preemption": "true"}
    cluster = small_cluster()
    cluster.answers |= {
        NODES: listing(
            node("c1", 0),
            marked("g1", "production", "acme"),
            marked("g2", "production", "control-plane"),
            marked("g3", "triage", "triage"),
            marked("g4", "production", "acme", labels=leaving, cordoned=True),
        ),
        PODS: listing(),
    }
    with serving(cluster) as other:
        config = kubeconfig(tmp_path, other.url)
        assert call("nodes", "--kubeconfig", config) == 0
        out = capsys.readouterr().out
        assert call("nodes", "--kubeconfig", config, "-o", "json") == 0
        items = json.loads(capsys.readouterr().out)["items"]
    sums, _, table = out.partition("\n\n")
    assert sums.splitlines()[1:] == [
        "GPUs:  32 (4 x 8): 0 in use, 8 free, 24 out of reach",
        "       1 node has all its GPUs free",
    ]
    columns = re.compile(r" {2,}")
    rows = [columns.split(line.rstrip()) for line in table.splitlines()]
    of = [rows[0].index(name) for name in ("NODE", "STATE", "GPUS", "LIFE-CYCLE", "RESERVED")]
    dots, crosses = "· · · · · · · ·", "x x x x x x x x"
    assert [[row[column] for column in of] for row in rows[1:]] == [
        ["g1", "ready", dots, "production", "acme"],
        ["g2", "ready", crosses, "pending for acme", "control-plane"],
        ["g3", "ready", crosses, "triage", "triage"],
        ["g4", "cordoned", crosses, "about to leave", "acme"],
        ["c1", "ready", "-", "-", "-"],
    ]
    assert items[1]["lifeCycle"].keys() == LIFE_FIELDS
    assert items[1]["lifeCycle"] == {
        "state": "production",
        "reserved": "control-plane",
        "desired": "acme",
        "leaving": False,
    }
    assert items[-1]["lifeCycle"] is None


def test_wide_adds_taints_and_labels_choose(nodes):
    assert nodes("-o", "wide")[1].splitlines()[8].endswith("node.kubernetes.io/not-ready")
    _, out, _ = nodes("-l", "rack=r1", "-o", "json")
    assert [one["metadata"]["name"] for one in json.loads(out)["items"]] == ["g1"]
    assert nodes("-l", "rack=none") == (0, "", "No nodes with labels rack=none found.\n")
    code, out, err = nodes("-l", "a=b=c")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_data_says_the_same_in_both_forms_and_the_page_names_every_field(nodes):
    data = json.loads(nodes("-o", "json")[1])
    assert yaml.safe_load(nodes("-o", "yaml")[1]) == data
    assert data["totals"] == {
        "nodes": 5,
        "ready": 3,
        "cordoned": 1,
        "notReady": 1,
        "gpus": 32,
        "gpusUsed": 15,
        "gpusFree": 1,
        "gpusUnreachable": 16,
        "nodesWithAllGpusFree": 0,
    }
    page = (ROOT / "docs/users/json.md").read_text()
    described = yaml.safe_load(page.partition("```yaml nodes\n")[2].partition("```")[0])
    first = data["items"][0]
    assert set(described) == set(data)
    assert set(described["totals"]) == set(data["totals"])
    assert set(described["items"][0]) == set(first)
    assert described["items"][0]["lifeCycle"].keys() == LIFE_FIELDS
    for field in ("gpus", "metadata"):
        assert set(described["items"][0][field]) == set(first[field])
    for field in ("resources", "holders"):
        assert set(described["items"][0][field][0]) == set(first[field][0])


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nvidia.com/gpu", True),
        ("amd.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("gpu.intel.com/i915", True),
        ("nvidia.com/gpumem", False),
        ("rdma/ib", False),
        ("cpu", False),
    ],
)
def test_which_resources_count_gpus(name, counts):
    assert counts_gpus(name) is counts
