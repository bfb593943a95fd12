"""kube-controller-manager, kube-scheduler and kwok work against the embedded API server.

They are client-go in earnest: protobuf bodies, watch lists, watches of metadata, leases, events.
With ``--cluster real`` the same tests run against a real API server.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from embedded.tests.clients.running import WAITS
from tools.controlplane import Access, ApiError, Cluster, flags
from tools.controlplane.process import Component, paused
from tools.controlplane.versions import binary, missing_binaries
from tools.embedded import Embedded
from tools.testing import skip_or_fail, wait_for

PROGRAMS = ("kube-controller-manager", "kube-scheduler", "kwok", "kubectl")
READY = {"type": "Ready", "status": "True"}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster(request, tmp_path_factory) -> Iterator[Access]:
    """An API server without any part of ours."""
    real = request.config.getoption("--cluster") == "real"
    missing = missing_binaries() if real else missing_binaries(PROGRAMS)
    if missing:
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    folder = tmp_path_factory.mktemp("client-go")
    if real:
        with Cluster.start(folder) as started:
            started.start_kube_scheduler()
            yield started
        return
    with Embedded.start(folder, extra=["--no-agents", "--no-controllers"]) as served:
        yield served
    assert "request failed" not in served.log(), served.log()


@pytest.fixture(scope="module", autouse=True)
def parts(cluster) -> Iterator[list[Component]]:
    """Kubernetes' own parts beside it."""
    if isinstance(cluster, Cluster):
        yield cluster.clients
        return
    folder = cluster.data_dir
    started = [Component(name, command, folder) for name, command in _commands(cluster).items()]
    try:
        yield started
        for part in started:
            part.check()
    finally:
        for part in started:
            part.stop(grace_s=5)
    for part in started:
        assert _complaints(part.log.read_text()) == [], part.name


def _complaints(log: str) -> list[str]:
    """Return the lines about answers that client-go did not understand."""
    words = ("Failed to watch", "unable to decode", "could not find the requested resource")
    lines = [line for line in log.splitlines() if any(word in line for word in words)]
    return [line for line in lines if "connection refused" not in line]


def _commands(cluster: Embedded) -> dict[str, list[str]]:
    """Their defaults, but for ports, which other tests may use, and for how fakes are played.

    They keep their leases for longer than a busy machine takes to restart the API server.
    """
    patience = ("--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s")
    access = f"--kubeconfig={cluster.kubeconfig}"
    manager = [access, *patience, "--secure-port=0", f"--root-ca-file={cluster.ca}"]
    return {
        "kube-controller-manager": [str(binary("kube-controller-manager")), *manager],
        "kube-scheduler": [str(binary("kube-scheduler")), access, *patience, "--secure-port=0"],
        "kwok": flags.kwok(cluster.kubeconfig),
    }


@pytest.fixture
def space(cluster) -> Iterator[Space]:
    made = Space(cluster, f"go{next(_numbers)}")
    yield made
    cluster.kubectl("delete", "namespace", made.name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="module")
def nodes(cluster) -> list[str]:
    return cluster.create_nodes(2)


class Space:
    """One namespace of one test."""

    def __init__(self, cluster: Access, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.kubectl("create", "namespace", name)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_for(lambda: self.get(account), "the controllers made the ServiceAccount")

    def kubectl(self, *args: str, input: str | None = None) -> str:
        return self.cluster.kubectl("--namespace", self.name, *args, input=input)

    def get(self, path: str) -> dict:
        """Return an object, an empty one when there is none."""
        try:
            return self.cluster.api("GET", path)
        except ApiError as error:
            if error.status != 404:
                raise
            return {}

    def status(self, plural: str, name: str, root: str = "apis/apps/v1") -> dict:
        return self.get(f"/{root}/namespaces/{self.name}/{plural}/{name}").get("status", {})

    def pods(self) -> list[dict]:
        return self.get(f"/api/v1/namespaces/{self.name}/pods")["items"]

    def reasons(self) -> set[str]:
        events = self.get(f"/api/v1/namespaces/{self.name}/events")["items"]
        return {event["reason"] for event in events}

    def deploy(self, name: str, replicas: int) -> None:
        self.kubectl("create", "deployment", name, "--image=x", f"--replicas={replicas}")
        self.wait(
            lambda: self.status("deployments", name).get("readyReplicas") == replicas,
            f"{replicas} pods of {name} are ready",
        )

    def wait(self, ready, what: str) -> None:
        wait_for(ready, what)


def is_ready(obj: dict) -> bool:
    conditions = obj.get("status", {}).get("conditions") or []
    return any(READY.items() <= condition.items() for condition in conditions)


def test_kwok_makes_a_node_ready_and_the_controllers_know_it(cluster, space):
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}
    body["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    body["spec"] = {"unschedulable": True}
    cluster.api("POST", "/api/v1/nodes", body)
    space.wait(lambda: is_ready(space.get("/api/v1/nodes/bare")), "the node is ready")
    events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=bare"
    space.wait(
        lambda: "RegisteredNode" in {event["reason"] for event in space.get(events)["items"]},
        "the node lifecycle controller registered the node",
    )
    cluster.api("DELETE", "/api/v1/nodes/bare")


def test_a_deployment_gets_pods_on_nodes_that_run_and_are_replaced(space, nodes):
    space.deploy("web", 4)
    assert {pod["spec"]["nodeName"] for pod in space.pods()} == set(nodes)
    assert all(is_ready(pod) for pod in space.pods())
    space.kubectl("set", "image", "deployment/web", "x=y")
    space.kubectl("rollout", "status", "deployment/web", WAITS)
    space.wait(
        lambda: [pod["spec"]["containers"][0]["image"] for pod in space.pods()] == ["y"] * 4,
        "only new pods are left",
    )
    space.wait(lambda: "Scheduled" in space.reasons(), "the scheduler wrote events")
    assert {"ScalingReplicaSet", "SuccessfulCreate"} <= space.reasons()


def test_a_job_completes(space, nodes):
    job = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: work, namespace: {space.name}}}
