"""Least privilege: in a life with everything in it, quorate asks for what it was granted, no more.

It runs as the ServiceAccount of the shipped manifests, at debug level, through a proxy that records
each request. tests/unit/test_rbac_manifest.py shows that each of these rights is needed.
"""

import copy
import json
from functools import partial

import pytest

from tests.e2e.harness import provisioner
from tests.e2e.harness.devices import gpus
from tests.e2e.harness.gang_shapes import SHAPES
from tests.e2e.harness.recording_proxy import Recording
from tests.rights import ASKED, CHECKED_BESIDES, right_of, widened
from tools.harness.scheduler import Quorate, install_beside, uninstall
from tools.harness.world import World
from tools.objects import GANG_LABEL, NATIVE, SIGS, VOLCANO, X_K8S, gang_pods, pod, pod_group
from tools.testing import wait_for

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("volcano")]

NAMESPACE = "least-privilege"
SIGS_CRD = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.sigs.k8s.io"
)
PREEMPTING = "least-privilege-preempting"
QUEUES = f"/apis/{VOLCANO}/queues"


@pytest.fixture
def recorded(cluster, tmp_path):
    """A scheduler of its own behind a proxy, which loses the answer to the first bind of each."""
    lost: set[str] = set()

    def loses(method: str, path: str) -> bool:
        first = path.endswith("/binding") and path not in lost
        lost.add(path)
        return first

    def refuses(method: str, path: str) -> bool:
        return path.endswith("/pods/undone-1/binding")

    install_beside(cluster, NAMESPACE)
    with Recording(cluster.server, str(cluster.ca), loses=loses, refuses=refuses) as proxy:
        election = {"namespace": NAMESPACE, "leaseDurationSeconds": 15, "renewDeadlineSeconds": 10}
        config = {
            "schedulerNames": [NAMESPACE, "volcano"],  # whose queues are made only then
            "profiles": [{"schedulerName": PREEMPTING}],
            "leaderElection": {**election, "retryPeriodSeconds": 1},
            "logLevel": "debug",
        }
        running = Quorate(cluster, tmp_path, config, NAMESPACE)
        running.go_through(proxy.url)
        for queue in ("default", "root"):  # so that it is this scheduler that makes them
            cluster.api("DELETE", f"{QUEUES}/{queue}")
        running.start()
        yield proxy, running
        code = running.stop()
    uninstall(cluster, NAMESPACE)
    assert code == 0
    assert not running.complaints()


@pytest.fixture
def life(cluster, recorded):
    made = World(cluster, recorded[1], "life", scheduler=NAMESPACE)
    yield made
    made.remove()


def test_all_that_is_granted_is_asked_for_and_nothing_else(life, recorded):
    proxy, running = recorded
    life.nodes(4)
    wait_for(lambda: life.cluster.api("GET", QUEUES)["items"], "the queues are made")
    # It comes first: its other counts are told half a minute after these, at the soonest.
    life.create_pod(pod("large", scheduler=NAMESPACE, requests={"cpu": "100000"}))
    life.wait_condition("Insufficient cpu")
    a_gang_of_each_kind_starts(life)
    a_gang_of_an_old_definition_has_its_status(life)
    each_owner_is_asked_how_many_it_makes(life)
    events_of_a_job_say_what_refuses_its_pods(life)
    an_attempt_is_undone(life)
    claims_are_bound_late(life)
    a_pod_preempts_another(life)
    a_device_is_given(life)
    its_event_goes_on(life, proxy)

    assert not proxy.refused
    rights = {right_of(method, target) for method, target in proxy.requests}
    asked = {widened(right, NAMESPACE) for right in rights if right is not None}
    assert None not in rights, "only resources are asked for"
    assert asked - ASKED == set(), "asked for without being granted"
    assert ASKED - asked == CHECKED_BESIDES, "granted and never asked for"
    requests = len(proxy.requests)
    print(f"{len(ASKED)} rights granted, {len(asked)} asked for in {requests} requests, 0 refused")
    the_token_is_nowhere(life, running)


def its_event_goes_on(life, proxy):
    """With one node more the numbers are others: the same Event says so, as a series."""
    life.nodes(1, prefix="one-more-")

    def is_patched():
        return any(verb == "PATCH" and "/events/" in path for verb, path in list(proxy.requests))

    wait_for(is_patched, "the Event goes on")


def a_pod_preempts_another(life):
    life.nodes(1, prefix="preempted-", labels={"only": "one"})
    [node] = [
        one
        for one in life.cluster.api("GET", "/api/v1/nodes")["items"]
        if one["metadata"]["name"].startswith("preempted-")
    ]
    chosen = {"scheduler": PREEMPTING, "nodeSelector": {"only": "one"}}
    all_of_it = {"requests": {"cpu": node["status"]["allocatable"]["cpu"]}}
    life.create_pod(pod("victim", **chosen, **all_of_it, terminationGracePeriodSeconds=0))
    wait_for(lambda: "victim" in life.where(), "it is bound")
    critical = {"priorityClassName": "system-cluster-critical"}
    life.create_pod(pod("preemptor", **chosen, **all_of_it, **critical))
    wait_for(lambda: "preemptor" in life.where(), "it got the room")


