"""The quick check says yes only where the slow walk has nothing to say and nothing to change."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketkube.schema.check import findings
from pocketkube.schema.document import Document
from pocketkube.schema.fast import FastCheck
from pocketkube.schema.roundtrip import pruned
from pocketkube.schema.shape import Shape, Type

RESOURCES = {resource.kind: resource for resource in Document.load().resources()}
KINDS = ("Pod", "Deployment", "Node", "Secret", "Lease", "Role", "PodGroup", "Event")
CHECKS = {kind: FastCheck(RESOURCES[kind].shape) for kind in RESOURCES}

TEXTS = st.sampled_from(["", "a", "5", "1Gi", "YQ==", "YR==", "2024-01-01T00:00:00Z"])
TIMES = ["2024-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01T00:00:00.000000Z", "", "\n"]
QUANTITIES = ["1", "0", "999", "1000", "1001", "1000m", "1024Ki", "4Gi", "1n", "2k", "05", "x", ""]
NUMBERS = [0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, 1.5, 1.0]
ANYTHING = st.one_of(
    st.none(), st.booleans(), TEXTS, st.sampled_from(NUMBERS), st.just([]), st.just({}),
    st.just([None]), st.just({"a": None}), st.just({"a": "b"}), st.just(["a"]),
)  # fmt: skip


def fitting(shape: Shape) -> st.SearchStrategy[Any]:
    match shape.type:
        case Type.STRING if shape.format == "date-time":
            return st.sampled_from(TIMES)
        case Type.STRING:
            return TEXTS
        case Type.INTEGER | Type.NUMBER:
            return st.sampled_from(NUMBERS)
        case Type.BOOLEAN:
            return st.booleans()
        case Type.QUANTITY:
            return st.sampled_from([*QUANTITIES, 1, 1.5])
        case Type.INT_OR_STRING:
            return st.sampled_from(["a", "", 0, 5, 2**31])
    return ANYTHING


@st.composite
def values(draw: st.DrawFn, shape: Shape, depth: int = 5) -> Any:
    if depth == 0 or draw(st.integers(0, 29)) == 0:
        return draw(ANYTHING)
    if shape.type is Type.OBJECT and shape.fields:
        names = draw(st.lists(st.sampled_from(sorted(shape.fields)), max_size=4, unique=True))
        made = {name: draw(values(shape.fields[name], depth - 1)) for name in names}
        return made | ({"unknown": 1} if draw(st.integers(0, 39)) == 0 else {})
    if shape.type is Type.LIST and shape.item is not None:
        return [draw(values(shape.item, depth - 1)) for _ in range(draw(st.integers(0, 2)))]
    if shape.type is Type.MAP and shape.item is not None:
        return {
            key: draw(values(shape.item, depth - 1)) for key in draw(st.sets(TEXTS, max_size=2))
        }
    return draw(fitting(shape))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_is_accepted_has_no_findings_and_stays_as_it_is(data):
    kind = data.draw(st.sampled_from(KINDS))
    shape = RESOURCES[kind].shape
    value = data.draw(values(shape))
    if CHECKS[kind].accepts(json.dumps(value).encode()):
        found = findings(value, shape)
        assert not found.mismatches
        assert not found.unknown
        assert pruned(value, shape) == value


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "creationTimestamp": "2024-01-31T00:00:00Z"},
    "spec": {
        "automountServiceAccountToken": False,
        "hostNetwork": True,
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {
                "name": "c",
                "resources": {"limits": {"cpu": "1500m", "memory": "16Gi", "x.com/y": "8"}},
                "livenessProbe": {"httpGet": {"port": "http"}, "tcpSocket": {"port": 80}},
            }
        ],
    },
}


def test_an_ordinary_pod_is_accepted():
    assert CHECKS["Pod"].accepts(json.dumps(POD).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"spec":null}',
        b'{"Spec":{}}',
        b'{"spec":{"containers":[]}}',
        b'{"spec":{"hostNetwork":false}}',
        b'{"spec":{"priorityClassName":""}}',
        b'{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z\\n"}}',
    ],
)
def test_what_needs_a_closer_look_is_not_accepted(body):
    assert not CHECKS["Pod"].accepts(body)


def test_a_type_that_contains_itself_needs_a_closer_look():
    body = {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"type": "object", "x": 1}}}]}}
    check = CHECKS["CustomResourceDefinition"]
    assert not check.accepts(json.dumps(body).encode())
    assert check.accepts(b'{"spec":{"group":"a.b","scope":"Cluster"}}')


def test_every_resource_has_a_quick_check():
    for kind, check in CHECKS.items():
        assert (
            check.accepts(b'{"metadata":{"name":"a"}}')
            or "metadata" not in RESOURCES[kind].shape.fields
        )
