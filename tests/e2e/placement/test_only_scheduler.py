"""quorate is a cluster's only scheduler, as docs/operators/default-scheduler.md installs it.

A cluster of its own: no other scheduler has ever been there. The tests share it, each with
workloads of its own names.
"""

import base64
import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.conftest import skip_or_fail
from tests.e2e.harness.devices import DRIVER, gpus
from tests.e2e.harness.provisioner import (
    NO_PROVISIONER,
    SELECTED,
    VOLUMES,
    Provisioner,
    claims_of,
    volume,
)
from tests.e2e.harness.workloads import (
    HOST,
    PREFERRED,
    REQUIRED,
    ZONE,
    hard_spread,
    job,
    matching,
    runs,
    workload,
    zones,
)
from tests.paths import ROOT
from tools.certificates import write_pair
from tools.controlplane import Cluster
from tools.controlplane.versions import missing_binaries
from tools.embedded import Embedded
from tools.harness.scheduler import Quorate
from tools.harness.world import World
from tools.objects import GANG_LABEL, pod, pod_group
from tools.testing import manifests, wait_for

ACCOUNT = "system:serviceaccount:quorate-system:quorate"
EXAMPLE = ROOT / "examples" / "default-scheduler"
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
TOLERATES = [{"key": "dedicated", "operator": "Exists"}]


class Installed(Quorate):
    """quorate with the documented configuration, and a client certificate as documented."""

    def __init__(self, cluster, folder: Path, pair: tuple[Path, Path]) -> None:
        super().__init__(cluster, folder)
        documented = yaml.safe_load((EXAMPLE / "config.yaml").read_text())
        changed = {"healthAddress": f"127.0.0.1:{self.port}"}  # tests share one machine
        self.config_file.write_text(yaml.safe_dump({**documented, **changed}))
        if isinstance(cluster, Embedded):  # it knows no client certificates
            return
        made = json.loads(self.kubeconfig.read_text())
        made["users"][0]["user"] = {
            f"client-{what}-data": base64.b64encode(file.read_bytes()).decode()
            for what, file in zip(("certificate", "key"), pair, strict=True)
        }
        self.kubeconfig = folder / "kubeconfig-documented"
        self.kubeconfig.write_text(json.dumps(made))


@pytest.fixture(scope="module")
def alone(request, tmp_path_factory):
    """A cluster that has had no scheduler but quorate; its nodes are two in each of three zones."""
    kind = request.config.getoption("--cluster") or "real"
    if kind == "real" and (missing := missing_binaries()):
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    folder = tmp_path_factory.mktemp("only")
    pair = write_pair(folder, ACCOUNT)  # it signs itself, so it is its own authority
    start = partial(Cluster.start, client_ca=pair[0]) if kind == "real" else Embedded.start
    with start() as cluster:
        cluster.apply(manifests("--preemption"))
        for zone in "abc":
            cluster.create_nodes(2, prefix=f"{zone}-", labels={ZONE: zone})
        cluster.create_nodes(1, prefix="gpu-", labels={"pool": "gpu"}, taints=[TAINT])
        running = Installed(cluster, folder, pair).start()
        world = World(cluster, running, "work", scheduler="default-scheduler")
        world.apply(cron_job("tick"))
        yield world
        assert running.stop() == 0
        assert not running.complaints()


def cron_job(name: str) -> dict:
    made = job(name, 2)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": made["spec"]}},
    }


@pytest.mark.core
def test_it_places_the_pods_of_its_own_deployment_on_two_nodes(alone):
    def hosts() -> set[str]:
        pods = alone.pods(namespace="quorate-system")
        return {one["spec"]["nodeName"] for one in pods if one["status"]["phase"] == "Running"}

    wait_for(lambda: len(hosts()) == 2, "both replicas run, apart")


def test_a_deployment_rolls_out_and_scales_evenly_over_zones(alone):
    spread = [hard_spread("web", matchLabelKeys=["pod-template-hash"])]
    made = workload("Deployment", "web", replicas=6, pod={"topologySpreadConstraints": spread})
    alone.apply(made)
    wait_for(lambda: runs(alone, 6, "app=web"), "six run")
    assert zones(alone, "app=web") == [2, 2, 2]
    first = set(alone.where("app=web"))
    made["spec"]["template"]["metadata"]["annotations"] = {"release": "2"}
    alone.apply(made)
    wait_for(
        lambda: runs(alone, 6, "app=web") and not first & set(alone.where("app=web")),
        "the new six run alone",
    )
    assert zones(alone, "app=web") == [2, 2, 2]
    alone.scale("web", 9)
    wait_for(lambda: runs(alone, 9, "app=web"), "nine run")
    assert zones(alone, "app=web") == [3, 3, 3]


