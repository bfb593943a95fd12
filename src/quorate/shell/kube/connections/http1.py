"""HTTP/1.1 responses from bytes, without I/O. In: bytes, split anywhere. Out: whole responses.

Used by ``pool`` for the answers to small writes. httptools (llhttp, the parser of Node.js) reads;
here it is made strict where leniency is a risk: a response that leaves any doubt about where it
ends is malformed, because on a connection that is used again the next request would get the rest
of it as its answer (RFC 9112, sections 2.2, 5 and 6).
"""

import re
from typing import Final

import httptools
import msgspec

HEAD_BYTES_MAX: Final = 64 * 1024
OBJECT_BYTES_MAX: Final = 10 * 1024 * 1024
"""The most that one object may have: those of the API server have 1.5 MiB, and up to six times that
where JSON writes control characters out. So many may come at once as there are connections."""
_LENGTH = re.compile(rb"[0-9]{1,15}")
_NO_BODY: Final = frozenset({204, 304})


class MalformedResponse(Exception):  # noqa: N818
    """What came is not a response, or none whose end is certain. The connection must be closed."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One whole response."""

    status: int
    body: bytes
    retry_after: bytes | None
    keep_alive: bool


class ResponseParser:
    """Collects bytes until responses are whole. After a ``MalformedResponse`` it is of no use."""

    __slots__ = (
        "_body",
        "_head_bytes",
        "_in_body",
        "_is_chunked",
        "_length_bytes",
        "_parser",
        "_responses",
        "_retry_after",
        "is_clean",
    )

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._responses: list[Response] = []
        self._head_bytes = 0
        self.on_message_begin()
        self.is_clean = True  # the bytes so far end exactly where a response ends

    def feed(self, data: bytes) -> list[Response]:
        """Take the next bytes; return the responses which they complete, often none or one."""
        # What is no body is counted: httptools keeps a header that has no end.
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            cause = error.__context__
            raise MalformedResponse(str(cause or error)[:200]) from error
        if self._head_bytes > HEAD_BYTES_MAX:
            raise MalformedResponse(f"more than {HEAD_BYTES_MAX} bytes of headers")
        responses, self._responses = self._responses, []
        return responses

    def on_message_begin(self) -> None:
        """See httptools, as for all whose names begin with "on"."""
        self.is_clean = False
        self._in_body = False
        self._length_bytes: int | None = None
        self._is_chunked = False
        self._retry_after: bytes | None = None
        self._body = bytearray()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note what matters of one header line, or of one trailer line."""
        name = name.lower()
        if self._in_body:
            return  # of a trailer nothing counts
        if name == b"content-length":
            if self._length_bytes is not None or not _LENGTH.fullmatch(value.strip(b" \t")):
                raise MalformedResponse(f"Content-Length {value[:80]!r}")
            self._length_bytes = int(value)
        elif name == b"transfer-encoding":
            if self._is_chunked or value.strip(b" \t").lower() != b"chunked":
                raise MalformedResponse(f"Transfer-Encoding {value[:80]!r}")
            self._is_chunked = True
        elif name == b"content-encoding" and value.strip(b" \t").lower() != b"identity":
            raise MalformedResponse(f"Content-Encoding {value[:80]!r}, which we did not offer")
        elif name == b"retry-after":
            self._retry_after = value.strip(b" \t")

    def on_headers_complete(self) -> None:
        """Refuse what has no certain end."""
        self._in_body = True
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            raise MalformedResponse(f"HTTP/{self._parser.get_http_version()}")
        if status == 101:
            raise MalformedResponse("101 Switching Protocols, for which we did not ask")
        if self._length_bytes is not None and self._is_chunked:
            raise MalformedResponse("both Content-Length and Transfer-Encoding")
        if status < 200 or status in _NO_BODY:
            return
        if not self._is_chunked and self._length_bytes is None:
            raise MalformedResponse("neither Content-Length nor chunks: no way to see it was cut")
        if (self._length_bytes or 0) > OBJECT_BYTES_MAX:
            raise MalformedResponse(f"body of {self._length_bytes} bytes")

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body."""
        self._body += part
        self._head_bytes -= len(part)
        if len(self._body) > OBJECT_BYTES_MAX:
            raise MalformedResponse(f"body of more than {OBJECT_BYTES_MAX} bytes")

    def on_chunk_complete(self) -> None:
        """Begin to count anew: a body may have any number of chunks."""
        self._head_bytes = 0

    def on_message_complete(self) -> None:
        """Hand out a response; the real one follows 100 Continue and 103 Early Hints."""
        self.is_clean = True
        self._head_bytes = 0
        status = self._parser.get_status_code()
        if status >= 200:
            self._responses.append(
                Response(
                    status=status,
                    body=bytes(self._body),
                    retry_after=self._retry_after,
                    keep_alive=self._parser.should_keep_alive(),
                )
            )
