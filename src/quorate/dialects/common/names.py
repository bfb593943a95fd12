"""Names that a gang can have: those that Kubernetes would take for the object behind it.

In: the text of a label, an annotation or a field. Out: what is wrong with it, or ``""``. Called by
``dialects.resolve``: a pod that names a gang that cannot exist is told so, and makes no gang.
"""

from __future__ import annotations

import re

from quorate.core.words.plain_text import plain
from quorate.dialects.base import Dialect

SUBDOMAIN_CHARS_MAX = 253
_SHOWN_CHARS_MAX = 80

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def wrong_with(dialect: Dialect, name: str) -> str:
    """Say why no gang of this dialect can have the name, and what to write; ``""`` if one can.

    A gang without an object is named by a label alone: any value of a label will do.
    """
    if dialect.resource is None:
        if _LABEL_VALUE.fullmatch(name):
            return ""
        hint = "write at most 63 letters, digits, '-', '_' and '.'"
        return f'{dialect.member_key} is "{shown(name)}", which is no value of a label; {hint}'
    if is_subdomain(name):
        return ""
    return (
        f'{dialect.member_key} is "{shown(name)}", and no {dialect.resource.kind} can have that '
        f"name; write the name of one: at most {SUBDOMAIN_CHARS_MAX} lower-case letters, digits, "
        "'-' and '.', with a letter or a digit at both ends"
    )


def is_subdomain(name: str) -> bool:
    """Whether this is a DNS-1123 subdomain, as the names of most objects are."""
    return len(name) <= SUBDOMAIN_CHARS_MAX and _SUBDOMAIN.fullmatch(name) is not None


def shown(name: str) -> str:
    """Return somebody's text plain, and short enough for a message."""
    return plain(name, _SHOWN_CHARS_MAX)
