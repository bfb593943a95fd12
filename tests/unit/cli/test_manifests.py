"""Goal: what ``quorate manifests`` prints can be applied in its order, and grants no more.

Method: parse the YAML and read it as the API server would; the real one was asked by hand.
"""

import re
from importlib import resources

import pytest
import yaml

from quorate.cks import components
from quorate.cli.commands.manifests import (
    NETWORK_PART,
    PARTS,
    ManifestsError,
    manifests,
    render,
)
from quorate.shell.configuration import config
from tools.testing import call


def objects(text):
    return [document for document in yaml.safe_load_all(text) if document is not None]


def one(kind, name, text=None):
    found = [
        item
        for item in objects(text or render())
        if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    assert len(found) == 1, f"{kind} {name}"
    return found[0]


def test_everything_comes_in_an_order_that_can_be_applied():
    kinds = [item["kind"] for item in objects(render())]
    assert kinds == [
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "PriorityLevelConfiguration",
        "FlowSchema",
        "FlowSchema",
        "ConfigMap",
        "ResourceQuota",
        "Deployment",
    ]


def test_a_network_policy_comes_when_asked_and_names_the_port_that_is_there():
    assert "NetworkPolicy" not in render()
    plain = one("NetworkPolicy", "quorate", render(network_policy=True))
    deployment = one("Deployment", "quorate")
    template = deployment["spec"]["template"]
    assert plain["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    chosen = plain["spec"]["podSelector"]["matchLabels"]
    assert chosen.items() <= template["metadata"]["labels"].items()
    assert [rule["ports"] for rule in plain["spec"]["ingress"]] == [[{"port": 10271}]]
    assert plain["spec"]["ingress"][0]["from"], "not from everywhere"


def test_the_network_policy_can_be_had_alone(capsys):
    assert manifests(only=["networkpolicy"]) == 0
    assert [item["kind"] for item in objects(capsys.readouterr().out)] == ["NetworkPolicy"]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_is_that_part_of_the_whole(part):
    assert render(parts=[part]).strip() in render()


def test_parts_keep_their_order_and_come_once():
    assert render(parts=["rbac", "crds", "rbac"]) == render(parts=["crds", "rbac"])


def test_the_namespace_is_changed_everywhere():
    text = render(namespace="batch")
    assert "quorate-system" not in text
    subjects = [s for s in re.findall(r"namespaces?: (.*)", text) if s != "batch"]
    assert set(subjects) <= {'["*"]', '["batch"]'}
    for item in objects(text):
        assert item["metadata"].get("namespace", "batch") == "batch"


def test_image_and_replicas_are_set():
    deployment = one("Deployment", "quorate", render(image="example.com/q:1@sha256:ab", replicas=3))
    assert deployment["spec"]["replicas"] == 3
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.com/q:1@sha256:ab"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"namespace": "Big"}, "--namespace 'Big'"),
        ({"namespace": "a\nb"}, "is no name for a namespace"),
        ({"image": "x: y"}, "is no image reference"),
        ({"image": ""}, "Write it as name:tag"),
        ({"replicas": 0}, "out of range"),
        ({"parts": ["crd"]}, "crds, rbac, userroles, flowschema, deployment"),
    ],
)
def test_a_bad_option_says_what_to_write(options, words):
    with pytest.raises(ManifestsError, match=re.escape(words)):
        render(**options)


def test_the_command_prints_and_returns_an_exit_code(capsys):
    assert manifests(only=["crds"]) == 0
    assert capsys.readouterr().out == render(parts=["crds"])
    assert manifests(replicas=-1) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: --replicas -1 is out of range.")


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ({}, True),
        ({"only": ["rbac", "deployment"]}, True),
        ({"only": ["rbac"]}, False),
        ({"image": "registry.example/quorate:0.1.0"}, False),
    ],
)
def test_who_names_no_image_is_told_that_the_pods_cannot_start(options, is_told, capsys):
    """It printed an image that cannot be pulled, and said nothing."""
    assert manifests(**options) == 0
    said = capsys.readouterr()
    assert said.err.count("\n") == is_told
    assert ("no image is published yet" in said.err) == is_told
    assert ("--image REGISTRY/" in said.err) == is_told
    assert objects(said.out)