def a_device_is_given(life):
    """The claim's status gets the device, and its pod is bound."""
    api = "/apis/resource.k8s.io/v1"
    node = life.cluster.api("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    request = {"name": "gpu", "exactly": {"deviceClassName": "life"}}
    made = [
        ("deviceclasses", "DeviceClass", {"name": "life"}, {}),
        ("resourceslices", "ResourceSlice", {"name": "life"}, gpus(node, 1)),
    ]
    for plural, kind, meta, spec in made:
        body = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
        life.cluster.api("POST", f"{api}/{plural}", body)
    try:
        life.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "life"},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        uses = [{"name": "gpu", "resourceClaimName": "life"}]
        life.create_pod(pod("with-device", scheduler=NAMESPACE, resourceClaims=uses))
        wait_for(lambda: "with-device" in life.where(), "it has its device")
    finally:
        for plural, *_ in made:
            life.cluster.api("DELETE", f"{api}/{plural}/life")


def a_gang_of_each_kind_starts(life):
    """Binds (whose first answers are lost, so that pods are read back), Events, status patches."""
    for name, shape in SHAPES.items():
        life.apply(shape.group(f"pg-{name}", 2))
        life.create_pods(shape.pods(f"pg-{name}", 2, scheduler=NAMESPACE))
        wait_for(lambda of=f"gang=pg-{name}": life.running(of) == 2, f"the {name} gang runs")
    life.wait_status("pg-x-k8s", phase="Running")
    life.wait_status("pg-sigs", SIGS, phase="Running")
    life.wait_status("pg-volcano", VOLCANO, phase="Running")
    wait_for(
        lambda: life.group("pg-native", NATIVE).get("status", {}).get("conditions"),
        "the native gang's status",
    )
    life.wait_event("Scheduled", "Successfully assigned")


def a_gang_of_an_old_definition_has_its_status(life):
    """scheduler-plugins' CRD before v0.24 has no status subresource."""
    new = life.cluster.api("GET", SIGS_CRD)
    old = copy.deepcopy(new)
    del old["spec"]["versions"][0]["subresources"]
    life.cluster.api("PUT", SIGS_CRD, old)
    try:
        life.apply(pod_group("old", 2, SIGS))
        life.create_pods(SHAPES["sigs"].pods("old", 1, scheduler=NAMESPACE))
        life.wait_status("old", SIGS, phase="Pending")
    finally:
        now = life.cluster.api("GET", SIGS_CRD)
        life.cluster.api("PUT", SIGS_CRD, {**new, "metadata": now["metadata"]})


def each_owner_is_asked_how_many_it_makes(life):
    for kind, api, count in (
        ("Deployment", "apps/v1", "replicas"),
        ("ReplicaSet", "apps/v1", "replicas"),
        ("StatefulSet", "apps/v1", "replicas"),
        ("Job", "batch/v1", "parallelism"),
    ):
        name = kind.lower()
        labels = {"app": name, GANG_LABEL: name}
        template = {
            "metadata": {"labels": labels},
            "spec": pod(name, scheduler=NAMESPACE)["spec"],
        }
        spec = {count: 2, "template": template}
        if kind == "Job":
            template["spec"]["restartPolicy"] = "Never"
        else:
            spec["selector"] = {"matchLabels": {"app": name}}
        if kind == "StatefulSet":
            spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        workload = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
        life.apply(pod_group(name, 4), workload)
        life.wait_condition(f"{kind} {name} makes 2", f"app={name}")
    life.apply(pod_group("mpi", 2))
    # A uid that is somebody's, or the pod would be collected as garbage.
    owner = {"name": "mpi", "uid": life.group("mpi")["metadata"]["uid"], "controller": True}
    made_by = [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", **owner}]
    metadata = {"ownerReferences": made_by}
    life.create_pods(gang_pods("mpi", 1, scheduler=NAMESPACE, metadata=metadata))
    life.wait_condition("1 of 2 members exist", "gang=mpi")


def events_of_a_job_say_what_refuses_its_pods(life):
    """Its gang waits for 4 and it makes 2; then it is to make 4, and a quota allows no pod more."""
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "1"}}}
    life.apply({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    path = life.path("resourcequotas", "none")
    wait_for(lambda: life.cluster.api("GET", path).get("status"), "the quota counts")
    life.patch(life.path("jobs", "job", "batch/v1"), {"spec": {"parallelism": 4}})
    life.wait_condition("makes 4, and the API server refuses the others", "app=job")
    life.cluster.api("DELETE", path)


def an_attempt_is_undone(life):
    """One member can never be bound: the other is evicted when the attempt's time is over."""
    life.apply(pod_group("undone", 2, scheduleTimeoutSeconds=2))
    life.create_pods(gang_pods("undone", 2, scheduler=NAMESPACE))
    life.wait_event("GangRolledBack", "1 of 2 members were bound")
    wait_for(lambda: len(life.pods("gang=undone")) == 1, "the bound member is gone")


def claims_are_bound_late(life):
    """A claim is told its node; of a claim with a volume at hand, the volume is told its claim."""
    with provisioner.storage_classes(life.cluster, "life") as (made_late, local):
        life.cluster.api("POST", provisioner.VOLUMES, provisioner.volume("life-pv", local, None))
        # Where no controller of volumes runs nobody says that it may be had.
        available = {"status": {"phase": "Available"}}
        status = f"{provisioner.VOLUMES}/life-pv/status"
        life.cluster.api("PATCH", status, available, content_type=provisioner.MERGE)
        pods = [pod(name, scheduler=NAMESPACE) for name in ("told", "given")]
        claims = provisioner.with_claims(pods, made_late)
        claims[1]["spec"]["storageClassName"] = local
        life.apply(*claims)
        life.create_pods(pods)
        wait_for(lambda: provisioner.selected(life) == ["data-told"], "a claim is told its node")
        path = f"{provisioner.VOLUMES}/life-pv"
        wait_for(lambda: life.cluster.api("GET", path)["spec"].get("claimRef"), "a volume is kept")


READS, WRITES = ("get", "list", "watch"), ("create", "update", "patch", "delete")


@pytest.mark.parametrize(
    ("role", "may"), [("view", READS), ("edit", READS + WRITES), ("admin", READS + WRITES)]
)
def test_who_has_a_role_of_kubernetes_in_a_namespace_may_so_much_with_its_gangs(cluster, role, may):
    """``edit`` could create no PodGroup, and ``view`` could list none."""
    namespace, rbac = f"has-{role}", "rbac.authorization.k8s.io"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": namespace},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": f"user-{role}"}],
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
        }
    )
    try:
        for one in (X_K8S, SIGS, VOLCANO):
            asks = partial(allowed, cluster, f"user-{role}", one.partition("/")[0], "podgroups")
            wait_for(lambda a=asks: a(namespace=namespace) == {*may}, f"{role}: {one}")
            assert asks(namespace="default") == set()
    finally:
        cluster.api("DELETE", f"/api/v1/namespaces/{namespace}")


