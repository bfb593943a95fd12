"""The response parser: any split gives the same responses; nonsense raises and never hangs."""

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.shell.kube.connections import http1
from quorate.shell.kube.connections.http1 import (
    HEAD_BYTES_MAX,
    OBJECT_BYTES_MAX,
    MalformedResponse,
    ResponseParser,
)

SIMPLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@st.composite
def encoded_responses(draw):
    """A stream of responses, and what must be read from it."""
    stream, expected = b"", []
    for _ in range(draw(st.integers(1, 4))):
        status = draw(st.sampled_from([200, 201, 204, 404, 409, 429, 500]))
        body = draw(st.binary(max_size=200)) if status != 204 else b""
        if draw(st.booleans()):
            stream += b"HTTP/1.1 100 Continue\r\n\r\n"
        stream += b"HTTP/1.1 %d Some Reason\r\nAudit-Id: x:y \r\n" % status
        retry_after = draw(st.sampled_from([None, b"7"]))
        if retry_after:
            stream += b"reTry-after:\t7\r\n"
        if status == 204:
            stream += b"\r\n"
        elif draw(st.booleans()):
            stream += b"content-LENGTH: %d\r\n\r\n" % len(body) + body
        else:
            stream += b"Transfer-Encoding: chunked\r\n\r\n"
            rest = body
            while rest:
                size = draw(st.integers(1, len(rest)))
                extension = draw(st.sampled_from([b"", b";a=b"]))
                stream += b"%X" % size + extension + b"\r\n" + rest[:size] + b"\r\n"
                rest = rest[size:]
            stream += b"0\r\n" + draw(st.sampled_from([b"", b"X-Sum: 1\r\n"])) + b"\r\n"
        expected.append((status, body, retry_after))
    return stream, expected


def parse(chunks):
    parser = ResponseParser()
    found = [response for chunk in chunks for response in parser.feed(chunk)]
    return parser, [(r.status, r.body, r.retry_after) for r in found]


def split_at(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(encoded_responses(), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_of_the_stream_gives_the_same_responses(encoded, cuts):
    stream, expected = encoded
    parser, found = parse(split_at(stream, cuts))
    assert found == expected
    assert parser.is_clean


@given(encoded_responses())
def test_byte_by_byte(encoded):
    stream, expected = encoded
    assert parse([stream[i : i + 1] for i in range(len(stream))])[1] == expected


@given(encoded_responses(), st.integers(0, 10_000), st.binary(min_size=1, max_size=3), st.data())
def test_a_damaged_stream_raises_or_reads_the_same_however_it_is_split(encoded, at, junk, data):
    stream = encoded[0]
    at %= len(stream)
    damaged = stream[:at] + junk + stream[at + len(junk) :]
    cuts = data.draw(st.lists(st.integers(0, 10_000), max_size=6))
    outcomes = []
    for chunks in ([damaged], split_at(damaged, cuts)):
        parser, found, broken = ResponseParser(), [], False
        with contextlib.suppress(MalformedResponse):
            for chunk in chunks:
                broken = True
                found += parser.feed(chunk)
                broken = False
        outcomes.append((broken, None if broken else found))
    assert outcomes[0] == outcomes[1]


@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_nothing_but_malformed(data):
    with contextlib.suppress(MalformedResponse):
        ResponseParser().feed(data)


@pytest.mark.parametrize(
    "bad",
    [
        b"HTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (OBJECT_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: \x00\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"F" * 20 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * HEAD_BYTES_MAX,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * HEAD_BYTES_MAX,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: " + b"x" * HEAD_BYTES_MAX,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * HEAD_BYTES_MAX,
    ],
)
def test_doubtful_responses_are_malformed(bad):
    with pytest.raises(MalformedResponse):
        ResponseParser().feed(bad)


def test_a_body_of_many_chunks_is_bounded_and_the_lines_between_them_are_no_head(monkeypatch):
    monkeypatch.setattr(http1, "OBJECT_BYTES_MAX", 20 * HEAD_BYTES_MAX)
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for _ in range(20):
        assert parser.feed(chunk) == []
    with pytest.raises(MalformedResponse, match="body of more than"):
        parser.feed(chunk)


def test_many_small_chunks_are_no_head():
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(HEAD_BYTES_MAX):
        assert parser.feed(b"1\r\nx\r\n") == []
    [response] = parser.feed(b"0\r\n\r\n")
    assert response.body == b"x" * HEAD_BYTES_MAX


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.1 200\r\nConnection: Close\r\n", False),
        (b"HTTP/1.1 200 \r\nConnection: keep-alive\r\n", True),
    ],
)
def test_whether_the_connection_can_be_used_again(head, keep_alive):
    [response] = ResponseParser().feed(head + b"Content-Length: 0\r\n\r\n")
    assert response.keep_alive is keep_alive
    assert response.body == b""


def test_an_unfinished_response_is_not_clean():
    parser = ResponseParser()
    assert parser.is_clean
    assert parser.feed(SIMPLE[:-1]) == []
    assert not parser.is_clean
    assert parser.feed(b"i")[0].body == b"hi"
    assert parser.is_clean