spec:
  completions: 3
  parallelism: 2
  template:
    metadata: {{annotations: {{quorate.dev/complete-after: 1s}}}}
    spec: {{restartPolicy: Never, containers: [{{name: c, image: x}}]}}
"""
    space.kubectl("create", "-f", "-", input=job)
    space.kubectl("wait", "--for=condition=Complete", "job/work", WAITS)
    assert space.status("jobs", "work", "apis/batch/v1")["succeeded"] == 3


def test_a_pod_that_fits_nowhere_waits_for_a_node_that_takes_it(cluster, space, nodes):
    limits = "--overrides=" + (
        '{"spec":{"containers":[{"name":"big","image":"x",'
        '"resources":{"limits":{"example.com/part":"1"}}}]}}'
    )
    space.kubectl("run", "big", "--image=x", limits)

    def condition() -> str:
        conditions = space.status("pods", "big", "api/v1").get("conditions", [])
        return next((c["reason"] for c in conditions if c["type"] == "PodScheduled"), "")

    space.wait(lambda: condition() == "Unschedulable", "the scheduler said that it fits nowhere")
    space.wait(lambda: "FailedScheduling" in space.reasons(), "the scheduler wrote an event")
    cluster.create_nodes(["special"], allocatable={"example.com/part": "1"})
    space.wait(
        lambda: space.status("pods", "big", "api/v1").get("phase") == "Running",
        "the new node runs the pod",
    )
    cluster.api("DELETE", "/api/v1/nodes/special")


def test_what_an_owner_leaves_behind_is_collected_as_its_deletion_says(space, nodes):
    space.deploy("web", 2)
    space.kubectl("delete", "deployment", "web", "--cascade=foreground", WAITS)
    assert space.pods() == []
    space.deploy("kept", 2)
    space.kubectl("delete", "deployment", "kept", "--cascade=orphan", WAITS)
    sets = space.get(f"/apis/apps/v1/namespaces/{space.name}/replicasets")["items"]
    assert [len(one["metadata"].get("ownerReferences", [])) for one in sets] == [0]
    assert len(space.pods()) == 2
    space.kubectl("delete", "replicaset", "--all")
    space.wait(lambda: not space.pods(), "the pods were collected in the background")


def test_a_namespace_goes_with_everything_in_it(space, nodes):
    space.deploy("web", 2)
    space.kubectl("create", "configmap", "settings", "--from-literal=a=b")
    space.kubectl("delete", "namespace", space.name, WAITS)
    assert space.get(f"/api/v1/namespaces/{space.name}") == {}
    assert space.pods() == []


def test_a_budget_is_counted_and_a_drain_keeps_it(space, nodes):
    space.deploy("web", 2)
    space.kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=2")

    def allowed() -> int | None:
        status = space.status("poddisruptionbudgets", "web", "apis/policy/v1")
        return status.get("disruptionsAllowed") if status.get("expectedPods") == 2 else None

    space.wait(lambda: allowed() == 0, "no disruption is allowed")
    name = space.pods()[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{space.name}/pods/{name}/eviction"
    with pytest.raises(ApiError, match="violate the pod's disruption budget"):
        space.cluster.api("POST", path, eviction)
    space.kubectl("patch", "pdb", "web", "--type=merge", '-p={"spec":{"minAvailable":1}}')
    space.wait(lambda: allowed() == 1, "one disruption is allowed")
    space.kubectl("drain", nodes[0], "--ignore-daemonsets", WAITS)
    space.wait(
        lambda: [pod["spec"].get("nodeName") for pod in space.pods()] == [nodes[1]] * 2,
        "all pods are on the other node",
    )
    space.kubectl("uncordon", nodes[0])


def test_the_parts_go_on_when_the_server_comes_back(cluster, parts, space, nodes):
    """They are paused while it is away.

    After a refused connection client-go waits, twice as long each time and up to a minute.
    """
    space.deploy("before", 1)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    held = {lease["metadata"]["name"] for lease in space.get(leases)["items"]}
    with paused(parts):
        cluster.restart_apiserver()
    space.deploy("after", 1)
    space.kubectl("delete", "deployment", "before", "--cascade=foreground", WAITS)
    assert {lease["metadata"]["name"] for lease in space.get(leases)["items"]} == held