def test_a_daemon_set_has_a_pod_on_each_node_and_on_one_that_joins(alone):
    alone.apply(
        workload("DaemonSet", "agent", pod={"tolerations": TOLERATES}),
        workload("DaemonSet", "shy"),
    )
    nodes = alone.cluster.api("GET", "/api/v1/nodes")["items"]
    taints = {one["metadata"]["name"]: one["spec"].get("taints", []) for one in nodes}
    tolerated = {name for name, those in taints.items() if all(one == TAINT for one in those)}
    untainted = {name for name, those in taints.items() if not those}
    for app, wanted in (("agent", tolerated), ("shy", untainted)):
        wait_for(lambda a=app, w=wanted: runs(alone, len(w), f"app={a}"), f"{app} runs")
        assert set(alone.where(f"app={app}").values()) == wanted
        assert len(alone.where(f"app={app}")) == len(wanted), "one on each"
    [joined] = alone.cluster.create_nodes(1, prefix="late-", labels={"pool": "late"})
    for app in ("agent", "shy"):
        wait_for(lambda a=app: joined in alone.where(f"app={a}").values(), f"{app} on it")


def test_a_replica_set_is_spread_without_saying_so(alone):
    alone.apply(workload("ReplicaSet", "shop", replicas=6, pod=IN_ZONES))
    wait_for(lambda: runs(alone, 6, "app=shop"), "six run")
    assert zones(alone, "app=shop") == [2, 2, 2]
    assert len(set(alone.where("app=shop").values())) == 6


IN_ZONES = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]}}}}  # fmt: skip


def test_selectors_preferences_and_affinity_say_where_pods_go(alone):
    near = {"podAffinity": {REQUIRED: [{"topologyKey": HOST, **matching("cache")}]}}
    prefers = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["c"]}]}
    likes = {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": prefers}]}}
    alone.apply(
        workload("Deployment", "cache", replicas=1, pod={"nodeSelector": {ZONE: "b"}}),
        workload("Deployment", "reader", replicas=3, pod={"affinity": near}),
        workload("Deployment", "liking", replicas=2, pod={"affinity": likes}),
        workload(
            "Deployment",
            "tolerant",
            replicas=2,
            pod={"nodeSelector": {"pool": "gpu"}, "tolerations": TOLERATES},
        ),
    )
    for app, count in {"cache": 1, "reader": 3, "liking": 2, "tolerant": 2}.items():
        wait_for(lambda a=app, n=count: runs(alone, n, f"app={a}"), f"{app} runs")
    [cache] = alone.where("app=cache").values()
    assert cache.startswith("b-")
    assert set(alone.where("app=reader").values()) == {cache}
    assert zones(alone, "app=liking") == [2]
    assert all(node.startswith("c-") for node in alone.where("app=liking").values())
    assert set(alone.where("app=tolerant").values()) == {"gpu-0"}


@pytest.mark.core
def test_gangs_start_whole_beside_them_under_either_name(alone):
    for name, scheduler in (("train", None), ("packed", "quorate")):
        member = {"labels": {GANG_LABEL: name}, "cpu": "1"}
        named = {"schedulerName": scheduler} if scheduler else {}
        alone.apply(pod_group(name, 4), job(name, 4, pod={**member, **named}))
        wait_for(lambda n=name: runs(alone, 4, f"app={n}"), f"{name} runs")
    huge = {"labels": {GANG_LABEL: "huge"}, "cpu": "20"}
    alone.apply(pod_group("huge", 9), job("huge", 9, pod=huge))
    said = alone.wait_condition("9 members must start together", "app=huge")
    assert said.startswith("0/")
    alone.stays_unbound("app=huge")
    assert alone.why("huge")["message"] == said
    alone.create_pod(pod("nowhere", scheduler="default-scheduler", nodeSelector={"no": "such"}))
    said = alone.wait_condition("node(s) didn't match Pod's node affinity/selector")
    assert alone.why("nowhere")["reason"] == "NoNodeMatches"
    assert alone.why("nowhere")["message"] in said, "the leader has tried to preempt, too"


@pytest.mark.core
def test_a_stateful_set_has_a_volume_for_each_pod_where_the_pod_is(alone):
    storage_class(alone, "made-late", "csi.example")
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, **matching("db")}]}}
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    made = workload(
        "StatefulSet",
        "db",
        replicas=3,
        serviceName="db",
        volumeClaimTemplates=[claim_template("made-late")],
        pod={"affinity": apart, "container": mounts},
    )
    with Provisioner(alone.cluster, "made-late").working():
        alone.apply(made)
        wait_for(lambda: runs(alone, 3, "app=db"), "three run")
        before = alone.where("app=db")
        assert len(set(before.values())) == 3
        for name, node in before.items():
            found = claims_of(alone)[f"data-{name}"]
            assert found["metadata"]["annotations"][SELECTED] == node
            assert found["status"]["phase"] == "Bound"
        alone.delete_pod("db-1")
        wait_for(lambda: alone.where("app=db") == before, "it is back beside its volume")


