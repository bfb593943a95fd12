"""FieldsV1 as sets of paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketkube.patch.apply.field_paths import (
    field,
    item_by_keys,
    item_by_value,
    named,
    preorder,
    read_fields,
    text_of,
    without_trees,
    write_fields,
)

elements = (
    st.sampled_from(["spec", "a.b/c", "x y"]).map(field)
    | st.dictionaries(
        st.sampled_from(["name", "port"]), st.sampled_from(["a", 80, True]), min_size=1
    ).map(item_by_keys)
    | st.sampled_from(["x", 1, 'q"']).map(item_by_value)
    | st.integers(0, 3).map(lambda index: f"i:{index}")
)
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)


@given(fields=st.frozensets(paths, max_size=8))
def test_what_is_written_is_read_the_same(fields):
    assert read_fields(write_fields(fields)) == fields


def test_a_field_and_what_is_in_it():
    keys = item_by_keys({"port": 80, "name": "a"})
    fields = frozenset([(*named("spec"), keys), (*named("spec"), keys, field("image"))])
    written = {"f:spec": {'k:{"name":"a","port":80}': {".": {}, "f:image": {}}}}
    assert write_fields(fields) == written
    assert read_fields(written) == fields


def test_elements_are_read_in_one_spelling_and_unknown_ones_skipped():
    sloppy = {'k:{"port": 80, "name":"a"}': {}, "x:unknown": {"f:a": {}}, "f:b": None}
    assert read_fields(sloppy) == {(item_by_keys({"name": "a", "port": 80}),), named("b")}


@pytest.mark.parametrize("wrong", [{"f": {}}, {"fa": {}}, {"k:[]": {}}, {"v:{": {}}, {"f:a": 1}, 5])
def test_what_is_malformed_raises(wrong):
    with pytest.raises(ValueError):  # noqa: PT011 - json's and ours
        read_fields(wrong)


def test_written_in_the_order_of_the_real_server():
    unordered = [item_by_value("b"), field("z"), item_by_keys({"p": 9}), item_by_keys({"p": 10})]
    written = write_fields(frozenset((element,) for element in [*unordered, field("a")]))
    assert list(written) == ["f:a", "f:z", 'k:{"p":9}', 'k:{"p":10}', 'v:"b"']


def test_listed_members_first_then_deeper():
    fields = [named("b"), named("a", "x"), named("a"), named("a", "b", "c"), named("c", "d")]
    listed = [text_of(path) for path in preorder(fields)]
    assert listed == [".a", ".b", ".a.x", ".a.b.c", ".c.d"]


def test_paths_for_people():
    path = (*named("spec"), item_by_keys({"b": "x", "a": 1}), item_by_value("v"), "i:3")
    assert text_of(path) == '.spec[a=1,b="x"][="v"][3]'


def test_trees_are_taken_out_whole():
    fields = frozenset([named("status"), named("status", "a"), named("statusOf"), named("spec")])
    assert without_trees(fields, [named("status")]) == {named("statusOf"), named("spec")}
