"""Label and field selectors, as a real kube-apiserver 1.36 reads them."""

import pytest

from pocketkube.errors import ApiError
from pocketkube.matching.selectors import (
    EVERYTHING,
    NOTHING,
    parse_labels,
    selector_of,
)
from pocketkube.server.selecting import FieldTerm, field_selector, parse_fields


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a==b", {"a": "b"}, True),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("a", {"b": ""}, False),
        ("!a", {}, True),
        ("!a", {"a": ""}, False),
        (" a in ( x , y ) ", {"a": "y"}, True),
        ("a in (x,y)", {"a": "z"}, False),
        ("a in (x,y)", {}, False),
        ("a in (,x)", {"a": ""}, True),
        ("a notin (x,y)", {"a": "z"}, True),
        ("a notin (x,y)", {}, True),
        ("a notin (x,y)", {"a": "x"}, False),
        ("a notin ()", {"a": ""}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "4"}, True),
        ("a<5", {"a": "four"}, False),
        ("a<5", {}, False),
        ("a=b,c!=d,e in (x,y),!f,g notin (z)", {"a": "b", "e": "y", "g": "q"}, True),
        ("a=b,c!=d,e in (x,y),!f,g notin (z)", {"a": "b", "e": "y", "f": ""}, False),
        ("a=b,a=c", {"a": "b"}, False),
        ("example.com/a=b", {"example.com/a": "b"}, True),
    ],
)
def test_a_label_selector_selects(text, labels, selected):
    assert parse_labels(text).matches(labels) is selected


@pytest.mark.parametrize(
    "text",
    ["a in (x,y", "a in x", "a b", "a=b c", "=x", "!", "!a=b", "a=b,", ",a", "a===b", "a>x",
     "a notin (x=y)",
     "a in", "a, ,b", "()", "-a=b", "a/b/c=1", "/x=1", "a=-b", "a in (-x,+y)"],
)  # fmt: skip
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(text):
    with pytest.raises(ApiError) as raised:
        parse_labels(text)
    assert raised.value.code == 400
    assert raised.value.message.startswith("unable to parse requirement: ")


def test_a_label_selector_object_selects_by_labels_and_expressions_together():
    selector = selector_of(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "zone", "operator": "Exists"},
                {"key": "kind", "operator": "NotIn", "values": ["x"]},
            ],
        }
    )
    assert selector.matches({"app": "web", "tier": "b", "zone": ""})
    assert not selector.matches({"app": "web", "tier": "b", "zone": "", "old": ""})
    assert not selector.matches({"app": "web", "tier": "c", "zone": ""})
    assert not selector.matches({"app": "web", "tier": "b"})
    assert not selector.matches({"app": "web", "tier": "b", "zone": "", "kind": "x"})


def test_an_empty_label_selector_selects_all_and_a_null_one_nothing():
    assert selector_of({}).matches({})
    assert selector_of(None) is NOTHING
    assert not NOTHING.matches({"nothing": "x"})
    assert parse_labels("") is EVERYTHING


def test_an_operator_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match='"Like" is not a valid label selector operator'):
        selector_of({"matchExpressions": [{"key": "a", "operator": "Like"}]})


def test_field_selectors_are_read():
    assert parse_fields("a=b,c!=d,e==f,,") == (
        FieldTerm("a", "b"),
        FieldTerm("c", "d", equal=False),
        FieldTerm("e", "f"),
    )


@pytest.mark.parametrize(
    "text",
    ["metadata.name", "metadata.name=a\\x", "metadata.name=a=b", "=", "spec.foo=1,metadata.x=3"],
)
def test_a_field_selector_that_cannot_be_read_is_a_bad_request(text):
    with pytest.raises(ApiError) as raised:
        field_selector(text, {"spec.nodeName": lambda pod: pod["spec"]["nodeName"]})
    assert raised.value.code == 400


def test_a_field_selector_selects_by_the_fields_of_the_kind():
    fields = {"spec.nodeName": lambda pod: pod["spec"].get("nodeName", "")}
    pod = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "n1"}}
    assert field_selector("spec.nodeName=n1,metadata.name=a", fields).matches(pod)
    assert not field_selector("spec.nodeName!=n1", fields).matches(pod)
    assert not field_selector("spec.nodeName=", fields).matches(pod)
    assert field_selector("metadata.namespace=b", fields).matches(pod)
    assert field_selector("", fields).empty
    assert field_selector("metadata.name=a", fields).exact("metadata.name") == "a"
    assert field_selector("metadata.name!=a", fields).exact("metadata.name") is None
