"""Goal: ``quorate manifests --component`` prints what rules need, or what is wrong with a call.

Method: parse the YAML; what a real API server makes of it is for tests/e2e/cks.
"""

import pytest
import yaml

from quorate.cks.rules import Rules, parse
from quorate.cli.commands.manifests import manifests
from tools.testing import call


def objects(text):
    return list(yaml.safe_load_all(text))


def one(kind, name, text):
    named = {(item["kind"], item["metadata"]["name"]): item for item in objects(text)}
    return named[kind, name]


@pytest.fixture
def rules(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text(
        "apiVersion: quorate.dev/v1alpha1\nkind: WorkloadRules\norganizations: [acme, zeta]\n"
    )
    return file


def test_a_component_comes_alone_and_each_policy_has_its_binding(rules, capsys):
    assert manifests(component_name="cks-policies", rules=rules) == 0
    said = capsys.readouterr()
    assert not said.err
    names = {(item["kind"], item["metadata"]["name"]) for item in objects(said.out)}
    of = {
        kind: {name for is_kind, name in names if is_kind == kind}
        for kind in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
    }
    assert of["ValidatingAdmissionPolicy"] == {
        *("quorate-cks-namespaces", "quorate-cks-labels", "quorate-cks-pods")
    }
    assert of["MutatingAdmissionPolicy"] == {"quorate-cks-namespaces", "quorate-cks-pods"}
    for kind, found in of.items():
        assert {(f"{kind}Binding", name) for name in found} <= names
    assert {kind for kind, _ in names} == {"ClusterRole", *of, *(f"{kind}Binding" for kind in of)}


def test_the_component_of_nodes_has_the_rules_and_runs_where_no_node_is_reserved_for_it(
    rules, capsys
):
    of = {"component_name": "cks-nodes", "namespace": "cks", "image": "r/q:1", "replicas": 3}
    assert manifests(rules=rules, **of) == 0
    said = capsys.readouterr()
    assert not said.err
    file = one("ConfigMap", "quorate-cks-nodes", said.out)["data"]["rules.yaml"]
    assert parse(file, "") == Rules(organizations=("acme", "zeta"))
    spec = one("Deployment", "quorate-cks-nodes", said.out)["spec"]
    assert spec["replicas"] == 3
    pod = spec["template"]["spec"]
    assert {"key": "node.coreweave.cloud/reserved", "operator": "Exists"} in pod["tolerations"]
    [container] = pod["containers"]
    assert container["image"] == "r/q:1"
    assert container["args"][-2:] == ["--namespace", "cks"]
    assert {one["metadata"].get("namespace", "cks") for one in objects(said.out)} == {"cks"}


def test_before_mutating_policies_people_hear_what_tainted_nodes_ask_of_pods(rules, capsys):
    of = {"component_name": "cks-nodes", "image": "r/q:1", "rules": rules}
    assert manifests(**of, kube_version="1.35") == 0
    assert "the control plane's own pods among them" in capsys.readouterr().err
    assert manifests(**of, kube_version="1.36") == 0
    assert not capsys.readouterr().err


def test_other_rules_make_new_pods(rules, capsys):
    seen = set()
    for organizations in ("[acme]", "[acme, zeta]"):
        rules.write_text(
            "apiVersion: quorate.dev/v1alpha1\nkind: WorkloadRules\n"
            f"organizations: {organizations}\n"
        )
        assert manifests(component_name="cks-nodes", rules=rules) == 0
        made = one("Deployment", "quorate-cks-nodes", capsys.readouterr().out)
        seen.add(made["spec"]["template"]["metadata"]["annotations"]["rules.quorate.dev/checksum"])
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("version", "mutates"), [("1.36", True), ("v1.37.1", True), ("1.35", False), ("v1.34.8", False)]
)
def test_an_older_api_server_gets_no_mutating_policy_and_its_people_hear_what_to_do(
    version, mutates, rules, capsys
):
    call_of = ("manifests", "--component=cks-policies", f"--rules={rules}")
    assert call(*call_of, f"--kube-version={version}") == 0
    said = capsys.readouterr()
    assert ("MutatingAdmissionPolicy" in said.out) == mutates
    pods = one("ValidatingAdmissionPolicy", "quorate-cks-pods", said.out)
    assert ("matchConditions" in pods["spec"]) == mutates, "unset is not all that can be wrong then"
    assert ("docs/operators/coreweave.md" in said.err) == (not mutates)
    assert f"Kubernetes {version} has no mutating policies" in said.err or mutates


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--component=cks"], "The components are cks-policies, cks-nodes."),
        (["--component=cks-nodes", "--rules=RULES", "--replicas=0"], "--replicas 0 is out of"),
        (["--component=cks-policies"], "needs --rules: a file of kind WorkloadRules"),
        (["--component=cks-policies", "--rules=none.yaml"], "none.yaml: the configuration file"),
        (["--component=cks-policies", "--only=crds"], "leave it or --component out"),
        (["--rules=none.yaml"], "--rules and --kube-version are of a --component"),
        (["--component=cks-policies", "--rules=RULES", "--kube-version=new"], "Write it as 1.36."),
        (
            ["--component=cks-policies", "--rules=RULES", "--kube-version=1.29"],
            "from Kubernetes 1.30",
        ),
    ],
)
def test_a_call_that_is_wrong_says_what_to_write(options, said, rules, capsys):
    assert call("manifests", *(option.replace("RULES", str(rules)) for option in options)) == 2
    told = capsys.readouterr()
    assert not told.out
    assert said in told.err
