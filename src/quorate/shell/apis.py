"""How people name each dialect's object: for the sentences of the core, which knows no API."""

from __future__ import annotations

from quorate.core.words.explain import ApiWords
from quorate.dialects import DIALECTS


def api_words() -> dict[str, ApiWords]:
    """Return the words by dialect name; dialects without an object have none."""
    return {
        dialect.NAME: ApiWords(
            dialect.RESOURCE.kind,
            f"{dialect.RESOURCE.group}/{dialect.RESOURCE.version}",
            dialect.NAMED_BY,
        )
        for dialect in DIALECTS
        if dialect.RESOURCE
    }