def test_rights_are_left_out_by_an_option_that_can_be_repeated(capsys):
    rbac = ("manifests", "--only", "rbac")
    assert call(*rbac, "--without", "devices", "--without", "volcano-queues") == 0
    assert capsys.readouterr().out == render(parts=["rbac"], rights=())
    assert call(*rbac, "--preemption", "--without", "devices") == 0
    rights = ("preemption", "volcano-queues")
    assert capsys.readouterr().out == render(parts=["rbac"], rights=rights)
    assert call(*rbac) == 0
    assert capsys.readouterr().out == render(parts=["rbac"], rights=("devices", "volcano-queues"))


def test_a_right_that_cannot_be_left_out_is_told_in_one_line_with_those_that_can(capsys):
    assert call("manifests", "--without", "pods") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "'pods' is not one of 'devices', 'volcano-queues'" in said.err


def test_the_deployed_configuration_is_the_default_one_of_a_pod(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    document = one("ConfigMap", "quorate")["data"]["config.yaml"]
    assert config.parse(document, "config.yaml") == config.Config.default()
    keys = yaml.safe_load(document)
    # Whose pods are placed as kube-scheduler would is for an operator to say: nobody's by default.
    # Few clusters have labels of a life-cycle that are called otherwise.
    assert set(keys) == set(config._TOP) - {"profiles", "nodeLifeCycle"}
    assert set(keys["leaderElection"]) == set(config._ELECTION)


def test_the_probes_and_the_configuration_name_the_same_port():
    (container,) = one("Deployment", "quorate")["spec"]["template"]["spec"]["containers"]
    assert container["ports"][0]["containerPort"] == config.Config.default().health_port


def test_the_pods_meet_the_restricted_pod_security_standard():
    spec = one("Deployment", "quorate")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_level_has_a_seat_for_every_bind():
    level = one("PriorityLevelConfiguration", "quorate")["spec"]["limited"]
    shares = level["nominalConcurrencyShares"]
    seats = (400 + 200) * shares // (245 + shares)  # kube-apiserver's defaults
    assert seats > config.Config.default().bind_concurrency
    assert level["lendablePercent"] == 0


@pytest.mark.parametrize(
    ("group", "minimum"), [("scheduling.x-k8s.io", 1), ("scheduling.sigs.k8s.io", None)]
)
def test_the_definitions_follow_the_contract(group, minimum):
    crd = one("CustomResourceDefinition", f"podgroups.{group}")
    assert crd["metadata"]["annotations"]["api-approved.kubernetes.io"].endswith("/pull/50")
    names = {
        "kind": "PodGroup",
        "listKind": "PodGroupList",
        "plural": "podgroups",
        "singular": "podgroup",
    }
    if minimum is not None:
        names["shortNames"] = ["pg", "pgs"]  # of the older API they would hide the current one
    assert crd["spec"]["names"] == names
    (version,) = crd["spec"]["versions"]
    assert version["name"] == "v1alpha1"
    assert version["subresources"] == {"status": {}}
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["Phase", "MinMember", "Running", "Succeeded", "Failed", "Age"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]
    assert set(fields["spec"]["properties"]) == {
        "minMember",
        "minResources",
        "scheduleTimeoutSeconds",
    }
    assert fields["spec"]["properties"]["minMember"].get("minimum") == minimum
    assert ("scheduled" in fields["status"]["properties"]) == (minimum is None)


def test_every_template_is_a_part():
    folder = resources.files("quorate") / "deploy"
    parts = {*PARTS, NETWORK_PART, *components.COMPONENTS, components.MUTATIONS}
    assert {file.name for file in folder.iterdir()} == {f"{part}.yaml" for part in parts}
