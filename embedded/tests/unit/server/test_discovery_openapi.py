"""The OpenAPI documents that are served: what kubectl looks for in them."""

import dataclasses
import json
from typing import Any

import pytest

from pocketkube.errors import ApiError
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import GVK, Document
from pocketkube.schema.shape import Shape, Type
from pocketkube.server.documents import openapi

DOCUMENT = Document.load()
SCHEMA = {
    "type": "object",
    "description": "A widget",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


def widget(schema: dict[str, Any]):
    base = next(r for r in DOCUMENT.resources() if r.kind == "Deployment")
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "list_kind": "WidgetList"}
    return dataclasses.replace(
        base,
        group="example.com",
        subresources={},
        shape=Shape(type=Type.OBJECT, schema=schema),
        crd="widgets.example.com",
        **names,
    )


def get(path: str, *more, accept: str = "application/json") -> Any:
    found = openapi.page(path, accept, Registry([*DOCUMENT.resources(), *more]), DOCUMENT)
    return None if found is None else json.loads(found[1])


def references(value: Any):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_document_of_the_index_is_there_and_complete():
    paths = get("/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1"} <= paths.keys()
    for path, entry in paths.items():
        url, _, digest = entry["serverRelativeURL"].partition("?hash=")
        assert url == f"/openapi/v3/{path}"
        assert digest
        document = get(url)
        assert {*references(document)} <= document["components"]["schemas"].keys()
        assert document["paths"]


def test_a_component_is_as_recorded_and_names_its_kind():
    schemas = get("/openapi/v3/apis/apps/v1")["components"]["schemas"]
    name = "io.k8s.api.apps.v1.Deployment"
    assert schemas[name] == DOCUMENT.schemas[name]
    assert schemas[name][GVK] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]


def test_kubectl_finds_a_kind_by_the_path_of_its_resource():
    paths = get("/openapi/v3/apis/apps/v1")["paths"]
    one = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert {operation[GVK]["kind"] for key, operation in one.items() if key != "parameters"} == {
        "Deployment"
    }
    assert one["get"][GVK] == kind
    assert (
        paths["/apis/apps/v1/namespaces/{namespace}/deployments"]["get"]["x-kubernetes-action"]
        == "list"
    )


def test_kubectl_sees_that_patches_take_field_validation_and_dry_runs():
    path = "/api/v1/namespaces/{namespace}/pods/{name}"
    patch = get("/openapi/v3/api/v1")["paths"][path]["patch"]
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {
        parameter["name"] for parameter in patch["parameters"]
    }
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_a_crd_has_a_document_with_its_schema_and_without_strategic_patches():
    document = get("/openapi/v3/apis/example.com/v1", widget(SCHEMA))
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["description"] == "A widget"
    assert schema["properties"]["spec"] == SCHEMA["properties"]["spec"]
    assert schema["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert schema[GVK] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    one = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]
    assert "application/strategic-merge-patch+json" not in one["patch"]["requestBody"]["content"]
    assert {*references(document)} <= document["components"]["schemas"].keys()


def test_a_changed_crd_changes_the_hash_and_no_other():
    def urls(schema):
        entries = get("/openapi/v3", widget(schema))["paths"].items()
        return {path: entry["serverRelativeURL"] for path, entry in entries}

    before, after = urls(SCHEMA), urls({**SCHEMA, "description": "Another"})
    assert {path for path in before if before[path] != after[path]} == {"apis/example.com/v1"}


@pytest.mark.parametrize("path", ["/openapi/v3/apis/nope/v1", "/openapi/v4", "/openapi/v3/x"])
def test_there_is_nothing_at_other_paths(path):
    assert get(path) is None


def test_version_2_defines_no_kind():
    document = get("/openapi/v2")
    assert document["swagger"] == "2.0"
    assert document["definitions"] == {}


PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def test_protobuf_alone_is_not_acceptable_in_version_3():
    with pytest.raises(ApiError) as caught:
        get("/openapi/v3/api/v1", accept=PROTOBUF)
    assert caught.value.code == 406


def test_version_2_in_protobuf_defines_no_kind_so_that_clients_leave_checks_to_the_server():
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    type_, body = openapi.page("/openapi/v2", accept, Registry(DOCUMENT.resources()), DOCUMENT)
    assert type_ == PROTOBUF
    assert body == b"\x0a\x032.0" + b"\x12\x13" + b"\x0a\x0aKubernetes\x12\x05v1.36" + b"\x42\x00"
