"""managedFields under updates. Ownership is what a real kube-apiserver 1.36 gave."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.tests.unit.patch.apply_world import (
    LATER,
    STATUS,
    applied,
    config_map,
    owners,
    thing,
    updated,
)
from pocketkube.patch.apply.managed_fields import (
    managers_of,
    read_managers,
    write_managers,
)
from pocketkube.patch.json_patch import apply_json_patch

UPDATE, APPLY = "Update", "Apply"


def changed(obj, **fields):
    return {**copy.deepcopy(obj), **fields}


@pytest.fixture
def live():
    return applied(None, config_map({"x": "1", "y": "1"}), "m1")


def test_an_object_that_nobody_applied_is_not_tracked():
    before = config_map({"x": "1"})
    assert updated(before, config_map({"x": "2"}), "u") == config_map({"x": "2"})
    assert updated(None, before, "u") == before


def test_an_update_takes_what_it_changes(live):
    found = updated(live, changed(live, data={"x": "2", "y": "1", "z": "1"}), "u", now=LATER)
    assert owners(found) == {
        ("m1", APPLY): {"f:data": {"f:y": {}}},
        ("u", UPDATE): {"f:data": {"f:x": {}, "f:z": {}}},
    }
    assert [e["time"] for e in found["metadata"]["managedFields"]] == [
        "2026-11-21T12:00:00Z",
        LATER,
    ]


def test_an_update_that_changes_nothing_leaves_owners_and_times(live):
    assert updated(live, copy.deepcopy(live), "u", now=LATER) == live


def test_what_is_removed_belongs_to_nobody(live):
    found = updated(live, changed(live, data={"x": "1"}), "u")
    assert owners(found) == {("m1", APPLY): {"f:data": {"f:x": {}}}}


def test_updates_of_one_manager_add_up(live):
    found = updated(live, changed(live, data={"x": "2", "y": "1"}), "u")
    found = updated(found, changed(found, data={"x": "2", "y": "2"}), "u", now=LATER)
    assert owners(found) == {("u", UPDATE): {"f:data": {"f:x": {}, "f:y": {}}}}
    assert found["metadata"]["managedFields"][0]["time"] == LATER


def test_the_applier_owns_the_field_again_only_by_force(live):
    found = updated(live, changed(live, data={"x": "2", "y": "1"}), "m1")
    assert owners(found) == {
        ("m1", APPLY): {"f:data": {"f:y": {}}},
        ("m1", UPDATE): {"f:data": {"f:x": {}}},
    }
    found = applied(found, config_map({"x": "3", "y": "1"}), "m1", force=True)
    assert owners(found) == {("m1", APPLY): {"f:data": {"f:x": {}, "f:y": {}}}}


def test_managed_fields_that_are_not_sent_are_kept(live):
    found = updated(live, config_map({"x": "1", "y": "2"}), "u")
    assert ("m1", APPLY) in owners(found)
    assert ("u", UPDATE) in owners(found)


@pytest.mark.parametrize("reset", [[], [{}]])
def test_a_client_may_reset_them(live, reset):
    sent = config_map({"x": "1", "y": "1"}, managedFields=reset)
    assert updated(live, sent, "u") == config_map({"x": "1", "y": "1"})


@pytest.mark.parametrize(
    "wrong",
    [
        [{"manager": "m"}],
        [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2"}],
        [{}, {}],
    ],
)
def test_what_cannot_be_read_is_as_if_it_were_not_sent(live, wrong):
    sent = config_map({"x": "1", "y": "1"}, managedFields=wrong)
    assert owners(updated(live, sent, "u")) == owners(live)


def test_a_subresource_cannot_set_them(live):
    sent = changed(live, metadata={**live["metadata"], "managedFields": []})
    assert owners(updated(live, sent, "u", subresource="status")) == owners(live)


def test_metadata_of_the_server_is_never_owned(live):
    metadata = {**live["metadata"], "uid": "u", "resourceVersion": "5", "generation": 2}
    found = updated(live, changed(live, metadata={**metadata, "labels": {"a": "b"}}), "u")
    assert owners(found)["u", UPDATE] == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}


def test_ignored_fields_are_not_owned():
    live = applied(None, thing(n=1), "m1")
    after = changed(live, spec={"n": 2}, status={"a": "1"})
    assert owners(updated(live, after, "u", ignored=STATUS)) == {
        ("u", UPDATE): {"f:spec": {"f:n": {}}}
    }


def test_an_item_that_appears_twice_is_owned_as_a_whole():
    live = applied(None, thing(items=[{"k": "a", "v": "1"}]), "m1")
    twice = changed(live, spec={"items": [{"k": "a", "v": "1"}, {"k": "a", "v": "2"}]})
    found = updated(live, twice, "u")
    assert owners(found) == {("u", UPDATE): {"f:spec": {"f:items": {'k:{"j":1,"k":"a"}': {}}}}}
    once = updated(found, changed(found, spec={"items": [{"k": "a", "v": "2"}]}), "v")
    item = {".": {}, "f:k": {}, "f:v": {}}
    assert owners(once) == {("v", UPDATE): {"f:spec": {"f:items": {'k:{"j":1,"k":"a"}': item}}}}


def test_what_becomes_an_object_is_changed_and_owned_inside():
    live = applied(None, thing(any="x"), "m1")
    found = updated(live, changed(live, spec={"any": {"a": 1}}), "u")
    assert owners(found) == {("u", UPDATE): {"f:spec": {"f:any": {".": {}, "f:a": {}}}}}


def test_kubectl_makes_an_updater_an_applier_by_a_json_patch(live):
    """As ``kubectl apply --server-side`` does with what was applied from the client before."""
    found = updated(live, changed(live, data={"x": "2", "y": "1"}), "kubectl-client-side-apply")
    entries = copy.deepcopy(found["metadata"]["managedFields"])
    entries[1].update(manager="kubectl", operation="Apply")
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
    found = updated(found, apply_json_patch(found, patch), "kubectl")
    assert owners(found) == {
        ("m1", APPLY): {"f:data": {"f:y": {}}},
        ("kubectl", APPLY): {"f:data": {"f:x": {}}},
    }
    found = applied(found, config_map({}), "kubectl")
    assert found["data"] == {"y": "1"}, "the new applier no longer wants x"


def test_managers_are_written_in_the_order_of_the_real_server():
    entry = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}}
    entries = [
        {**entry, "manager": "c", "operation": UPDATE, "time": "2026-11-21T12:00:01Z"},
        {**entry, "manager": "b", "operation": UPDATE, "time": "2026-11-21T12:00:02Z"},
        {**entry, "manager": "a", "operation": UPDATE, "time": "2026-11-21T12:00:02Z"},
        {**entry, "manager": "z", "operation": APPLY, "time": "2026-11-21T12:00:09Z"},
        {**entry, "manager": "y", "operation": APPLY},
    ]
    written = write_managers(read_managers(entries))
    assert [e["manager"] for e in written] == ["y", "z", "c", "a", "b"]
    assert read_managers(written) == read_managers(entries)


@given(data=st.dictionaries(st.sampled_from("abxy"), st.sampled_from("12")))
def test_each_changed_field_has_exactly_its_writer(data):
    live = applied(None, config_map({"x": "1", "y": "1"}), "m1")
    found = updated(live, changed(live, data=data), "u")
    owned = {who.name: {path[1] for path in o.fields} for who, o in managers_of(found).items()}
    kept = {f"f:{key}" for key, value in data.items() if live["data"].get(key) == value}
    assert owned.get("m1", set()) == kept
    assert owned.get("u", set()) == {f"f:{key}" for key in data} - kept
