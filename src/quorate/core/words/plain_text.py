"""Escape text from outside, so that it cannot move a cursor, end a line or hide characters.

In: any text of the cluster, of a file or of a server. Out: the same text, with each control
character and each invisible character escaped as in Python. Called wherever text leaves: conditions
and Events, logs, pages, answers, the command line.
"""

from __future__ import annotations

CUT = " ..."


def plain(text: str, chars_max: int = 0) -> str:
    """Return the text on one line, of at most ``chars_max`` characters; 0: as long as it is.

    All characters that Unicode does not class as printable are escaped: controls (C0, DEL, C1),
    formats (such as marks of text direction), ends of lines and paragraphs, lone surrogates, and
    spaces other than the common one. Plain text is returned unchanged.
    """
    if 0 < chars_max < len(text):
        text = text[: chars_max - len(CUT)] + CUT
    if text.isprintable():
        return text
    shown = "".join(char if char.isprintable() else _written_out(char) for char in text)
    return plain(shown, chars_max)


def plain_lines(text: str, chars_max: int = 0) -> str:
    """Return the text with each line plain and line ends kept; ``chars_max`` bounds the whole."""
    if 0 < chars_max < len(text):
        text = text[: chars_max - len(CUT)] + CUT
    return "\n".join(plain(line) for line in text.split("\n"))


def plain_json(text: str) -> str:
    """Return JSON with escapes for what is not plain: it is in strings only, and stays the same."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char == "\n" or char.isprintable() else _as_utf16(char) for char in text)


def _as_utf16(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _written_out(char: str) -> str:
    return char.encode("unicode_escape").decode()
