"""Values of custom resources become, or are refused, as a real API server does it.

Its answers are in custom_recorded/values.json; ``record_custom`` wrote them.
"""

import copy
import json
from pathlib import Path

import pytest

from pocketkube.schema.custom import crd
from pocketkube.schema.document import Document
from pocketkube.schema.shape import Merge, Shape, Type

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "custom_recorded" / "values.json").read_text())
DEFINITION = json.loads((HERE / "custom_cases" / "values.json").read_text())["definition"]
SCHEMA = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
METADATA = Document.load().shape("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


def shape_of(spec: dict) -> Shape:
    schema = {"type": "object", "properties": {"spec": spec}}
    return crd.shape_of(schema, METADATA)


def keyed(causes: list[dict]) -> list[tuple]:
    """Sort causes: the real server finds fields in the random order of Go's maps."""
    return sorted(tuple(sorted(cause.items())) for cause in causes)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: json.dumps(case["spec"])[:60])
def test_a_value_becomes_or_is_refused_as_recorded(case):
    shape = crd.shape_of(SCHEMA, METADATA)
    obj = {"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "t"}}
    obj["spec"] = copy.deepcopy(case["spec"])
    obj = crd.with_defaults(crd.pruned(obj, shape), shape)
    causes = [cause._asdict() for cause in crd.causes(obj, shape)]
    assert keyed(causes) == keyed(case["causes"])
    if not causes:
        assert obj["spec"] == case["becomes"]


def test_there_are_cases_that_pass_and_cases_that_are_refused():
    refused = sum(bool(case["causes"]) for case in RECORDED)
    assert refused > 50
    assert len(RECORDED) - refused > 30


def test_a_shape_has_the_types_of_its_schema():
    fields = crd.shape_of(SCHEMA, METADATA).fields["spec"].fields
    types = {name: fields[name].type for name in ("a", "num", "bool", "b", "lst", "map", "ios")}
    assert types == {
        "a": Type.INTEGER,
        "num": Type.NUMBER,
        "bool": Type.BOOLEAN,
        "b": Type.STRING,
        "lst": Type.LIST,
        "map": Type.MAP,
        "ios": Type.INT_OR_STRING,
    }
    assert fields["anyval"].type is Type.ANY
    assert fields["map"].item.type is Type.INTEGER
    assert fields["any"].preserve_unknown
    assert fields["emb"].embedded
    assert fields["nul"].nullable
    assert (fields["def"].has_default, fields["def"].default) == (True, "d")


def test_a_shape_says_how_lists_and_maps_are_merged():
    fields = crd.shape_of(SCHEMA, METADATA).fields["spec"].fields
    assert fields["lst"].merge is Merge.ATOMIC
    assert fields["uniq"].merge is Merge.SET
    assert (fields["mapl"].merge, fields["mapl"].keys) == (Merge.MAP, ("k",))
    assert fields["nest"].merge is Merge.GRANULAR
    atomic = {"type": "object", "x-kubernetes-map-type": "atomic"}
    assert shape_of(atomic).fields["spec"].merge is Merge.ATOMIC


def test_metadata_has_the_shape_of_every_object():
    shape = crd.shape_of(SCHEMA, METADATA)
    assert shape.fields["metadata"] is METADATA
    assert shape.fields["spec"].fields["emb"].fields["metadata"] is METADATA


def test_without_a_schema_everything_is_kept():
    shape = crd.shape_of(None, METADATA)
    obj = {
        "apiVersion": "a/v1",
        "kind": "K",
        "metadata": {"name": "x", "nope": 1},
        "any": {"y": [1]},
    }
    assert crd.pruned(copy.deepcopy(obj), shape)["any"] == {"y": [1]}
    assert crd.causes(obj, shape) == []


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),  # Python's $ would take it
        (r"^a\$$", "a$", True),
        (r"\d+\z", "7", True),
        (r"^\d$", "٣", False),  # Go's \d has ASCII digits only
        ("(?P<x>a)b", "ab", True),
        (r"^\pL+$", "1", True),  # not judged: only Go reads it
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern, text, matches):
    shape = shape_of({"type": "string", "pattern": pattern})
    assert (not crd.causes({"spec": text}, shape)) is matches


def test_defaults_are_copies():
    shape = shape_of(
        {"type": "object", "properties": {"x": {"type": "array", "items": {}, "default": [1]}}}
    )
    one = crd.with_defaults({"spec": {}}, shape)
    one["spec"]["x"].append(2)
    assert crd.with_defaults({"spec": {}}, shape)["spec"]["x"] == [1]
