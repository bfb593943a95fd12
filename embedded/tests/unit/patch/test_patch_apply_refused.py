"""What cannot be applied."""

import pytest

from embedded.tests.unit.patch.apply_world import (
    CONFIG_MAP,
    NOW,
    config_map,
    thing,
)
from embedded.tests.unit.patch.apply_world import THING as SHAPE_OF_THING
from pocketkube.errors import ApiError
from pocketkube.patch.apply.apply import apply

MAP = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): "
THING = "failed to create typed patch object (/t; q.test/v1, Kind=Thing): "
REFUSED = {
    "text": (config_map({"z": 5}), 500, MAP + ".data.z: expected string, got number"),
    "text_is_object": (
        config_map({"z": {"b": [1], "a": None}}),
        500,
        MAP + ".data.z: expected string, got object",
    ),
    "unknown": (
        {**config_map({}), "nope": 1},
        500,
        MAP + ".nope: field not declared in schema",
    ),
    "no_map": (config_map("x"), 500, MAP + ".data: expected map, got string"),
    "number": (thing(n="1"), 500, THING + ".spec.n: expected integer, got string"),
    "no_list": (thing(items={}), 500, THING + ".spec.items: expected list, got object"),
    "no_object": (
        thing(items=[{"k": "a"}, 5]),
        500,
        THING + ".spec.items[1]: expected object, got number",
    ),
    "several": (
        thing(n=True, nope=1),
        500,
        THING + ".spec.n: expected integer, got bool; .spec.nope: field not declared in schema",
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
