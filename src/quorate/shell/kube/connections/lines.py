"""Lines of a stream. In: chunks of bytes, cut anywhere. Out: whole lines, each of bounded length.

Called by ``reflector``: each line of a watch is an event.
"""

from typing import Final

LINE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The longest event: ten times what kube-apiserver takes as the body of a request."""


class LineSplitter:
    """Lines from chunks of bytes that were cut anywhere; the time is linear in the bytes."""

    __slots__ = ("_parts", "_parts_bytes", "_skips", "skipped")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that is not whole yet
        self._parts_bytes = 0
        self._skips = False  # to the end of this line: too much of it was there already
        self.skipped = 0
        """Lines of more than ``LINE_BYTES_MAX``, none of which was returned."""

    def split(self, chunk: bytes) -> list[bytes]:
        """Return the lines that ``chunk`` completes, without their ends and without empty ones."""
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        if self._skips:
            self._skips = False
            self._parts = []
            _, _, whole = whole.partition(b"\n")
        self._parts.append(whole)
        lines = b"".join(self._parts).split(b"\n")
        self._parts, self._parts_bytes = [], 0
        self._keep(rest)
        return [line for line in lines if line]

    def _keep(self, part: bytes) -> None:
        """Keep the beginning of a line, unless it is too long already."""
        if self._skips:
            return
        self._parts.append(part)
        self._parts_bytes += len(part)
        if self._parts_bytes > LINE_BYTES_MAX:
            self._parts, self._parts_bytes = [], 0
            self._skips = True
            self.skipped += 1
