"""Goal: the chart says what ``quorate manifests`` says, and each value changes what it names.

Method: Helm renders; objects are compared as the API server would read them.
"""

import copy
import re

import pytest
import yaml

from quorate.cli.commands.manifests import Withheld, render
from quorate.shell.configuration import config
from tests.chart.conftest import HelmError
from tests.paths import ROOT
from tools.chart import CHART
from tools.testing import manifests as manifests_of

KEEP = "helm.sh/resource-policy"


def by_name(objects):
    found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert len(found) == len(objects), "an object is there twice"
    return found


def printed(**options):
    """What the command prints."""
    return by_name([one for one in yaml.safe_load_all(render(**options)) if one])


def without_keep(objects):
    """What Helm makes, less the one annotation that is for Helm."""
    objects = copy.deepcopy(objects)
    for name, one in objects.items():
        if name[0] == "CustomResourceDefinition":
            assert one["metadata"]["annotations"].pop(KEEP) == "keep", "or uninstalling ends jobs"
    return objects


def pod_of(objects):
    return by_name(objects)["Deployment", "quorate"]["spec"]["template"]


def config_of(objects):
    return by_name(objects)["ConfigMap", "quorate"]["data"]["config.yaml"]


def test_with_its_defaults_it_renders_what_the_command_prints_but_for_the_namespace(helm):
    expected = printed()
    del expected["Namespace", "quorate-system"]
    rendered = without_keep(by_name(helm.render()))
    assert rendered == expected
    assert config_of(rendered.values()) == config_of(expected.values()), "comments and all"


def test_the_namespace_is_there_when_asked_for(helm):
    objects = helm.render(values={"namespace": {"create": True}})
    assert without_keep(by_name(objects)) == printed()


def test_options_of_the_command_are_values(helm):
    values = {
        "namespace": {"create": True},
        "image": {"repository": "example.com/q", "tag": "1", "digest": f"sha256:{'a' * 64}"},
        "replicas": 3,
        "preemption": True,
        "without": ["volcano-queues"],
        "networkPolicy": {"enabled": True},
    }
    expected = printed(
        namespace="batch",
        image=f"example.com/q:1@sha256:{'a' * 64}",
        replicas=3,
        rights=("preemption", "devices"),
        network_policy=True,
    )
    rendered = without_keep(by_name(helm.render("--namespace", "batch", values=values)))
    assert rendered == expected


@pytest.mark.parametrize("without", [["devices"], ["devices", "volcano-queues"], None])
def test_rights_are_left_out_as_by_the_option_and_values_of_before_leave_out_none(helm, without):
    """``helm upgrade --reuse-values`` has only the values that the older chart knew."""
    role = "ClusterRole", "quorate"
    expected = printed(rights=set(Withheld) - set(without or ()))[role]
    assert by_name(helm.render(values={"without": without}))[role] == expected


def test_an_image_by_digest_alone_has_no_tag(helm):
    image = {"repository": "q", "digest": f"sha256:{'b' * 64}"}
    (container,) = pod_of(helm.render(values={"image": image}))["spec"]["containers"]
    assert container["image"] == f"q@sha256:{'b' * 64}"


SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
    }
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodeSelector", {"pool": "system"}),
        ("tolerations", [{"key": "CriticalAddonsOnly", "operator": "Exists"}]),
        ("affinity", AFFINITY),
        ("topologySpreadConstraints", SPREAD),
        ("imagePullSecrets", [{"name": "mine"}]),
        ("priorityClassName", "our-critical"),
        ("podSecurityContext", {"runAsNonRoot": True, "runAsUser": 1000}),
    ],
)
def test_a_value_of_the_pod_is_that_field_and_nothing_else_changes(helm, field, value):
    before, after = helm.render(), helm.render(values={field: value})
    of_pod = {"podSecurityContext": "securityContext"}.get(field, field)
    changed = pod_of(after)["spec"]
    found = changed.pop(of_pod)
    expected = {**VALUES[field], **value} if field == "podSecurityContext" else value
    assert found == expected
    spec = pod_of(before)["spec"]
    spec.pop(of_pod, None)
    assert changed == spec


VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def test_values_of_the_container(helm):
    resources = {"limits": {"memory": "8Gi"}, "requests": {"cpu": "2"}}
    values = {
        "resources": resources,
        "securityContext": {"runAsUser": 7},
        "image": {"pullPolicy": "Always"},
    }
    (container,) = pod_of(helm.render(values=values))["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "8Gi", "ephemeral-storage": "256Mi"}
    assert container["securityContext"] == {**VALUES["securityContext"], "runAsUser": 7}
    assert container["imagePullPolicy"] == "Always"


def test_labels_and_annotations_are_added(helm):
    values = {
        "podLabels": {"team": "infra"},
        "podAnnotations": {"a": "b"},
        "serviceAccount": {"annotations": {"c": "d"}},
    }
    objects = helm.render(values=values)
    metadata = pod_of(objects)["metadata"]
    assert metadata["labels"] == {"app.kubernetes.io/name": "quorate", "team": "infra"}
    assert metadata["annotations"] == {**VALUES["podAnnotations"], "a": "b"}
    account = by_name(objects)["ServiceAccount", "quorate"]
    assert account["metadata"]["annotations"] == {"c": "d"}


def test_annotations_can_be_dropped(helm):
    nothing = dict.fromkeys(VALUES["podAnnotations"])
    assert pod_of(helm.render(values={"podAnnotations": nothing}))["metadata"]["annotations"] == {}


def test_a_changed_configuration_is_read_by_quorate_and_restarts_the_pods(helm):
    changes = {
        "schedulerNames": ["quorate", "volcano"],
        "packing": "leastAllocated",
        "recorder": {"maxBytes": 1 << 20},
        "profiles": [{"schedulerName": "default-scheduler"}],
    }
    objects = helm.render("--namespace", "batch", values={"config": changes})
    said = config.parse(config_of(objects), "config.yaml")
    assert said.policy.scheduler_names == ("quorate", "volcano", "default-scheduler")
    assert said.recorder == config.RecorderConfig(bytes_max=1 << 20)
    assert said.leader_election == config.LeaderElection(namespace="batch")

    mark = "quorate.dev/configuration"
    assert mark not in pod_of(helm.render())["metadata"]["annotations"]
    other = helm.render(values={"config": {**changes, "logLevel": "debug"}})
    assert (
        pod_of(objects)["metadata"]["annotations"][mark]
        != pod_of(other)["metadata"]["annotations"][mark]
    )


def test_what_is_switched_off_is_not_there(helm):
    values = {"crds": {"install": False}, "resourceQuota": {"enabled": False}}
    kinds = {kind for kind, _ in by_name(helm.render(values=values))}
    assert not kinds & {"CustomResourceDefinition", "ResourceQuota"}
    kept = by_name(helm.render(values={"crds": {"keep": False}}))
    for name, one in printed(parts=["crds"]).items():
        assert kept[name] == one


@pytest.mark.parametrize(
    ("component", "version"), [("policies", "1.35"), ("policies", "1.36"), ("nodes", "1.36")]
)
def test_a_component_is_what_the_command_prints(helm, tmp_path, component, version):
    rules = {
        "organizations": ["acme", "zeta"],
        "groupPrefix": "oidc:",
        "reservedLabel": "nodes.example.com/for",
        "stateLabel": "nodes.example.com/state",
        "gpuResources": ["nvidia.com/gpu", "amd.com/gpu"],
    }
    file = tmp_path / "rules.yaml"
    head = {"apiVersion": "quorate.dev/v1alpha1", "kind": "WorkloadRules"}
    file.write_text(yaml.safe_dump(head | rules))
    options = (f"--component=cks-{component}", f"--kube-version={version}")
    text = manifests_of(*options, f"--rules={file}")
    expected = by_name([one for one in yaml.safe_load_all(text) if one])
    assert not by_name(helm.render()).keys() & expected.keys()
    values = {"cks": {component: {"enabled": True}, "rules": rules}}
    rendered = by_name(helm.render("--kube-version", f"{version}.0", values=values))
    found = {name: one for name, one in rendered.items() if name in expected}
    mark = "rules.quorate.dev/checksum"  # each makes its own of what it has
    for objects in (found, expected):
        for one in objects.values():
            if one["kind"] == "Deployment":
                assert one["spec"]["template"]["metadata"]["annotations"].pop(mark)
    assert found == expected
    assert "MutatingAdmissionPolicy" in text or (component, version) != ("policies", "1.36")


def test_values_of_pods_are_of_who_keeps_nodes_too(helm):
    more = {"key": "a", "operator": "Exists"}
    values = {
        "cks": {"nodes": {"enabled": True}, "rules": {"organizations": ["acme"]}},
        "imagePullSecrets": [{"name": "mine"}],
        "image": {"pullPolicy": "Always"},
        "nodeSelector": {"pool": "system"},
        "tolerations": [more],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "mine",
    }
    objects = by_name(helm.render(values=values))
    pod = objects["Deployment", "quorate-cks-nodes"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["imagePullPolicy"] == "Always"
    assert pod["tolerations"][-1] == more
    assert len(pod["tolerations"]) == 3
    names = ("imagePullSecrets", "nodeSelector", "affinity", "priorityClassName")
    assert {name: pod[name] for name in names} == {name: values[name] for name in names}
    quota = objects["ResourceQuota", "quorate-cks-nodes-critical-pods"]["spec"]
    assert quota["scopeSelector"]["matchExpressions"][0]["values"] == ["mine"]


def test_values_that_an_older_chart_has_left_are_enough(helm):
    for values in ({"cks": None}, {"cks": {"nodes": None, "policies": None}}):
        assert by_name(helm.render(values=values)).keys() == by_name(helm.render()).keys()


def test_where_another_keeps_the_rules_neither_component_is_there(helm):
    on = {"enabled": True}
    values = {"cks": {"policies": on, "nodes": on, "rules": {"mode": "observe"}}}
    assert by_name(helm.render(values=values)).keys() == by_name(helm.render()).keys()


def test_other_rules_make_new_pods_of_who_keeps_nodes(helm):
    seen = set()
    for organizations in (["acme"], ["acme", "zeta"]):
        values = {"cks": {"nodes": {"enabled": True}, "rules": {"organizations": organizations}}}
        made = by_name(helm.render(values=values))["Deployment", "quorate-cks-nodes"]
        seen.add(made["spec"]["template"]["metadata"]["annotations"]["rules.quorate.dev/checksum"])
    assert len(seen) == 2


def test_a_disruption_budget_selects_the_pods(helm):
    values = {"podDisruptionBudget": {"enabled": True, "maxUnavailable": "50%"}}
    objects = helm.render(values=values)
    spec = by_name(objects)["PodDisruptionBudget", "quorate"]["spec"]
    assert spec["maxUnavailable"] == "50%"
    assert spec["selector"]["matchLabels"].items() <= pod_of(objects)["metadata"]["labels"].items()


def test_a_service_monitor_finds_the_port_of_the_pods_by_a_service_of_its_own(helm):
    values = {
        "metrics": {"serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"p": "q"}}},
    }
    objects = by_name(helm.render(values=values))
    monitor = objects["ServiceMonitor", "quorate"]
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    services = {name: one for (kind, name), one in objects.items() if kind == "Service"}
    matching = [
        name for name, one in services.items() if chosen <= one["metadata"]["labels"].items()
    ]
    assert matching == ["quorate-metrics"]
    (port,) = services["quorate-metrics"]["spec"]["ports"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint == {"port": port["name"], "interval": "15s"}
    pod = pod_of(list(objects.values()))
    assert port["targetPort"] in [one["name"] for one in pod["spec"]["containers"][0]["ports"]]
    selector = services["quorate-metrics"]["spec"]["selector"]
    assert selector.items() <= pod["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["p"] == "q"


def test_the_rules_are_those_of_the_page_on_alerts(helm):
    values = {"metrics": {"prometheusRule": {"enabled": True, "labels": {"p": "q"}}}}
    rule = by_name(helm.render(values=values))["PrometheusRule", "quorate"]
    page = (ROOT / "docs" / "operators" / "alerts.md").read_text()
    assert rule["spec"] == yaml.safe_load(re.search(r"(?s)```yaml\n(.*?)```", page)[1])
    assert len(rule["spec"]["groups"][0]["rules"]) > 5
    assert rule["metadata"]["labels"] == {"app.kubernetes.io/name": "quorate", "p": "q"}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 2}, "replica"),
        ({"replicas": 0}, "replicas"),
        ({"replicas": 11}, "replicas"),
        ({"image": {"repository": "a b"}}, "repository"),
        ({"image": {"tag": "x: y"}}, "tag"),
        ({"image": {"digest": "sha256:ab"}}, "digest"),
        ({"priorityClassName": ""}, "priorityClassName"),
        ({"config": {"packing": "tight"}}, "packing"),
        ({"config": {"schedulerName": "x"}}, "schedulerName"),
        ({"config": {"healthAddress": ":1"}}, "healthAddress"),
        ({"without": ["pods"]}, "without"),
        ({"cks": {"policies": {"enabled": True}}}, "organizations"),
        ({"cks": {"nodes": {"enabled": True}}}, "organizations"),
        ({"cks": {"rules": {"organizations": ["triage"]}}}, "organizations"),
        ({"cks": {"rules": {"organizations": ["control-plane"]}}}, "organizations"),
        ({"cks": {"rules": {"domains": ["*.coreweave.com"]}}}, "domains"),
        ({"cks": {"rules": {"reservedLabel": "a'b"}}}, "reservedLabel"),
        ({"podLabels": {"app.kubernetes.io/name": "other"}}, "podLabels"),
        ({"tolerations": {"key": "a"}}, "tolerations"),
        ({"podDisruptionBudget": {"maxUnavailable": "half"}}, "maxUnavailable"),
    ],
)
def test_a_mistake_in_the_values_is_refused_by_name(helm, values, named):
    with pytest.raises(HelmError, match=named):
        helm.render(values=values)


def test_helm_finds_nothing_to_say_of_the_chart(helm):
    everything = {
        "namespace": {"create": True},
        "preemption": True,
        "networkPolicy": {"enabled": True},
        "podDisruptionBudget": {"enabled": True},
        "metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
        "config": {"logLevel": "debug"},
        "cks": {
            "policies": {"enabled": True},
            "nodes": {"enabled": True},
            "rules": {"organizations": ["acme"]},
        },
    }
    for values in ({}, everything):
        said = helm.run("lint", "--strict", *helm.given(values), str(CHART))
        assert "1 chart(s) linted, 0 chart(s) failed" in said
