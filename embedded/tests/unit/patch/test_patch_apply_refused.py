"""What cannot be applied, in the words of a real kube-apiserver 1.36; and kubectl's annotation."""

import json

import pytest

from embedded.tests.unit.patch.apply_world import (
    CONFIG_MAP,
    NOW,
    applied,
    config_map,
    owners,
    thing,
)
from embedded.tests.unit.patch.apply_world import THING as SHAPE_OF_THING
from pocketkube.errors import ApiError
from pocketkube.patch.apply.apply import apply
from pocketkube.patch.apply.last_applied import ANNOTATION, MAX_ANNOTATIONS_BYTES

MAP = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): "
THING = "failed to create typed patch object (/t; q.test/v1, Kind=Thing): "
REFUSED = {
    "text": (
        config_map({"z": 5}),
        500,
        MAP + ".data.z: expected string, got &value.valueUnstructured{Value:5}",
    ),
    "text_is_object": (
        config_map({"z": {"b": [1], "a": None}}),
        500,
        MAP + ".data.z: expected string, got &value.valueUnstructured{Value:map[string]interface "
        '{}{"a":interface {}(nil), "b":[]interface {}{1}}}',
    ),
    "unknown": (
        {**config_map({}), "nope": 1},
        500,
        MAP + ".nope: field not declared in schema",
    ),
    "no_map": (config_map("x"), 500, MAP + ".data: expected map, got &{x}"),
    "number": (
        thing(n="1"),
        500,
        THING + ".spec.n: expected numeric (int or float), got string",
    ),
    "no_list": (thing(items={}), 500, THING + ".spec.items: expected list, got &{map[]}"),
    "twice": (
        thing(a_set=["a", "a"]),
        500,
        THING + '.spec.a_set: duplicate entries for key [="a"]',
    ),
    "item_twice": (
        thing(items=[{"k": "b"}, {"k": "b", "j": 1}]),
        500,
        THING + '.spec.items: duplicate entries for key [j=1,k="b"]',
    ),
    "no_object": (
        thing(items=[{"k": "a"}, 5]),
        500,
        THING + ".spec.items: element 1: associative list with keys may not have non-map elements",
    ),
    "several": (
        thing(n=True, nope=1),
        500,
        THING + "errors:\n  .spec.n: expected numeric (int or float), got bool\n"
        "  .spec.nope: field not declared in schema",
    ),
    "version": (
        {**config_map({}), "apiVersion": "v2"},
        400,
        "invalid object type: /v2, Kind=ConfigMap",
    ),
    "kind": ({**config_map({}), "kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
    "nothing": ({}, 400, "invalid object type: /, Kind="),
    "managed": (config_map({}, managedFields=[]), 400, "metadata.managedFields must be nil"),
}


@pytest.mark.parametrize(("obj", "code", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(obj, code, message):
    shape, kind, version = CONFIG_MAP, "ConfigMap", "v1"
    if obj.get("kind") == "Thing":
        shape, kind, version = SHAPE_OF_THING, "Thing", "q.test/v1"
    options = {"manager": "m", "force": False, "api_version": version, "now": NOW, "kind": kind}
    with pytest.raises(ApiError) as refused:
        apply(None, obj, shape, **options)
    assert (refused.value.code, refused.value.message) == (code, message)


def client_side(data, applied_data):
    """Return what client-side ``kubectl apply`` left, changed by others since."""
    text = json.dumps({**config_map(applied_data), "apiVersion": "v1"})
    return config_map(data, annotations={ANNOTATION: text})


def test_kubectl_takes_over_what_it_applied_from_the_client():
    live = client_side({"x": "1"}, {"x": "1"})
    found = applied(live, config_map({"x": "2"}), "kubectl")
    assert found["data"] == {"x": "2"}
    assert owners(found)["kubectl", "Apply"] == {"f:data": {"f:x": {}}}
    with pytest.raises(ApiError):
        applied(live, config_map({"x": "2"}), "somebody")


def test_what_kubectl_applied_from_the_client_has_its_own_manager():
    live = client_side({"x": "1", "y": "9"}, {"x": "1", "y": "1"})
    found = applied(live, config_map({"z": "1"}), "m1")
    annotation = {f"f:{ANNOTATION}": {}}
    assert owners(found) == {
        ("m1", "Apply"): {"f:data": {"f:z": {}}},
        ("kubectl-client-side-apply", "Update"): {
            "f:data": {"f:x": {}},
            "f:metadata": {"f:annotations": annotation},
        },
        ("before-first-apply", "Update"): {
            "f:data": {".": {}, "f:y": {}},
            "f:metadata": {"f:annotations": {}},
        },
    }


def test_kubectl_does_not_take_what_others_changed_since():
    live = client_side({"x": "9", "y": "1"}, {"x": "1", "y": "1"})
    with pytest.raises(ApiError) as refused:
        applied(live, config_map({"x": "2", "y": "2"}), "kubectl")
    assert [cause["field"] for cause in refused.value.details["causes"]] == [".data.x"]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"apiVersion": "v2"})])
def test_an_annotation_that_says_nothing_allows_nothing(text):
    live = config_map({"x": "1"}, annotations={ANNOTATION: text})
    with pytest.raises(ApiError):
        applied(live, config_map({"x": "2"}), "kubectl")


def test_the_annotation_follows_what_kubectl_applies():
    live = client_side({"x": "1"}, {"x": "1"})
    wanted = config_map({"x": "<&>"}, annotations={"a": "b"})
    found = applied(live, wanted, "kubectl")
    text = found["metadata"]["annotations"][ANNOTATION]
    assert text == (
        '{"apiVersion":"v1","data":{"x":"\\u003c\\u0026\\u003e"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{"a":"b"},"name":"c"}}\n'
    )
    assert found["metadata"]["annotations"]["a"] == "b"


def test_the_annotation_is_not_made_where_there_is_none():
    found = applied(config_map({"x": "1"}), config_map({"x": "1"}), "kubectl")
    assert "annotations" not in found["metadata"]


def test_an_annotation_that_would_be_too_long_goes():
    live = client_side({"x": "1"}, {"x": "1"})
    found = applied(live, config_map({"x": "1" * MAX_ANNOTATIONS_BYTES}), "kubectl")
    assert ANNOTATION not in found["metadata"]["annotations"]
