"""Bodies of Go clients: every field is read as Go wrote it, and rubbish is refused."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from embedded.tests.unit.schema.record_protobuf import samples
from pocketkube.errors import ApiError
from pocketkube.schema.binary.protobuf import CONTENT_TYPE, MAGIC, decoded
from pocketkube.schema.document import Document
from pocketkube.schema.roundtrip import filled
from pocketkube.server.options import deleting_of
from pocketkube.server.writing.bodies import object_of

DOCUMENT = Document.load()
SAMPLES = {
    f"{obj['apiVersion']}/{obj['kind']}": (obj, packed)
    for obj, packed in samples()
    if obj["kind"] != "CustomResourceDefinition"  # clients send those as JSON
}


def message(*fields: tuple[int, bytes | int]) -> bytes:
    """Encode fields; texts and messages are shorter than 128 bytes, numbers less than 128."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(bytes([number << 3, value]))
        else:
            parts.append(bytes([number << 3 | 2, len(value)]) + value)
    return b"".join(parts)


def body(kind: str, content: bytes, api_version: str = "v1") -> bytes:
    type_meta = message((1, api_version.encode()), (2, kind.encode()))
    return MAGIC + message((1, type_meta), (2, content))


def refusal(raw: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        decoded(raw, DOCUMENT)
    return caught.value


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_field_of_a_kind_is_read_as_go_wrote_it(kind):
    obj, packed = SAMPLES[kind]
    group, _, version = obj["apiVersion"].rpartition("/")
    shape = DOCUMENT.shape(DOCUMENT.schema_name(group, version, obj["kind"]))
    # What Go writes although it was not given is added by whoever stores the object.
    assert filled(decoded(packed, DOCUMENT), shape) == obj


def test_only_the_last_of_two_values_counts_and_empty_ones_are_as_if_not_given():
    metadata = message((1, b"first"), (1, b"second"), (3, b"gone"), (3, b""))
    assert decoded(body("ConfigMap", message((1, metadata))), DOCUMENT) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "second"},
    }


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "expected prefix [107 56 115 0]"),
        (b'{"kind":"Pod"}', "expected prefix [107 56 115 0]"),
        (MAGIC, "'Kind' is missing"),
        (MAGIC + message((1, message((2, b"Pod")))), "'apiVersion' is missing"),
        (body("Pod", b"\x0a\x05ab"), "unexpected EOF"),
        (body("Pod", b"\x0a"), "unexpected EOF"),
        (body("Pod", b"\x08\x01"), "wrong wireType = 0 for field metadata"),
        (body("Pod", b"\x0b"), "illegal wireType 3"),
        (body("Pod", b"\x02\x00"), "illegal tag 0"),
        (body("Pod", b"\x08" + b"\xff" * 10), "integer overflow"),
        (body("Event", message((6, b"\x08" + b"\xff" * 8 + b"\x01"))), "no time"),
        (
            body("ControllerRevision", message((2, message((1, b"{")))), "apps/v1"),
            "a field holds no valid JSON",
        ),
    ],
)
def test_what_is_no_protobuf_is_refused_in_words(raw, words):
    error = refusal(raw)
    assert error.code == 400
    assert words in error.message


def test_a_kind_that_is_not_built_in_has_no_protobuf():
    assert refusal(body("PodGroup", b"", "scheduling.x-k8s.io/v1alpha1")).code == 415


@given(st.sampled_from(sorted(SAMPLES)), st.randoms(use_true_random=False))
def test_damaged_bodies_are_an_object_or_an_api_error(kind, chance: random.Random):
    packed = bytearray(SAMPLES[kind][1])
    for _ in range(chance.randint(0, 3)):
        packed[chance.randrange(4, len(packed))] = chance.randrange(256)
    _object_or_api_error(bytes(packed[: chance.randint(0, len(packed))]))
    _object_or_api_error(bytes(packed))


def _object_or_api_error(raw: bytes) -> None:
    code, obj = 200, {}
    try:
        obj = decoded(raw, DOCUMENT)
    except ApiError as error:
        code = error.code
    assert code in (200, 400, 415)
    assert isinstance(obj, dict)


def test_the_server_reads_objects_and_delete_options_of_go_clients():
    raw = body("ConfigMap", message((1, message((1, b"a")))))
    obj, json = object_of(raw, CONTENT_TYPE)
    assert (obj["metadata"], json) == ({"name": "a"}, None)
    options = body("DeleteOptions", message((1, 5), (4, b"Orphan"), (5, b"All")))
    deleting = deleting_of(options, MultiDict(), CONTENT_TYPE)
    assert (deleting.grace_period_s, deleting.propagation) == (5, "Orphan")
    assert deleting.dry_run
