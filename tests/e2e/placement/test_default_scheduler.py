"""quorate owns default-scheduler: ordinary pods are spread, and hear, as under kube-scheduler.

Workloads of every kind, with no other scheduler: ``test_only_scheduler``.
"""

import pytest

from tests.e2e.harness.workloads import REQUIRED, ZONE, matching, workload, zones
from tools.harness.world import World
from tools.testing import wait_for


@pytest.fixture
def alone(cluster, beside):
    """A world whose pods name no scheduler: quorate owns ``default-scheduler``."""
    beside({"profiles": [{"schedulerName": "default-scheduler"}]})
    made = World(cluster, None, f"{beside.scheduler_name}-default", scheduler="default-scheduler")
    for zone in "abc":
        made.nodes(2, prefix=f"{made.namespace}-{zone}-", labels={ZONE: zone})
    yield made
    made.remove()


def test_pods_of_a_service_spread_over_zones_without_saying_so(alone):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]},
    }
    alone.apply(service)
    alone.apply(workload("Deployment", "shop", replicas=6))
    alone.wait_bound(6, "app=shop")
    assert zones(alone, "app=shop") == [2, 2, 2]
    assert len(set(alone.where("app=shop").values())) == 6


def test_a_pod_that_fits_nowhere_says_what_kube_scheduler_would(alone):
    alone.apply(workload("Deployment", "big", replicas=1, pod={"nodeSelector": {"no": "such"}}))
    said = alone.wait_condition("nodes are available", "app=big")
    own = sum(1 for node in alone.cluster.api("GET", "/api/v1/nodes")["items"])
    assert f"0/{own} nodes are available: " in said
    assert "node(s) didn't match Pod's node affinity/selector" in said


def test_pods_wait_for_the_pod_they_want_to_be_near(alone):
    near = {"topologyKey": ZONE, **matching("hub")}
    alone.apply(
        workload(
            "Deployment",
            "spoke",
            replicas=3,
            pod={"affinity": {"podAffinity": {REQUIRED: [near]}}},
        )
    )
    alone.wait_condition("node(s) didn't match pod affinity rules", "app=spoke")
    alone.apply(workload("Deployment", "hub", replicas=1))
    alone.wait_bound(3, "app=spoke")
    hub_zone = zones_of(alone, "app=hub")
    wait_for(lambda: zones_of(alone, "app=spoke") == hub_zone, "all are in the hub's zone")


def zones_of(world: World, selector: str) -> set[str]:
    return {node.split("-")[-2] for node in world.where(selector).values()}
