"""Helm installs, changes and removes the chart, on the embedded and on the real API server.

The nodes are simulated, so that no container of it runs: what its scheduler does, tests/e2e shows.
"""

import pytest
import yaml

from quorate.cli.commands.manifests import render
from tests.chart.conftest import NAMESPACE, HelmError
from tests.conftest import skip_or_fail
from tools.chart import CHART
from tools.controlplane import ApiError, Cluster
from tools.controlplane.applying import wait_until_served
from tools.controlplane.versions import missing_binaries
from tools.embedded import Embedded
from tools.objects import pod
from tools.testing import wait_for

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/quorate"
MARK = "quorate.dev/configuration"
PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PriorityLevelConfiguration": "prioritylevelconfigurations",
}


@pytest.fixture(scope="module", params=["embedded", "real"])
def cluster(request):
    missing = missing_binaries() if request.param == "real" else missing_binaries(["kubectl"])
    if missing:
        skip_or_fail(f"not built: {', '.join(missing)}; make controlplane builds them")
    with {"real": Cluster, "embedded": Embedded}[request.param].start() as started:
        yield started


def path(one):
    """The path of an object in the API."""
    group = one["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    where = one["metadata"].get("namespace")
    space = f"/namespaces/{where}" if where else ""
    plural = PLURALS.get(one["kind"], f"{one['kind'].lower()}s")
    return f"{root}{space}/{plural}/{one['metadata']['name']}"


def is_there(cluster, one):
    try:
        cluster.api("GET", path(one))
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


def mark_of(cluster):
    metadata = cluster.api("GET", DEPLOYMENT)["spec"]["template"]["metadata"]
    return metadata["annotations"].get(MARK)


@pytest.fixture
def on(helm, cluster):
    """Run Helm on the cluster; what was installed is removed, the definitions too."""

    def run(*args, values=None):
        given = () if values is None else (str(CHART), *helm.given(values))
        space = () if given else ("--namespace", NAMESPACE)
        return helm.run(*args, *given, *space, kubeconfig=cluster.kubeconfig)

    yield run
    run("uninstall", "quorate", "--ignore-not-found", "--wait")
    for one in yaml.safe_load_all(render(parts=["crds"])):
        if is_there(cluster, one):
            wait_until_served(cluster.client, one)
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", input=render())


def test_it_is_installed_changed_rolled_back_and_removed(cluster, on, helm):
    values = {
        "networkPolicy": {"enabled": True},
        "podDisruptionBudget": {"enabled": True},
        "preemption": True,
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "serviceAccount": {"annotations": {"c": "d"}},
    }
    objects = helm.render(values=values)
    said = on("install", "quorate", "--create-namespace", values=values)
    assert f"in namespace {NAMESPACE}: 2 replicas" in said
    assert "placed as gangs: quorate, cw-coscheduler, coscheduler" in said
    assert "No image is published yet" in said
    assert [path(one) for one in objects if not is_there(cluster, one)] == []
    assert mark_of(cluster) is None

    on("upgrade", "quorate", values={**values, "config": {"packing": "leastAllocated"}})
    assert mark_of(cluster)
    where = f"/api/v1/namespaces/{NAMESPACE}/configmaps/quorate"
    stored = yaml.safe_load(cluster.api("GET", where)["data"]["config.yaml"])
    assert stored["packing"] == "leastAllocated"
    on("upgrade", "quorate", str(CHART), "--reset-then-reuse-values", "--set", "replicas=3")
    assert cluster.api("GET", DEPLOYMENT)["spec"]["replicas"] == 3
    assert mark_of(cluster), "what was set before stays set"
    on("rollback", "quorate", "1")
    # On the embedded cluster a field stays that is applied no longer (docs/users/embedded.md).
    assert (mark_of(cluster) is None) is not isinstance(cluster, Embedded)

    on("uninstall", "quorate", "--wait")
    left = {one["kind"] for one in objects if is_there(cluster, one)}
    assert left == {"CustomResourceDefinition"}, "users' PodGroups are not Helm's to delete"


def test_a_field_that_no_kind_has_is_refused(on):
    with pytest.raises(HelmError, match="nodeAfinity"):
        on("install", "quorate", "--create-namespace", values={"affinity": {"nodeAfinity": {}}})


def test_definitions_that_are_there_already_are_named_and_can_be_left_alone(cluster, on):
    cluster.kubectl("apply", "-f", "-", input=render(parts=["crds"]))
    with pytest.raises(HelmError, match=r'"podgroups\.scheduling\.\S+" .* exists and cannot be'):
        on("install", "quorate", "--create-namespace", values={})
    on("uninstall", "quorate", "--ignore-not-found")
    on("install", "quorate", "--create-namespace", values={"crds": {"install": False}})
    assert mark_of(cluster) is None


def test_what_the_command_installed_becomes_helms_and_nothing_changes(cluster, on):
    cluster.kubectl("apply", "-f", "-", input=render())
    before = cluster.api("GET", DEPLOYMENT)
    on("install", "quorate", "--take-ownership", values={})
    after = cluster.api("GET", DEPLOYMENT)
    assert after["spec"] == before["spec"], "so no pod restarts"
    assert after["metadata"]["annotations"]["meta.helm.sh/release-name"] == "quorate"


def test_on_quorate_up_it_is_installed_and_removed_and_pods_are_scheduled_all_the_time(helm):
    """The ServiceAccount was there already; and without it the whole cluster ended."""
    with Embedded.start(nodes=1, scheduler=True) as cluster:
        given = (str(CHART), *helm.given({}))
        helm.run("install", "quorate", *given, kubeconfig=cluster.kubeconfig)
        assert cluster.api("GET", DEPLOYMENT)["spec"]["replicas"] == 2
        where = ("--namespace", NAMESPACE)
        helm.run("uninstall", "quorate", *where, "--wait", kubeconfig=cluster.kubeconfig)
        pods = "/api/v1/namespaces/default/pods"
        cluster.api("POST", pods, pod("after", requests=None))
        wait_for(
            lambda: cluster.api("GET", f"{pods}/after")["status"]["phase"] == "Running", "it runs"
        )
        assert "error" not in cluster.log_file.read_text()