GANGS = {(one.partition("/")[0], "podgroups") for one in (X_K8S, SIGS, VOLCANO, NATIVE)}
SHOWN = {("", "pods"), ("", "nodes"), ("", "events"), ("events.k8s.io", "events"), *GANGS}
OWNERS = {*(("apps", f"{of}s") for of in ("deployment", "replicaset", "statefulset"))}
OWNERS |= {("batch", "jobs")}


def test_who_is_a_viewer_in_the_cluster_may_read_what_the_commands_show_and_nothing_else(cluster):
    """No role gave what ``quorate why``, ``gangs`` and ``nodes`` read: ``view`` has no nodes."""
    rbac, user = "rbac.authorization.k8s.io", "user-viewer"
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "has-viewer"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "quorate-viewer"},
    }
    cluster.apply(binding)
    may = partial(allowed, cluster, user)
    try:
        wait_for(lambda: may("", "nodes"), "it is bound")
        found = {one: verbs for one in served(cluster) if (verbs := may(*one))}
        assert found == {one: {*READS} for one in SHOWN} | {one: {*READS[:2]} for one in OWNERS}
        lease = partial(may, "coordination.k8s.io", "leases", namespace="quorate-system")
        assert lease(name="quorate") == {"get"}
        assert lease(name="another") == set()
    finally:
        cluster.api("DELETE", f"/apis/{rbac}/v1/clusterrolebindings/has-viewer")


def served(cluster):
    """Return group and plural of all that the API server serves, with subresources: pods/log."""
    groups = cluster.api("GET", "/apis")["groups"]
    versions = [one["groupVersion"] for group in groups for one in group["versions"]]
    paths = {"/api/v1": "", **{f"/apis/{one}": one.partition("/")[0] for one in versions}}
    return {
        (group, one["name"])
        for path, group in paths.items()
        for one in cluster.api("GET", path)["resources"]
    }


def allowed(cluster, user, group, resource, *, namespace="", name=""):
    """Return what a user may do with a resource, such as pods/log; no namespace means all."""
    found, where = set(), {"namespace": namespace, "name": name}
    kind, _, part = resource.partition("/")
    for verb in READS + WRITES:
        wish = {"verb": verb, "group": group, "resource": kind, "subresource": part, **where}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        review["spec"] = {"user": user, "resourceAttributes": wish}
        answer = cluster.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        found |= {verb} if answer["status"]["allowed"] else set()
    return found


def the_token_is_nowhere(life, running):
    """Not in the log at debug level, not on the pages, not in what ``why`` says."""
    token = json.loads(running.kubeconfig.read_text())["users"][0]["user"]["token"]
    said = life.quorate_cli("why", "undone", "-n", life.namespace)
    pages = [running.page(path) for path in ("/metrics", "/readyz", "/nothing")]
    assert "undone" in said.stdout
    assert "binding" in running.log()
    for text in (running.log(), said.stdout, said.stderr, *pages):
        for secret in (token, token.rpartition(".")[2], life.cluster.admin_token, "Bearer"):
            assert secret not in text
