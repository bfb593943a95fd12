"""Texts that Go reads and writes anew: quantities, times, bytes.

In: a string of a request. Out: the string as the server gives it back. Source: k8s.io/apimachinery
``pkg/api/resource`` and ``meta/v1`` of 1.36, Go's ``time.Parse`` and ``base64``; checked against a
real server.
"""

from __future__ import annotations

import base64
import datetime
import re
from functools import lru_cache

BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
BAD_SUFFIX = "unable to parse quantity's suffix"

_QUANTITY = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_MAX = 2**63 - 1
_FAST_DIGITS = 18
_MAX_EXPONENT = 1000


@lru_cache(maxsize=16384)
def quantity(text: str) -> str:
    """Return a quantity in its canonical form. Raises ValueError with Go's words.

    A text whose digits Go need not change stays as it is, with its sign and its trailing dot.
    """
    text = text.strip()
    match = _QUANTITY.fullmatch(text)
    if not text or match is None:
        raise ValueError(BAD_QUANTITY)
    sign, whole, fraction, suffix = match.groups()
    whole, fraction = whole or "0", fraction or ""
    negative = sign == "-"
    if suffix in _BINARY and suffix:
        return _binary(text, negative, whole, fraction, _BINARY[suffix])
    exponent = _EXPONENT.fullmatch(suffix)
    if suffix not in _DECIMAL and exponent is None:
        raise ValueError(BAD_SUFFIX)
    power = _DECIMAL[suffix] if exponent is None else int(exponent[1][:9])
    if abs(power) > _MAX_EXPONENT:  # no machine has as much; and the arithmetic would take forever
        return text
    return _decimal(text, negative, whole, fraction, power, scientific=exponent is not None)


def _decimal(
    text: str, negative: bool, whole: str, fraction: str, power: int, *, scientific: bool
) -> str:
    digits, scale = whole + fraction, power - len(fraction)
    fast = len(digits) <= _FAST_DIGITS and scale >= -9
    if fast and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0":
        return text
    return _written(negative, int(digits), scale, scientific=scientific)


def _binary(text: str, negative: bool, whole: str, fraction: str, power: int) -> str:
    digits = int(whole + fraction)
    if not fraction and len(whole) <= 14 - power * 3 // 10 and digits & 7:
        return text
    amount, scale = digits << power, -len(fraction)
    while scale and amount % 10 == 0:
        amount, scale = amount // 10, scale + 1
    if scale < -9:
        amount, scale = -(-amount // 10 ** (-9 - scale)), -9
    if amount > _MAX * 10**-scale:
        amount, scale = _MAX, 0
    if scale < 0 or amount < 1024:
        return _written(negative, amount, scale, scientific=False)
    power = 0
    while amount % 1024 == 0:
        amount, power = amount // 1024, power + 10
    return f"{'-' * negative}{amount}{_BINARY_SUFFIX[power]}"


def _written(negative: bool, amount: int, scale: int, *, scientific: bool) -> str:
    """Write ``amount * 10**scale`` with an exponent that is a multiple of three."""
    if not amount:
        return "0"
    if scale < -9:  # nothing is smaller than a billionth, and what is not nothing stays something
        amount, scale = -(-amount // 10 ** (-9 - scale)), -9
    while amount % 10 == 0:
        amount, scale = amount // 10, scale + 1
    amount *= 10 ** (scale % 3)
    scale -= scale % 3
    if scientific:
        suffix = f"e{scale}" if scale else ""
    else:
        amount *= 10 ** max(0, scale - 18)
        suffix = _DECIMAL_SUFFIX[min(scale, 18)]
    return f"{'-' * negative}{amount}{suffix}"


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