def test_a_job_takes_the_volumes_that_exist_one_for_each_pod(alone):
    storage_class(alone, "local", NO_PROVISIONER)
    nodes = ["a-0", "b-1", "c-0"]
    for node in nodes:
        made = volume(f"pv-{node}", "local", node, local={"path": "/mnt"})
        alone.cluster.api("POST", VOLUMES, made)
    source = {"volumeClaimTemplate": {"spec": claim_template("local")["spec"]}}
    alone.apply(job("sort", 3, pod={"volumes": [{"name": "scratch", "ephemeral": source}]}))
    wait_for(lambda: runs(alone, 3, "app=sort"), "three run")
    assert sorted(alone.where("app=sort").values()) == nodes
    alone.apply(job("more", 1, pod={"volumes": [{"name": "scratch", "ephemeral": source}]}))
    said = alone.wait_condition("persistent volumes to bind", "app=more")
    assert "node(s) didn't find available persistent volumes to bind" in said


def test_a_job_gets_devices_from_a_template_of_claims(alone):
    api = "/apis/resource.k8s.io/v1"
    body = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpus"}}
    cel = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    alone.cluster.api("POST", f"{api}/deviceclasses", {**body, "spec": {"selectors": [cel]}})
    for node in ("a-1", "c-1"):
        slices = {**body, "metadata": {"name": node}, "spec": gpus(node, 1)}
        alone.cluster.api("POST", f"{api}/resourceslices", slices)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
    wanted = {"spec": {"devices": {"requests": [request]}}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    alone.apply(
        {**body, "kind": "ResourceClaimTemplate", "metadata": {"name": "one-gpu"}, "spec": wanted},
        job("infer", 2, pod={"resourceClaims": claims}),
    )
    wait_for(lambda: runs(alone, 2, "app=infer"), "two run")
    assert sorted(alone.where("app=infer").values()) == ["a-1", "c-1"]


def test_a_pod_of_high_priority_takes_the_room_that_no_budget_protects(alone):
    cluster = alone.cluster
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.api("POST", classes, {"metadata": {"name": "urgent"}, "value": 1000})
    small = {"cpu": "2", "memory": "4Gi", "pods": "20"}
    taint = {"key": "small", "effect": "NoSchedule"}
    cluster.create_nodes(
        2, prefix="small-", allocatable=small, labels={"pool": "small"}, taints=[taint]
    )
    on_small = {
        "nodeSelector": {"pool": "small"},
        "tolerations": [{"key": "small", "operator": "Exists"}],
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
    }
    alone.apply(
        {**budget, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "kept"}}}}
    )
    room = {**on_small, "cpu": "1", "terminationGracePeriodSeconds": 0}
    alone.apply(
        workload("Deployment", "kept", replicas=2, pod={**room, "nodeSelector": {HOST: "small-0"}})
    )
    wait_for(lambda: runs(alone, 2, "app=kept"), "the protected two run")
    alone.apply(job("filler", 2, pod=room))
    wait_for(lambda: runs(alone, 2, "app=filler"), "the others run")
    wait_for(lambda: observed(alone, "kept"), "the budget is counted")
    alone.apply(job("urgent", 1, pod={**room, "cpu": "2", "priorityClassName": "urgent"}))
    wait_for(lambda: runs(alone, 1, "app=urgent"), "it runs")
    assert set(alone.where("app=urgent").values()) == {"small-1"}
    assert runs(alone, 2, "app=kept")
    assert len(alone.events("Preempted")) == 2


def observed(world: World, budget: str) -> bool:
    path = world.path("poddisruptionbudgets", budget, "policy/v1")
    status = world.cluster.api("GET", path).get("status", {})
    return status.get("expectedPods") == 2 and status.get("currentHealthy") == 2


def test_a_cron_job_has_its_turns(alone):
    wait_for(lambda: alone.running("app=tick") >= 2, "its first turn runs", 120)
    assert alone.events("Scheduled")


def storage_class(world: World, name: str, provisioner: str) -> None:
    body = {"metadata": {"name": name}, "provisioner": provisioner}
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    world.cluster.api("POST", "/apis/storage.k8s.io/v1/storageclasses", {**body, **late})


def claim_template(name: str) -> dict:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": name}
    spec["resources"] = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "data"}, "spec": spec}
