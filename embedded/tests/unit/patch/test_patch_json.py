"""JSON patches: every row was answered so by a real kube-apiserver 1.36."""

import copy

import pytest

from pocketkube.errors import ApiError
from pocketkube.patch.json_patch import MAX_OPERATIONS, apply_json_patch

LIVE = {
    "metadata": {"name": "j", "labels": {"a": "b"}, "finalizers": ["a.b/c", "a.b/d"]},
    "data": {"x": "1", "a/b": "2", "m~n": "3", "1": "one"},
}


def op(verb, path, value=None, **more):
    return {"op": verb, "path": path, "value": value, **more}


DONE = {
    "add": ([op("add", "/data/y", "2")], ("data", "y"), "2"),
    "add_over": ([op("add", "/data/x", "2")], ("data", "x"), "2"),
    "add_without_value": ([{"op": "add", "path": "/data/y"}], ("data", "y"), None),
    "replace_creates": ([op("replace", "/data/new", "2")], ("data", "new"), "2"),
    "escaped_slash": ([op("replace", "/data/a~1b", "9")], ("data", "a/b"), "9"),
    "escaped_tilde": ([op("replace", "/data/m~0n", "9")], ("data", "m~n"), "9"),
    "key_that_looks_like_an_index": ([op("replace", "/data/1", "9")], ("data", "1"), "9"),
    "before_the_first_slash": ([op("add", "zz/data/y", "q")], ("data", "y"), "q"),
    "move": ([op("move", "/data/y", **{"from": "/data/x"})], ("data", "y"), "1"),
    "copy": ([op("copy", "/data/y", **{"from": "/data/x"})], ("data", "y"), "1"),
    "copy_of_nothing": ([op("copy", "/data/y", **{"from": "/data/no"})], ("data", "y"), None),
    "append": (
        [op("add", "/metadata/finalizers/-", "z")],
        ("metadata", "finalizers"),
        ["a.b/c", "a.b/d", "z"],
    ),
    "insert": (
        [op("add", "/metadata/finalizers/0", "z")],
        ("metadata", "finalizers"),
        ["z", "a.b/c", "a.b/d"],
    ),
    "negative_index": (
        [op("remove", "/metadata/finalizers/-1")],
        ("metadata", "finalizers"),
        ["a.b/c"],
    ),
    "add_at_negative_index": (
        [op("add", "/metadata/finalizers/-1", "z")],
        ("metadata", "finalizers"),
        ["a.b/c", "a.b/d", "z"],
    ),
    "leading_zero": (
        [op("replace", "/metadata/finalizers/01", "z")],
        ("metadata", "finalizers"),
        ["a.b/c", "z"],
    ),
    "move_within_a_list": (
        [op("move", "/metadata/finalizers/1", **{"from": "/metadata/finalizers/0"})],
        ("metadata", "finalizers"),
        ["a.b/d", "a.b/c"],
    ),
    "test_holds": ([op("test", "/data/x", "1"), op("add", "/data/y", "2")], ("data", "y"), "2"),
    "test_of_nothing_is_null": ([op("test", "/data/no")], ("data", "x"), "1"),
    "all_replaced": ([op("replace", "", {"data": {"q": "1"}})], ("data",), {"q": "1"}),
    "no_operations": ([], ("data", "x"), "1"),
    "null": (None, ("data", "x"), "1"),
}

FAILS = {
    "test": [op("test", "/data/x", "2")],
    "test_type": [op("add", "/data/n", 1), op("test", "/data/n", True)],
    "remove_nothing": [op("remove", "/data/no")],
    "parent_missing": [op("add", "/no/x", "2")],
    "parent_is_text": [op("replace", "/data/x/deep", "2")],
    "through_text": [op("replace", "/data/x/deep/er", "2")],
    "unknown_verb": [op("bogus", "/data/x")],
    "no_verb": [{"path": "/data/x"}],
    "no_path": [{"op": "add", "value": "2"}],
    "no_from": [op("copy", "/data/y")],
    "move_nothing": [op("move", "/data/y", **{"from": "/data/no"})],
    "add_all": [op("add", "", {})],
    "replace_all_by_text": [op("replace", "", "x")],
    "no_slash": [op("add", "data", {})],
    "index_too_high": [op("remove", "/metadata/finalizers/2")],
    "index_too_low": [op("remove", "/metadata/finalizers/-3")],
    "no_index": [op("add", "/metadata/finalizers/x", "2")],
    "replace_behind_the_end": [op("replace", "/metadata/finalizers/-", "z")],
    "second_fails": [op("add", "/data/y", "2"), op("remove", "/data/no")],
    "null_operation": [None],
}

MALFORMED = {
    "object": ({"op": "add"}, "unmarshal object into Go value of type []handlers.jsonPatchOp"),
    "text": ("x", "unmarshal string into Go value of type []handlers.jsonPatchOp"),
    "number_inside": ([1], "unmarshal number into Go value of type handlers.jsonPatchOp"),
    "path": (
        [{"op": "add", "path": 5}],
        "unmarshal number into Go struct field jsonPatchOp.path of type string",
    ),
}


def at(document, path):
    for name in path:
        document = document[name]
    return document


@pytest.mark.parametrize(("operations", "path", "expected"), DONE.values(), ids=DONE.keys())
def test_what_the_real_server_does(operations, path, expected):
    before, given = copy.deepcopy(LIVE), copy.deepcopy(operations)
    assert at(apply_json_patch(LIVE, operations), path) == expected
    assert before == LIVE, "the live object is left alone"
    assert given == operations, "the patch is left alone"


@pytest.mark.parametrize("operations", FAILS.values(), ids=FAILS.keys())
def test_what_fails_is_422_and_does_not_say_why(operations):
    with pytest.raises(ApiError) as refused:
        apply_json_patch(LIVE, operations)
    assert refused.value.code == 422
    assert refused.value.reason == "Invalid"
    text = "the server rejected our request due to an error in our request"
    assert refused.value.message == text


@pytest.mark.parametrize(("operations", "text"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_patch_is_400(operations, text):
    with pytest.raises(ApiError) as refused:
        apply_json_patch(LIVE, operations)
    assert refused.value.code == 400
    assert refused.value.message == f"error decoding patch: json: cannot {text}"


def test_too_many_operations_are_413():
    enough = [op("test", "/data/x", "1")] * MAX_OPERATIONS
    assert apply_json_patch(LIVE, enough) == LIVE
    with pytest.raises(ApiError) as refused:
        apply_json_patch(LIVE, [*enough, enough[0]])
    assert refused.value.code == 413
    assert refused.value.reason == "RequestEntityTooLarge"
    assert refused.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
        "got 10001"
    )


def test_a_value_put_twice_is_not_shared():
    found = apply_json_patch(LIVE, [op("copy", "/copy", **{"from": "/data"})])
    found["copy"]["x"] = "other"
    assert found["data"]["x"] == "1"
