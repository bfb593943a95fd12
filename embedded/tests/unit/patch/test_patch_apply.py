"""Server-side apply. Messages and ownership are those that a real kube-apiserver 1.36 gave."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.tests.unit.patch.apply_world import (
    STATUS,
    applied,
    config_map,
    owners,
    thing,
    updated,
)
from pocketkube.errors import ApiError

UPDATE, APPLY = "Update", "Apply"


def test_what_is_applied_first_is_owned():
    found = applied(None, config_map({"x": "1", "y": "2"}), "m1")
    assert found["data"] == {"x": "1", "y": "2"}
    assert found["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-11-21T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:x": {}, "f:y": {}}},
        }
    ]


def test_what_is_applied_no_longer_goes():
    found = applied(None, config_map({"x": "1", "y": "2"}), "m1")
    found = applied(found, config_map({"x": "1"}), "m1")
    assert found["data"] == {"x": "1"}
    assert owners(found) == {("m1", APPLY): {"f:data": {"f:x": {}}}}


def test_the_same_value_is_owned_by_both_and_goes_with_the_last():
    found = applied(None, config_map({"x": "1"}), "m1")
    found = applied(found, config_map({"x": "1", "z": "1"}), "m2")
    assert owners(found)["m1", APPLY] == {"f:data": {"f:x": {}}}
    assert owners(found)["m2", APPLY] == {"f:data": {"f:x": {}, "f:z": {}}}
    found = applied(found, config_map({"z": "1"}), "m1")
    assert found["data"] == {"x": "1", "z": "1"}, "m2 still wants x"
    found = applied(found, config_map({}), "m2")
    assert found["data"] == {"z": "1"}, "m1 still wants z"
    assert owners(found)["m2", APPLY] == {"f:data": {}}


def test_another_value_is_a_conflict():
    found = applied(None, config_map({"x": "1"}), "m1")
    with pytest.raises(ApiError) as refused:
        applied(found, config_map({"x": "2", "z": "1"}), "m2")
    status = refused.value.status()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "m1": .data.x'
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "m1"',
        "field": ".data.x",
    }
    assert status["details"] == {"causes": [cause]}


def test_conflicts_are_listed_by_manager():
    found = applied(None, config_map({"x": "1"}), "m2")
    after = {**copy.deepcopy(found), "data": {"x": "1", "a": "1", "b": "1"}}
    found = updated(found, after, "m1", subresource="scale")
    with pytest.raises(ApiError) as refused:
        applied(found, config_map({"x": "2", "a": "2", "b": "2"}), "m3")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "m1" with subresource "scale" using v1:\n'
        '- .data.a\n- .data.b\nconflicts with "m2":\n- .data.x'
    )


def test_force_takes_the_field():
    found = applied(None, config_map({"x": "1", "y": "1"}), "m1")
    found = applied(found, config_map({"x": "2"}), "m2", force=True)
    assert found["data"] == {"x": "2", "y": "1"}
    assert owners(found) == {
        ("m1", APPLY): {"f:data": {"f:y": {}}},
        ("m2", APPLY): {"f:data": {"f:x": {}}},
    }


def test_fields_from_before_the_first_apply_have_a_manager():
    live = config_map({"x": "1"}, labels={"a": "b"}, uid="u", resourceVersion="1")
    found = applied(live, config_map({"x": "1", "y": "1"}), "m1")
    before = {"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    assert owners(found)["before-first-apply", UPDATE] == before
    assert owners(found)["m1", APPLY] == {"f:data": {"f:x": {}, "f:y": {}}}
    with pytest.raises(ApiError) as refused:
        applied(live, config_map({"x": "2"}), "m1")
    assert 'conflict with "before-first-apply" using v1: .data.x' in refused.value.message
    with pytest.raises(ApiError) as refused:
        applied(live, config_map({"x": "2"}), "m1", subresource="status")
    assert 'conflict with "before-first-apply" using v1: .data.x' in refused.value.message


def test_an_apply_without_effect_changes_nothing_not_even_the_time():
    found = applied(None, config_map({"x": "1"}), "m1")
    assert applied(found, config_map({"x": "1"}), "m1", now="2027-01-01T00:00:00Z") == found


def test_a_first_apply_that_changes_only_ownership_has_no_time():
    found = applied(None, config_map({"x": "1"}), "m1")
    found = applied(found, config_map({"x": "1"}), "m2")
    times = {e["manager"]: e.get("time") for e in found["metadata"]["managedFields"]}
    assert times == {"m1": "2026-11-21T12:00:00Z", "m2": None}


LISTS = {
    "set": (
        thing(a_set=["a", "b"]),
        thing(a_set=["c", "b"]),
        {"a_set": ["a", "c", "b"]},
        {"f:a_set": {'v:"b"': {}, 'v:"c"': {}}},
    ),
    "map": (
        thing(items=[{"k": "a", "v": "1"}, {"k": "b"}]),
        thing(items=[{"k": "b", "deep": {"z": "1"}}, {"k": "a", "j": 2}]),
        {"items": [{"k": "a", "v": "1"}, {"k": "b", "deep": {"z": "1"}}, {"k": "a", "j": 2}]},
        {
            "f:items": {
                'k:{"j":1,"k":"b"}': {".": {}, "f:deep": {"f:z": {}}, "f:k": {}},
                'k:{"j":2,"k":"a"}': {".": {}, "f:j": {}, "f:k": {}},
            }
        },
    ),
    "map_in_other_order": (
        thing(items=[{"k": "a"}, {"k": "x"}, {"k": "b"}]),
        thing(items=[{"k": "b"}, {"k": "a"}]),
        {"items": [{"k": "x"}, {"k": "b"}, {"k": "a"}]},
        {
            "f:items": {
                'k:{"j":1,"k":"a"}': {".": {}, "f:k": {}},
                'k:{"j":1,"k":"b"}': {".": {}, "f:k": {}},
            }
        },
    ),
    "by_key": (
        thing(by_key={"a": {"p": "1"}}),
        thing(by_key={"b": {}}),
        {"by_key": {"a": {"p": "1"}, "b": {}}},
        {"f:by_key": {"f:b": {}}},
    ),
    "any_object": (
        thing(any={"a": {"x": 1}}),
        thing(any={"a": {"y": [1]}}),
        {"any": {"a": {"x": 1, "y": [1]}}},
        {"f:any": {"f:a": {".": {}, "f:y": {}}}},
    ),
}


@pytest.mark.parametrize(("first", "second", "spec", "owned"), LISTS.values(), ids=LISTS.keys())
def test_two_managers_share_what_is_granular(first, second, spec, owned):
    found = applied(applied(None, first, "m1"), second, "m2")
    assert found["spec"] == spec
    assert owners(found)["m2", APPLY] == {"f:spec": owned}


@pytest.mark.parametrize("spec", [{"atom": ["a"]}, {"whole": {"x": "1"}}])
def test_what_is_atomic_has_one_value(spec):
    (name,) = spec
    found = applied(None, thing(**spec), "m1")
    assert owners(found)["m1", APPLY] == {"f:spec": {f"f:{name}": {}}}
    other = thing(atom=["a", "b"]) if name == "atom" else thing(whole={"y": "1"})
    with pytest.raises(ApiError):
        applied(found, other, "m2")
    assert applied(found, other, "m2", force=True)["spec"] == other["spec"]


def test_an_item_goes_only_with_its_last_owner():
    found = applied(None, thing(items=[{"k": "a", "v": "1"}, {"k": "b"}]), "m1")
    found = applied(found, thing(items=[{"k": "a", "deep": {"z": "1"}}]), "m2")
    found = applied(found, thing(items=[{"k": "b"}]), "m1")
    assert found["spec"]["items"] == [{"k": "a", "deep": {"z": "1"}}, {"k": "b"}]
    found = applied(found, thing(), "m2")
    assert found["spec"]["items"] == [{"k": "b"}]


def test_the_status_is_not_touched_by_the_main_resource():
    found = applied(None, {**thing(n=1), "status": {"a": "1"}}, "m1", ignored=STATUS)
    assert owners(found) == {("m1", APPLY): {"f:spec": {"f:n": {}}}}
    status = {**thing(), "status": {"a": "2"}}
    status.pop("spec")
    found = applied(found, status, "m1", subresource="status", force=True)
    entries = {e.get("subresource"): e["fieldsV1"] for e in found["metadata"]["managedFields"]}
    assert entries == {None: {"f:spec": {"f:n": {}}}, "status": {"f:status": {"f:a": {}}}}


specs = st.fixed_dictionaries(
    {},
    optional={
        "a_set": st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3),
        "atom": st.lists(st.sampled_from("ab"), max_size=2),
        "by_key": st.dictionaries(st.sampled_from("ab"), st.just({"p": "1"}), min_size=1),
        "items": st.lists(
            st.fixed_dictionaries({"k": st.sampled_from("ab")}, optional={"v": st.just("1")}),
            unique_by=lambda item: item["k"],
            min_size=1,
            max_size=2,
        ),
    },
)


@given(first=specs, second=specs, who=st.sampled_from(["m1", "m2"]))
def test_an_apply_is_idempotent(first, second, who):
    live = applied(None, thing(n=1, **first), "m1")
    once = applied(live, thing(n=1, **second), who, force=True)
    before = copy.deepcopy(once)
    assert applied(once, thing(n=1, **second), who) == before
    assert once == before, "the input is left alone"


@given(first=specs, second=specs)
def test_who_applies_and_takes_it_back_leaves_what_others_own(first, second):
    live = applied(None, thing(n=1, **first), "m1")
    both = applied(live, thing(n=1, **second), "m2", force=True)
    found = applied(both, thing(n=1), "m2")
    assert owners(found)["m1", APPLY] == owners(both)["m1", APPLY]
    left = owners(found)["m1", APPLY]["f:spec"]
    assert set(found["spec"]) == {"n"} | {name[2:] for name in left}
    again = applied(found, thing(n=1, **first), "m1")
    assert set(again["spec"]) == {"n", *first}
    assert sorted(again["spec"].get("a_set", [])) == sorted(first.get("a_set", []))
