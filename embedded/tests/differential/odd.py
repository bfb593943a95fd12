"""Odd and bad versions of good objects: a value replaced, removed, doubled or added somewhere."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from embedded.tests.differential.playing import DELETE, Pointer

_TEXTS = ["", "a", "Not_Valid!", "UPPER", "1", "100%", "0%", "1Gi", "-5m", "a/b", "x" * 64, "a.b-c",
          "True", "*", "2020-01-01T00:00:00Z", "-a", "x" * 254]  # fmt: skip
_NUMBERS = [0, 1, -1, 2, 70, 65536, 2**31, 2**40, 1.5]
_OTHERS = [None, True, False, [], {}, [None], {"a": "b"}, {"a": 1}, ["a"], ["a", "a"], [{}]]
VALUES = [*_TEXTS, *_NUMBERS, *_OTHERS]

Change = tuple[Pointer, Any]


def pointers(value: Any, at: Pointer = ()) -> Iterator[Pointer]:
    """Give a pointer to each value inside an object, itself excepted."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*at, key)
        yield from pointers(inner, (*at, key))


def found_at(value: Any, pointer: Pointer) -> Any:
    """Return what a pointer points to."""
    for key in pointer:
        value = value[key]
    return value


def _alike(value: Any) -> list[Any]:
    """Return odd values of the same JSON type, which are refused for what they say if at all."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return list(_TEXTS)
    if isinstance(value, int | float):
        return list(_NUMBERS)
    return [type(value)()] if isinstance(value, dict | list) else [None]


@st.composite
def change_of(draw: st.DrawFn, obj: dict[str, Any]) -> Change:
    """Draw one change of an object: where, and the value that comes there."""
    places = list(pointers({k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}))
    place = draw(st.sampled_from(places))
    value = found_at(obj, place)
    how = draw(st.sampled_from(["alike", "alike", "delete", "any", "unknown", "double"]))
    if how == "alike":
        return place, draw(st.sampled_from(_alike(value)))
    if how == "delete":
        return place, DELETE
    if how == "unknown" and isinstance(value, dict):
        return (*place, "unknownField"), draw(st.sampled_from(["a", 1, None, {}]))
    if how == "double" and isinstance(value, list) and value:
        return place, [*value, draw(st.sampled_from(value))]
    return place, draw(st.sampled_from(VALUES))


METADATA: list[Change] = [
    (("metadata", "finalizers"), ["example.com/hold"]),
    (("metadata", "finalizers"), ["nodomain"]),
    (("metadata", "labels", "extra"), "yes"),
    (("metadata", "labels", "-bad"), "yes"),
    (("metadata", "labels", "app"), "not ok"),
    (("metadata", "annotations"), {"a": "b"}),
    (("metadata", "annotations"), {"a b": "c"}),
    (("metadata", "annotations"), None),
    (("metadata", "name"), "Not_Valid"),
    (("metadata", "name"), ""),
    (("metadata", "name"), DELETE),
    (("metadata", "namespace"), "elsewhere"),
    (("metadata", "namespace"), "default"),
    (("metadata", "uid"), "11111111-0000-0000-0000-000000000000"),
    (("metadata", "resourceVersion"), "1"),
    (("metadata", "resourceVersion"), "abc"),
    (("metadata", "resourceVersion"), DELETE),
    (("metadata", "resourceVersion"), "0"),
    (("metadata", "generation"), 7),
    (("metadata", "creationTimestamp"), "2020-01-01T00:00:00Z"),
    (("metadata", "creationTimestamp"), None),
    (("metadata", "deletionTimestamp"), "2020-01-01T00:00:00Z"),
    (("metadata", "deletionGracePeriodSeconds"), 3),
    (("metadata", "selfLink"), "/x"),
    (("metadata", "generateName"), "drawn-"),
    (("metadata", "ownerReferences"), [{"apiVersion": "v1", "kind": "Pod", "name": "a",
                                        "uid": "11111111-0000-0000-0000-000000000000"}]),
    (("metadata", "ownerReferences"), [{"apiVersion": "v1", "kind": "Pod", "name": "a"}]),
    (("metadata", "ownerReferences"), [{"apiVersion": "v1", "kind": "Pod", "name": n,
                                        "controller": True, "uid": "u" + n} for n in "ab"]),
    (("metadata", "managedFields"), []),
    (("metadata", "unknownField"), 1),
    (("metadata",), None),
    (("metadata",), []),
    (("apiVersion",), "v9"),
    (("apiVersion",), "apps/v1"),
    (("kind",), "Nothing"),
    (("kind",), 5),
    (("spec",), None),
    (("spec",), DELETE),
    (("spec",), []),
    (("status",), {}),
    (("status",), None),
    (("status",), {"phase": "Running"}),
    (("unknownField",), "a"),
    ((), []),
    ((), None),
    ((), "text"),
    ((), {}),
]  # fmt: skip
"""Changes that mean something to objects of every kind."""


def changes(obj: dict[str, Any]) -> st.SearchStrategy[list[Change]]:
    """Draw none, one or two changes of an object."""
    one = st.one_of(change_of(obj), change_of(obj), st.sampled_from(METADATA))
    return st.one_of(st.just([]), st.lists(one, min_size=1, max_size=1), st.lists(one, max_size=2))
