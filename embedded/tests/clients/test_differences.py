"""What docs/maintainers/clients.md says to be otherwise than on a real cluster, is so.

A test here that fails says that something works by now: then its row goes.
"""

import json

import pytest

from embedded.tests.clients.running import WAITS, as_yaml, config_map, pod

pytestmark = pytest.mark.usefixtures("embedded_only")


@pytest.fixture
def embedded_only(on_real):
    if on_real:
        pytest.skip("these are the differences from a real control plane")


def test_explain_has_fields_and_types_but_no_prose(kubectl):
    shown = kubectl("explain", "pod.spec.containers.resources")
    assert "limits\t<map[string]Quantity>\n    <no description>" in shown


def test_nothing_acts_on_services_and_autoscalers(kubectl):
    kubectl("create", "-f", "-", manifest=as_yaml(pod(labels={"app": "solo"})))
    kubectl("wait", "--for=condition=Ready", "pod/solo", WAITS)
    kubectl("expose", "pod", "solo", "--port=80")
    kubectl("create", "deployment", "web", "--image=x")
    kubectl("autoscale", "deployment", "web", "--max=3")
    assert kubectl("get", "endpointslices,endpoints", "-o", "name") == ""
    shown = json.loads(kubectl("get", "hpa", "web", "-o", "json"))
    assert not shown["status"].get("conditions")


@pytest.mark.parametrize(
    "kind", ["limitranges", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
)
def test_kinds_that_nothing_would_act_on_are_unknown(kubectl, kind):
    assert "the server doesn't have a resource type" in kubectl.refused("get", kind)


def test_there_is_no_service_in_front_of_the_api(kubectl):
    assert kubectl("get", "services", "-n", "default", "-o", "name") == ""


def test_there_are_no_aggregated_apis_component_statuses_and_metrics_of_the_server(kubectl):
    assert kubectl("get", "apiservices,componentstatuses", "-o", "name") == ""
    assert "(NotFound)" in kubectl.refused("get", "--raw", "/metrics")


def test_nobody_owns_a_field(kubectl):
    apply = ("apply", "--server-side", "-f", "-")
    kubectl(*apply, manifest=as_yaml(config_map(a="1", b="1")))
    kubectl(*apply, "--field-manager=other", manifest=as_yaml(config_map(a="2")))
    found = json.loads(kubectl("get", "cm", "settings", "-o", "json", "--show-managed-fields"))
    assert found["data"] == {"a": "2", "b": "1"}
    assert "managedFields" not in found["metadata"]


def test_pod_security_is_not_enforced(kubectl):
    kubectl(
        "label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted"
    )
    kubectl("run", "root", "--image=x", "--privileged")
