"""The recorded document: small, without prose, and complete."""

import importlib.resources
import json
import lzma

import pytest

from pocketkube.schema.document import Document
from pocketkube.schema.shape import Merge, Type
from tools.openapi.__main__ import packed
from tools.openapi.recording import PROSE, without_prose

DOCUMENT = Document.load()
POD = DOCUMENT.shape("io.k8s.api.core.v1.Pod")


def shipped() -> bytes:
    return importlib.resources.files("pocketkube.schema").joinpath("recorded.json.xz").read_bytes()


def resource(api_version: str, plural: str):
    found = [r for r in DOCUMENT.resources() if (r.api_version, r.plural) == (api_version, plural)]
    assert len(found) == 1
    return found[0]


def test_the_file_is_small_and_packing_it_again_gives_the_same_bytes():
    data = shipped()
    assert len(data) < 200_000
    assert packed(json.loads(lzma.decompress(data))) == data


def test_no_schema_has_prose():
    def keys(schema):
        yield from (key for key in schema if key != "properties")
        for inner in schema.get("properties", {}).values():
            yield from keys(inner)
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from keys(schema[key])

    for name, schema in DOCUMENT.schemas.items():
        assert not PROSE & set(keys(schema)), name


def test_a_property_called_description_is_no_prose():
    schema = {
        "description": "gone",
        "properties": {"description": {"type": "string", "title": "x"}},
    }
    assert without_prose(schema) == {"properties": {"description": {"type": "string"}}}


def test_loading_twice_gives_the_same_document():
    assert Document.load() is DOCUMENT


def test_resources_come_with_all_that_discovery_says():
    deployments = resource("apps/v1", "deployments")
    assert deployments.kind == "Deployment"
    assert deployments.list_kind == "DeploymentList"
    assert deployments.singular == "deployment"
    assert deployments.bucket == "deployments.apps"
    assert deployments.namespaced
    assert deployments.short_names == ("deploy",)
    assert deployments.categories == ("all",)
    assert deployments.shape.name == "io.k8s.api.apps.v1.Deployment"
    assert [column["name"] for column in deployments.columns][:3] == ["Name", "Ready", "Up-to-date"]
    scale = deployments.subresources["scale"]
    assert (scale.kind, scale.group, scale.version) == ("Scale", "autoscaling", "v1")
    status = deployments.subresources["status"]
    assert (status.kind, status.group, status.version) == ("Deployment", "apps", "v1")
    assert not resource("v1", "nodes").namespaced


def test_both_kinds_of_events_share_a_bucket():
    assert resource("v1", "events").bucket == "events"
    assert resource("events.k8s.io/v1", "events").bucket == "events"


def test_the_preferred_version_comes_first_and_is_stored():
    versions = [r for r in DOCUMENT.resources() if r.plural == "horizontalpodautoscalers"]
    assert [r.version for r in versions] == ["v2", "v1"]
    assert {r.storage_version for r in versions} == {"v2"}


def test_lists_tell_how_they_are_merged():
    containers = POD.fields["spec"].fields["containers"]
    assert (containers.type, containers.merge, containers.keys) == (Type.LIST, Merge.MAP, ("name",))
    assert containers.patch_merge_key == "name"
    assert containers.patch_strategies == {"merge"}
    volumes = POD.fields["spec"].fields["volumes"]
    assert volumes.patch_strategies == {"merge", "retainKeys"}
    assert POD.fields["spec"].fields["tolerations"].merge is Merge.ATOMIC
    assert POD.fields["metadata"].fields["finalizers"].merge is Merge.SET


def test_objects_and_maps_merge_by_field_unless_they_say_otherwise():
    assert POD.merge is Merge.GRANULAR
    assert POD.fields["metadata"].fields["labels"].merge is Merge.GRANULAR
    assert POD.fields["spec"].fields["nodeSelector"].merge is Merge.ATOMIC


def test_a_property_may_say_how_to_patch_the_type_it_refers_to():
    spec = DOCUMENT.shape("io.k8s.api.apps.v1.DeploymentSpec")
    strategy = DOCUMENT.shape("io.k8s.api.apps.v1.DeploymentStrategy")
    assert spec.fields["strategy"].patch_strategies == {"retainKeys"}
    assert spec.fields["strategy"].fields is strategy.fields
    assert strategy.patch_strategies == frozenset()


def test_keys_of_lists_have_their_defaults():
    ports = POD.fields["spec"].fields["containers"].item.fields["ports"]
    assert ports.keys == ("containerPort", "protocol")
    assert ports.item.fields["protocol"].default == "TCP"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("io.k8s.apimachinery.pkg.api.resource.Quantity", Type.QUANTITY),
        ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", Type.INT_OR_STRING),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", Type.STRING),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", Type.STRING),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", Type.ANY),
        ("io.k8s.apimachinery.pkg.runtime.RawExtension", Type.ANY),
        ("io.k8s.api.scheduling.v1alpha2.BasicSchedulingPolicy", Type.OBJECT),
    ],
)
def test_special_types(name, kind):
    assert DOCUMENT.shape(name).type is kind
    assert DOCUMENT.shape(name).name == name


def test_a_type_may_contain_itself():
    schema = DOCUMENT.shape(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    )
    assert schema.fields["not"].fields is schema.fields
    assert schema.fields["properties"].item is schema


def test_every_schema_has_a_shape():
    for name in DOCUMENT.schemas:
        assert DOCUMENT.shape(name).name == name


def test_bootstrap_objects_are_of_every_cluster_and_carry_nothing_of_the_recorded_one():
    kinds = {obj["kind"] for obj in DOCUMENT.bootstrap}
    assert {"Namespace", "PriorityClass", "ClusterRole", "RoleBinding", "FlowSchema"} <= kinds
    for obj in DOCUMENT.bootstrap:
        assert obj["metadata"].keys() <= {"name", "namespace", "labels", "annotations"}
        assert "status" not in obj
    names = [obj["metadata"]["name"] for obj in DOCUMENT.bootstrap if obj["kind"] == "Namespace"]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_bootstrap_gives_copies():
    DOCUMENT.bootstrap[0]["metadata"]["name"] = "changed"
    assert DOCUMENT.bootstrap[0]["metadata"]["name"] == "default"


def test_aggregated_roles_were_complete_when_they_were_recorded():
    roles = {o["metadata"]["name"]: o for o in DOCUMENT.bootstrap if o["kind"] == "ClusterRole"}
    assert all(roles[name]["rules"] for name in ("admin", "edit", "view"))
