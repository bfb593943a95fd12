"""Where pods of organizations and of the control plane run, on nodes with and without GPUs."""

import pytest

from tools.harness.cks import ORG, RESERVED
from tools.harness.world import World
from tools.objects import pod
from tools.testing import wait_for

pytestmark = [pytest.mark.core, pytest.mark.real]
GPU = {"cpu": "1", "nvidia.com/gpu": "1"}
CPU_TAINT = {"key": "is_cpu_compute", "effect": "NoSchedule"}
GPU_TAINT = {"key": "is_gpu", "value": "true", "effect": "PreferNoSchedule"}


def reserved(reservation: str) -> dict:
    """The label and taint of a node's reservation; the value of the taint is of no matter here."""
    taint = {"key": RESERVED, "value": f"of-{reservation}", "effect": "NoSchedule"}
    return {"labels": {RESERVED: reservation}, "taints": [taint]}


class Fleet:
    """Nodes of both organizations and the control plane, and a namespace of each."""

    def __init__(self, cluster, tenants, quorate) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.worlds = {
            "acme": World(cluster, quorate, tenants.name()),
            "zeta": World(cluster, quorate, tenants.name()),
            "control-plane": World(cluster, quorate, tenants.name()),
        }
        for organization, world in self.worlds.items():
            cluster.kubectl("label", "namespace", world.namespace, f"{ORG}={organization}")
            self.nodes(organization, "cpu", CPU_TAINT, {"cpu": "4"})
        self.nodes("acme", "gpu", GPU_TAINT, {"cpu": "8", "nvidia.com/gpu": "8"})

    def nodes(self, organization: str, kind: str, taint: dict, allocatable: dict) -> None:
        described = reserved(organization)
        described["taints"] = [*described["taints"], taint]
        self.cluster.create_nodes(
            1, prefix=f"{organization}-{kind}-", allocatable=allocatable, **described
        )

    def create(self, organization: str, *pods: dict) -> None:
        """Create pods as a user of the organization, or as the platform."""
        users = {"acme": self.tenants.jane, "zeta": self.tenants.zed}
        name = self.worlds[organization].namespace
        for one in pods:
            if organization in users:
                users[organization].kubectl("-n", name, "create", "-f", "-", manifest=one)
            else:
                self.worlds[organization].create_pod(one)

    def where(self, organization: str, count: int) -> dict[str, str]:
        """Return the nodes of an organization's pods when all these are bound."""
        self.worlds[organization].wait_bound(count)
        return self.worlds[organization].where()


@pytest.fixture
def fleet(cluster, tenants, quorate):
    quorate.revive()
    made = Fleet(cluster, tenants, quorate)
    yield made
    for world in made.worlds.values():
        world.remove()


def test_pods_run_on_nodes_of_whose_they_are(fleet):
    fleet.create("acme", pod("a"))
    fleet.create("zeta", pod("z"), pod("any", tolerations=[{"operator": "Exists"}]))
    fleet.create("control-plane", pod("c"))
    assert fleet.where("acme", 1) == {"a": "acme-cpu-0"}
    assert fleet.where("zeta", 2) == {"z": "zeta-cpu-0", "any": "zeta-cpu-0"}
    assert fleet.where("control-plane", 1) == {"c": "control-plane-cpu-0"}


def test_nobody_gets_to_nodes_of_others(fleet):
    zed, name = fleet.tenants.zed, fleet.worlds["zeta"].namespace
    elsewhere = pod("elsewhere", nodeSelector={RESERVED: "acme"})
    said = zed.refused("-n", name, "create", "-f", "-", manifest=elsewhere)
    assert "(Forbidden)" in said
    assert f"spec.nodeSelector[{RESERVED}] has to be the namespace's organization" in said
    named = pod("named", nodeName="acme-gpu-0")
    said = zed.refused("-n", name, "create", "-f", "-", manifest=named)
    assert "spec.nodeName has to be empty" in said
    assert fleet.worlds["zeta"].pods() == []
    chosen = {"kubernetes.io/hostname": "acme-gpu-0"}
    fleet.create("zeta", pod("chosen", nodeSelector=chosen))
    fleet.worlds["zeta"].wait_condition("0/4 nodes are available: 4 node(s) didn't match")
    assert fleet.worlds["zeta"].where() == {}


def test_a_pod_of_the_control_plane_that_tolerates_reservations_runs_where_it_likes(fleet):
    anywhere = {"key": RESERVED, "operator": "Exists"}
    on = {"kubernetes.io/hostname": "acme-gpu-0"}
    fleet.create("control-plane", pod("verify", tolerations=[anywhere], nodeSelector=on))
    assert fleet.where("control-plane", 1) == {"verify": "acme-gpu-0"}


@pytest.mark.parametrize(
    ("organization", "nodes"),
    [
        ("zeta", {"zeta-cpu-0"}),
        ("control-plane", {"acme-cpu-0", "acme-gpu-0", "control-plane-cpu-0", "zeta-cpu-0"}),
    ],
)
def test_a_daemon_runs_on_its_organization_s_nodes_and_the_control_plane_s_on_all(
    fleet, organization, nodes
):
    world = fleet.worlds[organization]
    labels = {"app": "daemon"}
    daemon = pod("daemon", labels=labels)
    world.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "daemon"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": daemon["spec"]},
            },
        }
    )
    wait_for(lambda: set(world.where("app=daemon").values()) == nodes, "it is on these nodes")


def test_pods_without_gpus_run_on_nodes_without_until_these_are_full(fleet):
    # The fuller node would be preferred, were it not for its taint.
    fleet.create("acme", pod("gpu", requests={**GPU, "cpu": "6"}))
    assert fleet.where("acme", 1) == {"gpu": "acme-gpu-0"}
    fleet.create("acme", *(pod(f"cpu-{i}") for i in range(4)))
    where = fleet.where("acme", 5)
    assert {where[f"cpu-{i}"] for i in range(4)} == {"acme-cpu-0"}
    fleet.create("acme", pod("one-more"))
    assert fleet.where("acme", 6)["one-more"] == "acme-gpu-0"


def test_a_pod_with_gpus_does_not_tolerate_nodes_without(fleet):
    zero = {"cpu": "1", "nvidia.com/gpu": "0"}
    (first,) = pod("x", requests=GPU, container={"name": "first"})["spec"]["containers"]
    init = pod("init", initContainers=[first])
    fleet.create("acme", pod("gpu", requests=GPU), pod("zero", requests=zero), init)
    fleet.where("acme", 3)
    tolerates = {
        one["metadata"]["name"]: "is_cpu_compute"
        in {toleration.get("key") for toleration in one["spec"]["tolerations"]}
        for one in fleet.worlds["acme"].pods()
    }
    assert tolerates == {"gpu": False, "zero": True, "init": False}


def test_a_gang_starts_whole_on_its_organization_s_nodes(fleet):
    world = fleet.worlds["acme"]
    fleet.create("acme", *world.gang("train", 8, requests=GPU))
    assert set(fleet.where("acme", 8).values()) == {"acme-gpu-0"}
