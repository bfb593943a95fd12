"""Texts that Go reads and writes anew: times and bytes.

In: a string of a request. Out: the string as the server gives it back. Source: k8s.io/apimachinery
``meta/v1`` of 1.36, Go's ``time.Parse`` and ``base64``; checked against a real server.
"""

from __future__ import annotations

import base64
import datetime
import re

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T)([0-9]{1,2})(:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)


def time(text: str, *, micro: bool = False) -> str:
    """Return a time in UTC, as metav1.Time or MicroTime writes it. Raises ValueError."""
    match = _TIME.fullmatch(text)
    if match is None or (micro and len(match[4] or "") != 6):
        form = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
        raise ValueError(f'parsing time "{text}" as "{form}": it has another form')
    day, hour, rest, fraction, zone = match.groups()
    written = f"{day}{hour:0>2}{rest}.{(fraction or '0')[:6]:0<6}{zone}"
    try:
        when = datetime.datetime.fromisoformat(written).astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f'parsing time "{text}": {error}') from error
    form = when.replace(tzinfo=None).isoformat(timespec="microseconds" if micro else "seconds")
    return f"{form}Z"


_ALPHABET = re.compile(r"[A-Za-z0-9+/]*")
_QUANTUM = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def encoded_bytes(text: str) -> str:
    """Return base64 as Go writes it, which ignores line ends. Raises ValueError with Go's words."""
    bare = text.replace("\r", "").replace("\n", "")
    match = _QUANTUM.match(bare)
    assert match is not None, "the pattern matches the empty text"
    if match.end() != len(bare):
        letters = _ALPHABET.match(bare)
        assert letters is not None, "the pattern matches the empty text"
        wrong = letters.end() if bare[letters.end() :].lstrip("=") else letters.end() // 4 * 4
        raise ValueError(f"illegal base64 data at input byte {max(wrong, match.end())}")
    return base64.b64encode(base64.b64decode(bare)).decode()
