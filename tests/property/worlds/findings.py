"""What is found wrong in a world: its class, its text, and how classes of errors are named."""

from __future__ import annotations

import re
import traceback


class FindingError(AssertionError):
    """Something that must not be. ``kind`` is the class of such findings, without names."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind
        self.text = text


def expect(holds: object, kind: str, text: str = "") -> None:
    """Raise a finding unless it holds."""
    if not holds:
        raise FindingError(kind, text)


def kind_of(error: BaseException) -> str:
    """Return the class of an error: of an exception of the core its type, place and text."""
    if isinstance(error, FindingError):
        return error.kind
    frames = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in frames if "/quorate/" in frame.filename] or frames
    where = inner[-1]
    place = f"{where.filename.rpartition('/quorate/')[2]}:{where.name}"
    return f"{type(error).__name__} in {place}: {without_names(str(error))[:70]}".rstrip(": ")


def without_names(text: str) -> str:
    """Return a text without the numbers that differ from world to world."""
    return re.sub(r"\d+", "N", text)
