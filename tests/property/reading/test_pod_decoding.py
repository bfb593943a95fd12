"""A pod with anything anywhere is a pod, a pod with a defect, or Malformed: never a crash."""

import json

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model import Pod
from quorate.core.model.changes import PodChanged
from quorate.dialects import Malformed
from quorate.shell.watch.nodes import decode_node
from quorate.shell.watch.objects import identity, watched_kinds
from quorate.shell.watch.pod.decoding import PodDecoder
from tests.property.reading.full_objects import GANG, NODE, POD, paths, with_value

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(
        [
            "",
            "-1",
            "\ud800",
            "a\ud800b",
            "1e999",
            "9" * 60,
            "2024-13-01T00:00:00Z",
            "0001-01-01T00:00:00+23:59",
        ]
    )
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def broken(original):
    return st.lists(
        st.tuples(st.sampled_from(list(paths(original))), anything), min_size=1, max_size=3
    ).map(lambda edits: _apply(original, edits))


def _apply(original, edits):
    original = json.loads(json.dumps(original))  # RESOURCES and its like are shared: unshare them
    for path, value in sorted(edits, key=lambda edit: -len(edit[0])):
        original = with_value(original, path, value)
    return json.dumps(original).encode()


DECODER = PodDecoder(frozenset({"quorate"}))


def outcome(decode, raw):
    try:
        return decode(raw)
    except Malformed as error:
        return str(error)


@given(broken(POD))
def test_a_pod_with_anything_anywhere_is_a_value_or_malformed(raw):
    change = outcome(DECODER.decode, raw)
    if isinstance(change, str):
        return
    pod = change.pod
    assert isinstance(change, PodChanged)
    assert isinstance(pod, Pod)
    assert pod.uid
    assert pod.name
    assert pod.namespace
    assert bool(pod.defect) == bool(pod.defect_reason)
    assert all(0 < amount <= 2**53 for _, amount in pod.spec.requests)
    hash(pod)


@given(broken(POD))
def test_decoding_does_not_depend_on_what_was_decoded_before(raw):
    fresh = PodDecoder(frozenset({"quorate"}))
    assert outcome(DECODER.decode, raw) == outcome(fresh.decode, raw)


def test_the_whole_example_is_sound():
    assert DECODER.decode(json.dumps(POD).encode()).pod.defect == ""


@given(broken(NODE))
def test_a_node_with_anything_anywhere_is_a_value_or_malformed(raw):
    change = outcome(decode_node, raw)
    if not isinstance(change, str):
        assert change.node.name
        assert all(0 <= amount <= 2**53 for _, amount in change.node.allocatable)


@given(
    broken(GANG) | broken(POD) | st.binary(max_size=60),
    st.sampled_from(list(watched_kinds(frozenset({"quorate"})).values())),
)
def test_every_kind_survives_every_object(raw, kind):
    for decode in (kind.changed, lambda raw: kind.gone(identity(raw))):
        try:
            decode(raw)
        except Malformed as error:
            kind.unreadable(error)
