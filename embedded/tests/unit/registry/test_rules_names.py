import pytest

from embedded.tests.unit.registry.rules_world import KINDS
from pocketkube import names
from pocketkube.errors import Cause
from pocketkube.names import generated
from pocketkube.registry.metadata import metadata_causes, metadata_update_causes


@pytest.mark.parametrize("name", ["a", "a.b", "1", "a-b.c-1", "a" * 253])
def test_a_good_subdomain_has_no_faults(name):
    assert names.dns_subdomain(name) == ()


@pytest.mark.parametrize("name", ["", "A", "a_b", "a..b", ".a", "a-", "a" * 254, "a\n", "ä"])
def test_a_bad_subdomain_has_faults(name):
    assert names.dns_subdomain(name)


def test_a_label_with_dots_is_told_so():
    assert names.dns_label("a.b") == ("must not contain dots",)


@pytest.mark.parametrize("key", ["a", "A_b.c-d", "example.com/A", "a" * 63, "b.c/" + "a" * 63])
def test_a_good_label_key_has_no_faults(key):
    assert names.label_key(key) == ()


@pytest.mark.parametrize("key", ["", "a b", "/a", "a/", "A.b/c", "a/b/c", "-a", "a" * 64])
def test_a_bad_label_key_has_faults(key):
    assert names.label_key(key)


@pytest.mark.parametrize(("value", "good"), [("", True), ("a_B.c", True), ("a b", False)])
def test_label_values_may_be_empty_but_not_odd(value, good):
    assert (names.label_value(value) == ()) is good


@pytest.mark.parametrize("name", ["a:b", "A B", "...", "system:node"])
def test_a_path_segment_may_be_nearly_anything(name):
    assert names.path_segment(name) == ()


@pytest.mark.parametrize("name", [".", "..", "a/b", "a%b"])
def test_a_path_segment_fits_into_a_url(name):
    assert names.path_segment(name)


def test_a_generated_name_has_at_most_63_characters():
    assert generated("base-", "bcdfg") == "base-bcdfg"
    assert generated("x" * 100, "bcdfg") == "x" * 58 + "bcdfg"


def meta_of(**metadata) -> dict:
    return {"metadata": {"name": "a", "namespace": "rules", **metadata}}


def test_annotations_may_have_256_kib_together():
    fits = {"a": "x" * (names.ANNOTATIONS_BYTES_MAX - 2), "b": ""}
    pod = KINDS["Pod"]
    assert metadata_causes(meta_of(annotations=fits), pod, "dns-subdomain") == []
    found = metadata_causes(meta_of(annotations={**fits, "bb": ""}), pod, "dns-subdomain")
    text = "Too long: may not be more than 262144 bytes"
    assert found == [Cause("FieldValueTooLong", text, "metadata.annotations")]


def test_annotations_are_measured_in_bytes():
    half = {"a": "ä" * (names.ANNOTATIONS_BYTES_MAX // 2)}
    found = metadata_causes(meta_of(annotations=half), KINDS["Pod"], "dns-subdomain")
    assert [cause.reason for cause in found] == ["FieldValueTooLong"]


def test_an_object_of_the_cluster_has_no_namespace():
    found = metadata_causes(meta_of(), KINDS["Node"], "dns-subdomain")
    assert found == [
        Cause("FieldValueForbidden", "Forbidden: not allowed on this type", "metadata.namespace")
    ]


@pytest.mark.parametrize("field", ["uid", "name", "creationTimestamp", "deletionTimestamp"])
def test_what_identifies_an_object_never_changes(field):
    old, new = meta_of(**{field: "old"}), meta_of(**{field: "new"})
    found = metadata_update_causes(new, old)
    text = 'Invalid value: "new": field is immutable'
    assert found == [Cause("FieldValueInvalid", text, f"metadata.{field}")]


def test_an_object_that_goes_gets_no_new_finalizers():
    old = meta_of(deletionTimestamp="t", finalizers=["a/b"])
    less, more = meta_of(deletionTimestamp="t"), meta_of(deletionTimestamp="t")
    more["metadata"]["finalizers"] = ["a/b", "c/d"]
    assert metadata_update_causes(less, old) == []
    [cause] = metadata_update_causes(more, old)
    assert cause.field == "metadata.finalizers"
    assert 'found new finalizers []string{"c/d"}' in cause.message
