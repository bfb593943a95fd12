"""quorate is the only scheduler: ordinary workloads run, spread as kube-scheduler would."""

from collections import Counter

import pytest

from tests.e2e.world import World, wait_for

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def alone(cluster, beside):
    """A world whose pods name no scheduler: quorate owns ``default-scheduler``."""
    beside({"profiles": [{"schedulerName": "default-scheduler"}]})
    made = World(cluster, None, f"{beside.scheduler_name}-default", scheduler="default-scheduler")
    for zone in "abc":
        made.nodes(2, prefix=f"{made.namespace}-{zone}-", labels={ZONE: zone})
    yield made
    made.remove()


def workload(kind: str, name: str, **spec) -> dict:
    """A Deployment, DaemonSet or StatefulSet of pause pods that name no scheduler."""
    pod = spec.pop("pod", {})
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **pod},
            },
            **spec,
        },
    }


def matching(name: str) -> dict:
    return {"labelSelector": {"matchLabels": {"app": name}}}


def zones(world: World, selector: str) -> list[int]:
    """How many pods each zone has, the fewest first."""
    prefix = f"{world.namespace}-"
    where = world.where(selector).values()
    return sorted(Counter(node.removeprefix(prefix)[0] for node in where).values())


def test_workloads_of_every_kind_run(alone):
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    apart = {"topologyKey": "kubernetes.io/hostname", **matching("db")}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    alone.apply(
        workload(
            "Deployment",
            "web",
            replicas=9,
            pod={"topologySpreadConstraints": [{**constraint, **matching("web")}]},
        ),
        workload("DaemonSet", "agent"),
        workload(
            "StatefulSet",
            "db",
            replicas=3,
            serviceName="db",
            podManagementPolicy="Parallel",
            pod={"affinity": {"podAntiAffinity": {required: [apart]}}},
        ),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "batch"},
            "spec": {
                "parallelism": 3,
                "completions": 3,
                "template": {
                    "metadata": {"labels": {"app": "batch"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "c", "image": "pause"}],
                    },
                },
            },
        },
    )
    for app, count in {"web": 9, "agent": 6, "db": 3, "batch": 3}.items():
        alone.wait_bound(count, f"app={app}", timeout_s=40)
    assert zones(alone, "app=web") == [3, 3, 3]
    agents = [node for node in alone.where("app=agent").values()]
    assert len(set(agents)) == 6
    assert len(set(alone.where("app=db").values())) == 3


def test_pods_of_a_service_spread_over_zones_without_saying_so(alone):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]},
    }
    alone.apply(service)
    alone.apply(workload("Deployment", "shop", replicas=6))
    alone.wait_bound(6, "app=shop", timeout_s=30)
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
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    alone.apply(
        workload(
            "Deployment",
            "spoke",
            replicas=3,
            pod={"affinity": {"podAffinity": {required: [near]}}},
        )
    )
    alone.wait_condition("node(s) didn't match pod affinity rules", "app=spoke")
    alone.apply(workload("Deployment", "hub", replicas=1))
    alone.wait_bound(3, "app=spoke", timeout_s=20)
    hub_zone = zones_of(alone, "app=hub")
    wait_for(lambda: zones_of(alone, "app=spoke") == hub_zone, "all are in the hub's zone")


def zones_of(world: World, selector: str) -> set[str]:
    prefix = f"{world.namespace}-"
    return {node.removeprefix(prefix)[0] for node in world.where(selector).values()}
