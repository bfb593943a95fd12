"""Names, label keys and values, and the metadata that all kinds share.

In: texts, and objects. Out: messages, and causes. Called by ``api`` and the rules of single kinds.
Source of the rules: k8s.io/apimachinery ``util/validation``, ``api/validation``
and ``api/validate/content`` of 1.36. Answers are remembered: most texts come again and again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from pocketkube.causes import invalid
from pocketkube.errors import Cause

Messages = tuple[str, ...]

ANNOTATIONS_BYTES_MAX = 256 * 1024
GENERATED_LENGTH_MAX = 63
SUFFIX_LENGTH = 5

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_key = re.compile(_KEY).fullmatch

_LOWER = "lower case letters, digits and '-'"
_ENDS = "and start and end with a letter or a digit"
_LABEL_TEXT = f"a lowercase RFC 1123 label must consist of {_LOWER}, {_ENDS}"
_SUBDOMAIN_TEXT = f"a lowercase RFC 1123 subdomain must consist of {_LOWER} or '.', {_ENDS}"
_LABEL_1035_TEXT = f"a DNS-1035 label must consist of {_LOWER}, and start with a letter"
_KEY_TEXT = f"must consist of letters, digits, '-', '_' or '.', {_ENDS}"
_VALUE_TEXT = f"a valid label must be empty, or {_KEY_TEXT.removeprefix('must ')}"


def _at_most(count: int, unit: str = "characters") -> str:
    """Labels are counted in bytes, and say so; names say characters."""
    return f"must be no more than {count} {unit}"


@lru_cache(maxsize=8192)
def dns_subdomain(text: str) -> Messages:
    """Check a DNS-1123 subdomain, such as most objects' names."""
    found = (_at_most(253),) if len(text) > 253 else ()
    return found if _subdomain(text) else (*found, _SUBDOMAIN_TEXT)


@lru_cache(maxsize=8192)
def dns_label(text: str) -> Messages:
    """Check a DNS-1123 label, such as a namespace's or a container's name."""
    found = (_at_most(63),) if len(text) > 63 else ()
    if _label(text):
        return found
    return (*found, "must not contain dots" if _subdomain(text) else _LABEL_TEXT)


@lru_cache(maxsize=1024)
def dns_1035_label(text: str) -> Messages:
    """Check a DNS-1035 label, such as a Service's name."""
    found = (_at_most(63),) if len(text) > 63 else ()
    return found if _label_1035(text) else (*found, _LABEL_1035_TEXT)


@lru_cache(maxsize=8192)
def label_key(text: str) -> Messages:
    """Check a qualified name: a label's key, a finalizer, a resource, a taint's key."""
    prefix, slash, name = text.rpartition("/")
    found: Messages = ()
    if "/" in prefix:
        return (f"a valid label key {_KEY_TEXT}, with an optional DNS subdomain and '/' before",)
    if slash and not prefix:
        found = ("prefix part must be non-empty",)
    elif slash:
        too_long_text = (_at_most(253, "bytes"),) if len(prefix) > 253 else ()
        wrong = too_long_text if _subdomain(prefix) else (*too_long_text, _SUBDOMAIN_TEXT)
        found = tuple(f"prefix part {message}" for message in wrong)
    if not name:
        found += ("name part must be non-empty",)
    elif len(name.encode()) > 63:
        found += (f"name part {_at_most(63, 'bytes')}",)
    return found if _key(name) else (*found, f"name part {_KEY_TEXT}")


@lru_cache(maxsize=8192)
def label_value(text: str) -> Messages:
    """Check a label's value, which may be empty."""
    found = (_at_most(63, "bytes"),) if len(text.encode()) > 63 else ()
    return found if not text or _key(text) else (*found, _VALUE_TEXT)


def path_segment(text: str) -> Messages:
    """Check a name that only has to fit into a URL, such as a role's."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{one}'" for one in "/%" if one in text)


def generated(base: str, suffix: str) -> str:
    """Return the name of an object with ``generateName``: at most 63 characters, suffix and all.

    Source: k8s.io/apiserver ``storage/names``.
    """
    return base[: GENERATED_LENGTH_MAX - SUFFIX_LENGTH] + suffix


def invalid_text(field: str, text: str, check: Callable[[str], Messages]) -> list[Cause]:
    """Return one cause for each thing that ``check`` finds wrong with the value of a field."""
    return [invalid(field, text, message) for message in check(text)]


def label_causes(labels: Mapping[str, str], field: str) -> list[Cause]:
    """Check labels, or a node selector, which has their form."""
    causes: list[Cause] = []
    for key, value in labels.items():
        if label_key(key) or label_value(value):
            causes += invalid_text(field, key, label_key)
            causes += invalid_text(field, value, label_value)
    return causes
