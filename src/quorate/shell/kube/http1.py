"""HTTP/1.1 responses from bytes, without I/O. In: bytes, split anywhere. Out: whole responses.

Used by ``fast`` for the answers to small writes. It is strict where leniency is a risk: a response
that leaves any doubt about where it ends is malformed, because on a connection that is used again
the next request would get the rest of it as its answer (RFC 9112, sections 2.2, 5 and 6).
"""

import re
from collections.abc import Iterator

import msgspec

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 256 * 1024 * 1024
_CHUNK_LINE_BYTES_MAX = 1024

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\x00\r\n]*)?")
_FIELD_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00\r\n]*?)[ \t]*")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\x00\r\n]*)?")


class MalformedResponse(Exception):  # noqa: N818
    """What came is not a response, or none whose end is certain. The connection must be closed."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One whole response."""

    status: int
    body: bytes
    retry_after: bytes | None
    keep_alive: bool


class _Head(msgspec.Struct, kw_only=True):
    status: int
    keep_alive: bool
    length_bytes: int | None = None
    is_chunked: bool = False
    retry_after: bytes | None = None


class ResponseParser:
    """Collects bytes until responses are whole. After a ``MalformedResponse`` it is of no use."""

    __slots__ = ("_buffer", "_chunks", "_head", "_in_trailer", "_searched_bytes")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks = bytearray()
        self._in_trailer = False
        self._searched_bytes = 0  # of the buffer, in vain: not searched again, so cost is linear

    @property
    def is_clean(self) -> bool:
        """Whether the bytes so far end exactly where a response ends."""
        return self._head is None and not self._buffer

    def feed(self, data: bytes) -> list[Response]:
        """Take the next bytes; return the responses which they complete, often none or one."""
        self._buffer += data
        return list(self._complete_responses())

    def _complete_responses(self) -> Iterator[Response]:
        while True:
            if self._head is None:
                head_bytes = self._take_until(b"\r\n\r\n", HEAD_BYTES_MAX)
                if head_bytes is None:
                    return
                head = _parse_head(head_bytes)
                if head.status < 200:  # 100 Continue, 103 Early Hints: the real answer follows
                    continue
                self._head = head
            body = self._take_body(self._head)
            if body is None:
                return
            head, self._head = self._head, None
            yield Response(
                status=head.status,
                body=body,
                retry_after=head.retry_after,
                keep_alive=head.keep_alive,
            )

    def _take_body(self, head: _Head) -> bytes | None:
        if not head.is_chunked:
            return self._take(head.length_bytes or 0)
        while not self._in_trailer:
            if not self._take_chunk():
                return None
        while (line := self._take_until(b"\r\n", HEAD_BYTES_MAX)) is not None:
            if not line:
                body, self._chunks, self._in_trailer = bytes(self._chunks), bytearray(), False
                return body
            if not _FIELD_LINE.fullmatch(line):
                raise MalformedResponse(f"trailer line {line[:80]!r}")
        return None

    def _take_chunk(self) -> bool:
        """Move one chunk out of the buffer, if all of it is there; the last one is empty."""
        line_end = self._buffer.find(b"\r\n", 0, _CHUNK_LINE_BYTES_MAX)
        if line_end < 0:
            if len(self._buffer) >= _CHUNK_LINE_BYTES_MAX:
                raise MalformedResponse("the line with a chunk's size is too long")
            return False
        line = bytes(self._buffer[:line_end])
        match = _CHUNK_LINE.fullmatch(line)
        if match is None:
            raise MalformedResponse(f"chunk size {line[:80]!r}")
        size_bytes = int(match[1], 16)
        if size_bytes == 0:
            del self._buffer[: line_end + 2]
            self._in_trailer = True
            return True
        if len(self._chunks) + size_bytes > BODY_BYTES_MAX:
            raise MalformedResponse(f"body of more than {BODY_BYTES_MAX} bytes")
        start, end = line_end + 2, line_end + 2 + size_bytes
        if len(self._buffer) < end + 2:
            return False
        if self._buffer[end : end + 2] != b"\r\n":
            raise MalformedResponse("a chunk is longer than it said")
        self._chunks += self._buffer[start:end]
        del self._buffer[: end + 2]
        return True

    def _take_until(self, mark: bytes, bytes_max: int) -> bytes | None:
        """Take what stands before ``mark``, and the mark; None if it is not there yet."""
        end = self._buffer.find(mark, max(0, self._searched_bytes - len(mark) + 1))
        if (end if end >= 0 else len(self._buffer)) > bytes_max:
            raise MalformedResponse(f"more than {bytes_max} bytes of headers")
        if end < 0:
            self._searched_bytes = len(self._buffer)
            return None
        self._searched_bytes = 0
        taken = bytes(self._buffer[:end])
        del self._buffer[: end + len(mark)]
        return taken

    def _take(self, size_bytes: int) -> bytes | None:
        if len(self._buffer) < size_bytes:
            return None
        taken = bytes(self._buffer[:size_bytes])
        del self._buffer[:size_bytes]
        return taken


def _parse_head(head: bytes) -> _Head:
    """Read the status line and the few headers that matter; check all of them."""
    status_line, *lines = head.split(b"\r\n")
    match = _STATUS_LINE.fullmatch(status_line)
    if match is None:
        raise MalformedResponse(f"status line {status_line[:80]!r}")
    parsed = _Head(status=int(match[2]), keep_alive=match[1] == b"1")
    for line in lines:
        field = _FIELD_LINE.fullmatch(line)
        if field is None:
            raise MalformedResponse(f"header line {line[:80]!r}")
        _apply_field(parsed, field[1].lower(), field[2])
    _settle_length(parsed)
    return parsed


def _apply_field(head: _Head, name: bytes, value: bytes) -> None:
    if name == b"content-length":
        if head.length_bytes is not None or not _LENGTH.fullmatch(value):
            raise MalformedResponse(f"Content-Length {value[:80]!r}")
        head.length_bytes = int(value)
    elif name == b"transfer-encoding":
        if head.is_chunked or value.lower() != b"chunked":
            raise MalformedResponse(f"Transfer-Encoding {value[:80]!r}")
        head.is_chunked = True
    elif name == b"content-encoding" and value.lower() != b"identity":
        raise MalformedResponse(f"Content-Encoding {value[:80]!r}, which we did not offer")
    elif name == b"connection" and b"close" in value.lower():
        head.keep_alive = False
    elif name == b"retry-after":
        head.retry_after = value


def _settle_length(head: _Head) -> None:
    if head.status == 101:
        raise MalformedResponse("101 Switching Protocols, for which we did not ask")
    if head.length_bytes is not None and head.is_chunked:
        raise MalformedResponse("both Content-Length and Transfer-Encoding")
    if head.status < 200 or head.status in {204, 304}:
        head.length_bytes, head.is_chunked = 0, False  # no body, whatever the headers say
    elif not head.is_chunked and head.length_bytes is None:
        raise MalformedResponse("neither Content-Length nor chunks: no way to see it was cut")
    if (head.length_bytes or 0) > BODY_BYTES_MAX:
        raise MalformedResponse(f"body of {head.length_bytes} bytes")
