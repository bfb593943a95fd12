"""kubectl get, describe, explain, events, api-resources and whatever else only looks."""

import json
import re
import subprocess

import pytest

from embedded.tests.clients.running import (
    WAITS,
    a_namespace,
    as_yaml,
    config_map,
    deployment,
    job,
    pod,
    pod_group,
    train,
)
from tools.testing import wait_for


@pytest.fixture(scope="module")
def running(cluster, kubectl_in):
    """A Deployment, a Job, a PodGroup and a custom resource, with their pods running."""
    gang = job("gang", labels={"scheduling.x-k8s.io/pod-group": "gang"})
    with a_namespace(cluster) as namespace:
        kubectl = kubectl_in(namespace)
        kubectl("apply", "-f", "-", manifest=as_yaml(deployment(), pod_group(), gang, train()))
        kubectl("rollout", "status", "deployment/web", WAITS)
        kubectl("wait", "--for=jsonpath={.status.ready}=2", "job/gang", WAITS)
        yield kubectl


def table(text: str) -> list[list[str]]:
    """Split kubectl's columns: two spaces or more are between them."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


COLUMNS = {
    "pods": "NAME READY STATUS RESTARTS AGE",
    "deployments": "NAME READY UP-TO-DATE AVAILABLE AGE",
    "replicasets": "NAME DESIRED CURRENT READY AGE",
    "jobs": "NAME STATUS COMPLETIONS DURATION AGE",
    "events": "LAST SEEN TYPE REASON OBJECT MESSAGE",
    "nodes": "NAME STATUS ROLES AGE VERSION",
    "namespaces": "NAME STATUS AGE",
    "trains": "NAME CARS",
}


def test_get_shows_the_usual_columns(running):
    for what, columns in COLUMNS.items():
        head, *rows = table(running("get", what))
        assert (what, " ".join(head)) == (what, columns)
        assert rows, what
        assert all(len(row) == len(head) for row in rows), what


def test_get_shows_what_the_objects_say(running):
    assert table(running("get", "deployment", "web"))[1][:4] == ["web", "2/2", "2", "2"]
    assert table(running("get", "job", "gang"))[1][:3] == ["gang", "Running", "0/2"]
    pods = table(running("get", "pods", "-l", "app=web"))[1:]
    assert [row[1:4] for row in pods] == [["1/1", "Running", "0"]] * 2
    wide = table(running("get", "pods", "-o", "wide", "-l", "app=web"))
    assert wide[0][5:7] == ["IP", "NODE"]
    assert all(row[6].startswith("node-") for row in wide[1:])
    assert table(running("get", "train", "-o", "wide"))[1] == ["express", "4", "red"]
    groups = running("get", "podgroups.scheduling.x-k8s.io", "gang", "-o", "json")
    assert json.loads(groups)["status"]["phase"] == "Running"


def test_get_in_other_forms(running):
    assert running("get", "deploy,cm", "-o", "name", "-l", "part=front") == "deployment.apps/web"
    image = "jsonpath={.items[*].spec.template.spec.containers[*].image}"
    assert running("get", "deployments", "-o", image) == "nginx:1"
    columns = "custom-columns=NAME:.metadata.name,CARS:.spec.cars"
    assert table(running("get", "trains", "-o", columns)) == [["NAME", "CARS"], ["express", "4"]]
    assert "apiVersion: apps/v1\nkind: Deployment\n" in running(
        "get", "deploy", "web", "-o", "yaml"
    )
    assert running("get", "pod", "nosuch", "--ignore-not-found") == ""
    assert "app=web" in running("get", "pods", "-l", "app=web", "--show-labels")


def test_get_selects_and_sorts(kubectl):
    for name, level in (("b", "1"), ("c", "2"), ("a", "3")):
        kubectl("create", "-f", "-", manifest=as_yaml(pod(name, labels={"level": level})))
    kubectl("wait", "--for=condition=Ready", "pod", "--all", WAITS)

    def names(*args: str) -> list[str]:
        return kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}", *args).split()

    assert names("--sort-by=.metadata.labels.level") == ["b", "c", "a"]
    assert names("-l", "level in (1,3)") == ["a", "b"]
    assert names("-l", "level,level notin (1)") == ["a", "c"]
    assert names("--field-selector", "metadata.name!=a,status.phase=Running") == ["b", "c"]
    assert names("--chunk-size=1") == ["a", "b", "c"]
    said = kubectl.refused("get", "pods", "--field-selector", "spec.nosuch=1")
    assert "field label not supported: spec.nosuch" in said
    everywhere = kubectl("get", "pods", "-A", "-o", "jsonpath={.items[*].metadata.namespace}")
    assert kubectl.namespace in everywhere.split()


def test_get_watch_shows_each_change_as_a_line(kubectl):
    command = kubectl.command("get", "configmaps", "-w", "-o", "name", "-l", "watched=yes")
    with subprocess.Popen(
        command, env=kubectl.environment, stdout=subprocess.PIPE, text=True
    ) as watching:
        labelled = config_map("new", a="1")
        labelled["metadata"]["labels"] = {"watched": "yes"}
        kubectl("create", "-f", "-", manifest=as_yaml(labelled))
        assert watching.stdout.readline() == "configmap/new\n"
        kubectl("patch", "cm", "new", "--type=merge", "-p", '{"data":{"a":"2"}}')
        assert watching.stdout.readline() == "configmap/new\n"
        watching.terminate()


def test_describe_tells_what_is_known(running):
    web = running("describe", "deployment", "web")
    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in web
    assert "Scaled up replica set web-" in web
    pods = running("describe", "pods", "-l", "app=web")
    assert re.search(r"Controlled By:\s+ReplicaSet/web-", pods)
    assert re.search(r"Ready\s+True", pods)
    node = running("describe", "node", "node-0")
    assert "Allocated resources:" in node
    assert re.search(r"cpu:\s+32", node)
    group = running("describe", "podgroups.scheduling.x-k8s.io", "gang")
    assert re.search(r"Min Member:\s+2", group)
    assert "2 Active (2 Ready) / 0 Succeeded / 0 Failed" in running("describe", "job", "gang")


def test_events_are_sorted_and_told_by_object(running):
    pod = running("get", "pods", "-l", "app=web", "-o", "name").split()[0]
    wait_for(lambda: "Successfully assigned" in running("describe", pod), "its event is there")
    when = "jsonpath={.items[*].metadata.creationTimestamp}"
    times = running("get", "events", "--sort-by=.metadata.creationTimestamp", "-o", when).split()
    assert times == sorted(times)
    said = running("events", "--for", "deployment/web")
    assert "ScalingReplicaSet" in said
    assert "SuccessfulCreate" not in said


def test_explain_knows_fields_of_built_in_and_custom_kinds(kubectl):
    shown = kubectl("explain", "deployment.spec.strategy.rollingUpdate")
    assert re.search(r"maxSurge\s+<IntOrString>", shown)
    assert "FIELD: cars <integer>" in kubectl("explain", "train.spec.cars")
    assert "How many." in kubectl("explain", "train.spec.cars")
    assert 'field "nosuch" does not exist' in kubectl.refused("explain", "pods.nosuch")


def test_what_the_api_offers(kubectl):
    resources = table(kubectl("api-resources"))
    assert ["pods", "po", "v1", "true", "Pod"] in resources
    assert ["trains", "tr", "rail.example.com/v1", "true", "Train"] in resources
    versions = kubectl("api-versions").splitlines()
    assert {"v1", "apps/v1", "batch/v1", "scheduling.x-k8s.io/v1alpha1"} <= set(versions)
    assert "Server Version: v1.36" in kubectl("version")
    assert "Kubernetes control plane" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert json.loads(kubectl("get", "--raw", "/version"))["minor"] == "36"
    assert json.loads(kubectl("get", "--raw", "/api/v1/nodes"))["kind"] == "NodeList"


def test_what_is_not_there_is_said_in_one_line(kubectl):
    said = kubectl.refused("get", "pod", "nosuch")
    assert said == 'Error from server (NotFound): pods "nosuch" not found'
    said = kubectl.refused("get", "nosuch")
    assert said == 'error: the server doesn\'t have a resource type "nosuch"'
