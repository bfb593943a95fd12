"""Whatever a Lease says, it is read without an exception, and as a wary reader would."""

import contextlib
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.shell.kube.errors import ServerError
from quorate.shell.lease import record

ODD = [None, True, -1, 0, 2**31, 2**70, 1.5, "", "x", "\x1b[2J\n", [], [1], {}, {"a": "b"}]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"]


@pytest.mark.parametrize(
    ("found", "following"),
    [(None, 1), (0, 1), (41, 42), (-7, 1), ("41", 1), (True, 1), ([], 1), (2**70, 2**31 - 1)],
)
def test_transitions_of_any_type_give_a_number_that_the_api_takes(found, following):
    assert record.next_transition({"leaseTransitions": found}) == following


@pytest.mark.parametrize("found", [None, True, 0, -3, "5", [], {}, math.inf, 10**400])
def test_a_duration_that_is_none_is_ours(found):
    assert record.duration_s_of({"leaseDurationSeconds": found}, 15) == 15


@pytest.mark.parametrize(
    ("found", "shown"),
    [(None, ""), ("", ""), ("a", "a"), (7, "7"), (0, "0"), ([], "[]"), ("\x1b[2J", r"'\x1b[2J'")],
)
def test_a_holder_that_is_no_name_holds_all_the_same(found, shown):
    assert record.holder_of({"holderIdentity": found}) == shown
    assert not record.is_held_by({"holderIdentity": found}, "me")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"spec":{}}', b"[" * 9000])
def test_what_is_no_lease_is_refused_as_a_failure_of_the_server(body):
    with pytest.raises(ServerError, match="the answer is no Lease"):
        record.decoded(body)


@pytest.mark.parametrize("found", ODD)
def test_a_journal_is_kept_beside_whatever_annotations_there_are(found):
    lease = {"metadata": {"resourceVersion": "1", "annotations": found}}
    assert record.journal_of(lease) == ""
    assert record.journal_of(record.with_journal(lease, "ours")) == "ours"


@pytest.mark.parametrize("found", ODD)
def test_scheduler_names_are_kept_beside_whatever_annotations_there_are(found):
    lease = {"metadata": {"resourceVersion": "1", "annotations": found}}
    assert record.scheduler_names_of(lease) == ()
    named = record.with_scheduler_names(record.with_journal(lease, "ours"), ("quorate", "a.b"))
    assert record.scheduler_names_of(named) == ("quorate", "a.b")
    assert record.journal_of(named) == "ours"


@pytest.mark.parametrize(
    ("found", "names"),
    [
        *((odd, ()) for odd in ODD if not isinstance(odd, str)),
        ("", ()),
        ("quorate,volcano", ("quorate", "volcano")),
        (",b,, a ,", ("b", "a")),
        ("\x1b[2J,a", ("a",)),
        ("a" * 253 + "," + "b" * 254, ("a" * 253,)),
        (",".join(f"s{n}" for n in range(10_000)), tuple(f"s{n}" for n in range(200))),
    ],
)
def test_scheduler_names_of_any_text_are_names_and_not_too_many(found, names):
    """Others may write our Lease: what cannot be a name in it is left out."""
    lease = {"metadata": {"annotations": {"quorate.dev/scheduler-names": found}}}
    assert record.scheduler_names_of(lease) == names


def test_no_configuration_makes_the_lease_too_large():
    """The API takes 256 KiB of annotations, the journal's too; a leader has to get its Lease."""
    lease = record.with_scheduler_names({}, tuple(f"{n:0253d}" for n in range(2000)))
    assert len(record.encoded(lease)) < 64 << 10
    assert len(record.scheduler_names_of(lease)) == 200


@given(JSON, JSON, st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_nothing_that_can_be_in_a_lease_raises(spec, annotations, fields):
    for one in (spec, fields):
        metadata = {"resourceVersion": "1", "annotations": annotations}
        lease = record.decoded(msgspec.json.encode({"metadata": metadata, "spec": one}))
        found = record.spec_of(lease)
        assert record.holder_of(found).isprintable()
        assert 1 <= record.next_transition(found) < 2**31
        assert 0.0 < record.duration_s_of(found, 15) < math.inf
        named = record.with_scheduler_names(lease, ("quorate",))
        written = record.decoded(record.encoded(record.with_journal(named, "ours")))
        assert record.journal_of(written) == "ours"
        assert record.scheduler_names_of(written) == ("quorate",)


@given(st.binary(max_size=60))
def test_no_answer_of_any_bytes_raises_anything_else(body):
    with contextlib.suppress(ServerError):
        record.decoded(body)
