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


def _written_out(char: str) -> str:
    return char.encode("unicode_escape").decode()
