"""How people name what each dialect has: for the sentences of the core, which knows no API."""

from __future__ import annotations

from collections.abc import Collection

from quorate.core.words.object_words import ApiWords
from quorate.dialects import DIALECTS, Dialect


def api_words(admits_under: Collection[str] = ()) -> dict[str, ApiWords]:
    """Return the words by dialect name.

    ``admits_under`` are the scheduler names of one who decides, and so admits gangs before they
    have pods: without any, nothing is said of room for these, as of a core that knows no nodes.
    """
    return {dialect.name: _words(dialect, admits_under) for dialect in DIALECTS}


def _words(dialect: Dialect, admits_under: Collection[str]) -> ApiWords:
    resource, min_key = dialect.resource, dialect.min_key
    awaited = dialect.object.awaited_under if dialect.object else ""
    return ApiWords(
        resource.kind if resource else "",
        resource.api_version if resource else "",
        str(dialect.member_key),
        str(min_key) if min_key else "",
        awaited if awaited in admits_under else "",
    )
