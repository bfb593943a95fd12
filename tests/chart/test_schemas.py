"""What the chart renders is what Kubernetes takes, as kubeconform reads the recorded API.

Fields that no kind has, types, and missing fields are found; what only a server checks is not.
"""

import subprocess

import pytest
import yaml

from tests.chart.schemas import LOCATION, write_schemas
from tests.conftest import skip_or_fail
from tools.controlplane.versions import binary, missing_binaries

pytestmark = pytest.mark.explore  # the API server refuses the same, in test_install
OF_OTHERS = ("ServiceMonitor", "PrometheusRule")  # the Prometheus operator's: not in the recording


def everything():
    return {
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
        "imagePullSecrets": [{"name": "mine"}],
        "image": {"pullPolicy": "Always"},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "podLabels": {"a": "b"},
        "serviceAccount": {"annotations": {"c": "d"}},
    }


@pytest.fixture
def conform(tmp_path):
    if missing_binaries(["kubeconform"]):
        skip_or_fail("kubeconform is not built; make tools builds it")

    def run(objects):
        kinds = {
            (one["apiVersion"], one["kind"]) for one in objects if one["kind"] not in OF_OTHERS
        }
        write_schemas(tmp_path, kinds)
        location = str(tmp_path / LOCATION)
        return subprocess.run(
            [
                *(str(binary("kubeconform")), "-strict", "-summary", "-skip", ",".join(OF_OTHERS)),
                *("-schema-location", location),
            ],
            input=yaml.safe_dump_all(objects),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_what_is_rendered_conforms(helm, conform):
    for values, skipped in (({}, 0), (everything(), 2)):
        objects = helm.render(values=values)
        done = conform(objects)
        assert done.returncode == 0, done.stdout + done.stderr
        valid = len(objects) - skipped
        assert f"Valid: {valid}, Invalid: 0, Errors: 0, Skipped: {skipped}" in done.stdout


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", ("spec", "template", "spec", "tolerance"), []),
        ("Deployment", ("spec", "replicas"), "two"),
        ("ClusterRole", ("rules", 0, "verb"), ["get"]),
        ("CustomResourceDefinition", ("spec", "versions", 0, "schema", "openAPIV3"), {}),
    ],
)
def test_a_field_that_is_wrong_is_found(helm, conform, kind, path, value):
    objects = helm.render()
    one = next(one for one in objects if one["kind"] == kind)
    for key in path[:-1]:
        one = one[key]
    one[path[-1]] = value
    done = conform(objects)
    assert done.returncode == 1
    assert "Invalid: 1" in done.stdout
