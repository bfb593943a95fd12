"""Foreign text made plain: what others wrote moves no cursor, ends no line and hides nothing.

In: any text of the cluster, of a file or of a server. Out: the same text, with each character that
a terminal obeys or that cannot be seen written out as Python does it. Called at the doors through
which text leaves: conditions and Events, logs, pages, answers, the command line.
"""

from __future__ import annotations

CUT = " ..."


def plain(text: str, chars_max: int = 0) -> str:
    """Return the text on one line, of at most ``chars_max`` characters; 0: as long as it is.

    Written out is all that Unicode does not count as printable: controls (C0, DEL, C1), formats
    (such as those that turn the direction of text), ends of lines and paragraphs, lone surrogates,
    and spaces that look like the common one. What is plain already comes back as it is.
    """
    if 0 < chars_max < len(text):
        text = text[: chars_max - len(CUT)] + CUT
    if text.isprintable():
        return text
    shown = "".join(char if char.isprintable() else _written_out(char) for char in text)
    return plain(shown, chars_max)


def plain_lines(text: str, chars_max: int = 0) -> str:
    """Return the text with its ends of lines, and each line plain; ``chars_max`` counts all."""
    if 0 < chars_max < len(text):
        text = text[: chars_max - len(CUT)] + CUT
    return "\n".join(plain(line) for line in text.split("\n"))


def _written_out(char: str) -> str:
    return char.encode("unicode_escape").decode()
