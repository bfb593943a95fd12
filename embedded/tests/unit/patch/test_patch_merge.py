"""JSON merge patches: the table of RFC 7386, and what the real server does besides."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketkube.errors import ApiError
from pocketkube.patch.merge_patch import apply_merge_patch

# Appendix A of the RFC, as far as original and patch are objects.
RFC = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("live", "patch", "expected"), RFC)
def test_the_table_of_the_rfc(live, patch, expected):
    before = copy.deepcopy(live)
    assert apply_merge_patch(live, patch) == expected
    assert live == before


def test_nulls_in_new_lists_stay_but_not_those_of_objects_in_them():
    patch = {"a": [1, None, {"b": None, "c": 1}]}
    assert apply_merge_patch({}, patch) == {"a": [1, None, {"c": 1}]}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        ([1], "unmarshal array into Go value of type map[string]interface {}"),
        ("x", "unmarshal string into Go value of type map[string]interface {}"),
        (True, "unmarshal bool into Go value of type map[string]interface {}"),
    ],
)
def test_a_patch_that_is_no_object_is_400(patch, message):
    with pytest.raises(ApiError) as refused:
        apply_merge_patch({}, patch)
    assert refused.value.code == 400
    assert refused.value.message.endswith(message)


leaves = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), values)


@given(live=objects, patch=objects)
def test_a_patch_applied_twice_changes_nothing_more(live, patch):
    once = apply_merge_patch(live, patch)
    assert apply_merge_patch(once, patch) == once


@given(live=objects)
def test_an_empty_patch_changes_nothing(live):
    assert apply_merge_patch(live, {}) == live
