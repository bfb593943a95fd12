"""How people name what each dialect has: for the sentences of the core, which knows no API."""

from __future__ import annotations

from quorate.core.words.explain import ApiWords
from quorate.dialects import DIALECTS, Dialect


def api_words() -> dict[str, ApiWords]:
    """Return the words by dialect name."""
    return {dialect.name: _words(dialect) for dialect in DIALECTS}


def _words(dialect: Dialect) -> ApiWords:
    resource, min_key = dialect.resource, dialect.min_key
    return ApiWords(
        resource.kind if resource else "",
        resource.api_version if resource else "",
        str(dialect.member_key),
        str(min_key) if min_key else "",
    )
