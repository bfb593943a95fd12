"""Formats of text that CRDs ask for, such as date-time or duration; others are let through.

In: text. Out: whether it has the format. Source: k8s.io/apiextensions-apiserver
``pkg/apiserver/validation/formats.go`` of 1.36, and answers of a real API server.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable, Mapping


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Tell whether a text can be read without ValueError."""

    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and _date(text[:10])


def _date(text: str) -> bool:
    is_date = re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None
    return is_date and _reads(datetime.date.fromisoformat)(text)


def _base64(text: str) -> bool:
    try:
        return bool(text) and bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


_HOST_LABEL = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME = re.compile(
    # A name without dots may have one dash, as its second character: as upstream.
    rf"[a-zA-Z0-9](-?[a-zA-Z0-9]{{0,62}})?|({_HOST_LABEL}\.)+[a-zA-Z]{{2,63}}",
    re.ASCII,
)
_DURATION = re.compile(r"0|[-+]?((\d+(\.\d*)?|\.\d+)\s*[a-zµμ]+\s*)+", re.ASCII)
"""Go's form, such as 1h30m, or Scala's, such as 3 days, with any word for a unit."""


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "uri": _matches(r"(/|[a-zA-Z][a-zA-Z0-9+.-]*:)[^\s\x00-\x1f]*"),
    "email": _matches(r"(.* )?<?[^@\s<>]+@[^@\s<>]+>?"),
    "hostname": lambda text: len(text) <= 255 and _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _reads(ipaddress.ip_interface)(text),
    "uuid": _matches(r"(?i)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}"),
    "byte": _base64,
    "password": lambda _text: True,
    "date": _date,
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "datetime": _date_time,
    "k8sshortname": lambda text: (
        len(text) <= 63 and _matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?")(text)
    ),
    "k8slongname": lambda text: (
        len(text) <= 253
        and _matches(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")(text)
    ),
}
"""By name without dashes: the server takes ``date-time`` and ``datetime`` for the same."""
