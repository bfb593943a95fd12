"""Goal: a file of rules becomes the Rules it says, and no value gets out of the text it is put in.

Method: small files; what the API server makes of the policies is for tests/e2e/cks.
"""

import pytest
import yaml

from quorate.cks.components import TABLE, values
from quorate.cks.rules import FIELDS, Rules, parse
from quorate.shell.configuration.yaml_fields import ConfigError

HEAD = "apiVersion: quorate.dev/v1alpha1\nkind: WorkloadRules\n"
LEAST = HEAD + "organizations: [acme]\n"


def problem_of(document):
    with pytest.raises(ConfigError) as caught:
        parse(document, "rules.yaml")
    return str(caught.value)


def test_without_other_names_they_are_coreweave_s():
    rules = parse(LEAST, "f")
    assert rules == Rules(organizations=("acme",))
    assert rules.organization_label == "ns.coreweave.cloud/org"
    assert rules.domains == ("coreweave.cloud", "coreweave.com")


def test_every_field_is_read():
    rules = parse(
        HEAD
        + "organizations: [acme, Zeta_2]\n"
        + "groupPrefix: 'oidc:'\n"
        + "domains: [example.com]\n"
        + "organizationLabel: example.com/owner\n"
        + "reservedLabel: nodes.example.com/for\n"
        + "desiredLabel: nodes.example.com/soon-for\n"
        + "stateLabel: nodes.example.com/state\n"
        + "classLabel: nodes.example.com/class\n"
        + "cpuTaint: cpu-only\n"
        + "gpuTaint: gpus\n"
        + "gpuResources: [amd.com/gpu]\n",
        "f",
    )
    assert rules == Rules(
        organizations=("acme", "Zeta_2"),
        group_prefix="oidc:",
        domains=("example.com",),
        organization_label="example.com/owner",
        reserved_label="nodes.example.com/for",
        desired_label="nodes.example.com/soon-for",
        state_label="nodes.example.com/state",
        class_label="nodes.example.com/class",
        cpu_taint="cpu-only",
        gpu_taint="gpus",
        gpu_resources=("amd.com/gpu",),
    )
    assert len(FIELDS) == len(Rules.__struct_fields__) + len(("apiVersion", "kind", "mode"))


def test_rules_that_another_keeps_are_not_installed_and_the_mode_is_told_by_its_line():
    assert parse(LEAST + "mode: enforce\n", "f") == Rules(organizations=("acme",))
    assert problem_of(LEAST + "mode: observe\n") == (
        "rules.yaml:4: mode: observe: another keeps these rules in this cluster, so nothing is "
        "installed for them. quorate explains by the labels of nodes as it is. Where it is to keep "
        "the rules, write enforce."
    )
    assert "enforce" in problem_of(LEAST + "mode: watch\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("organizations: []", "organizations: the list is empty"),
        ("organizations: [control-plane]", '"control-plane" is what the control plane is called'),
        ("organizations: [triage]", '"triage" is a state in the life-cycle of nodes'),
        ("organizations: [a b]", '"a b" is no value of a label'),
        ("organizations: [acme, acme]", '"acme" is in the list twice'),
        ("organization: [acme]", "Did you mean organizations?"),
        ("groupPrefix: 'a\"b'", "groupPrefix"),
        ("domains: ['*.coreweave.com']", '"*.coreweave.com" is no domain'),
        ("organizationLabel: a/b/c", '"a/b/c" is no key of a label'),
        ("reservedLabel: 'x\\y'", "is no key of a label"),
        ("cpuTaint: ''", "is no key of a label"),
        ("cpuTaint: is_gpu", "two of reservedLabel, cpuTaint, gpuTaint are the same"),
        ("stateLabel: node.coreweave.cloud/class", "stateLabel: two of reservedLabel, desired"),
        ("gpuResources: nvidia.com/gpu", "gpuResources"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_a_remedy(line, said):
    document = HEAD + ("" if line.startswith("organizations") else "organizations: [acme]\n") + line
    told = problem_of(document)
    assert told.startswith("rules.yaml:")
    assert said in told


def test_the_organizations_are_needed():
    assert "organizations" in problem_of(HEAD)


@pytest.mark.parametrize("sign", [*"\"'\\`\n{}$,"])
@pytest.mark.parametrize("field", sorted(set(FIELDS) - {"apiVersion", "kind"}))
def test_no_value_ends_a_text_of_cel_or_a_line_of_yaml(field, sign):
    value = f"a{sign}b"
    lists = {"organizations", "domains", "gpuResources"}
    fields = {"organizations": ["acme"], field: [value] if field in lists else value}
    told = problem_of(HEAD + yaml.safe_dump(fields))
    assert told.startswith("rules.yaml:")
    assert field in told


def test_the_default_values_end_none_either():
    rules = parse(LEAST, "f")
    found = values(rules, (1, 35))
    for name, value in ((name, found[name]) for name in found.keys() - TABLE.keys()):
        inside = value.strip("[]").replace('","', "").strip('"')
        assert not set(inside) & set("\"'\\\n{}$"), name
