"""Lists in pages."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from multidict import MultiMapping

from pocketkube import errors
from pocketkube.schema.resource import Resource
from pocketkube.server.options import revision_of, whole_number
from pocketkube.server.selecting import Selection
from pocketkube.store.store import Entry, Store


class _Continue(msgspec.Struct):
    """What a continue token holds: the list's revision, and the last key that was given."""

    rv: int
    namespace: str
    name: str


def page_of(
    store: Store, resource: Resource, selection: Selection, query: MultiMapping[str]
) -> tuple[list[Entry], dict[str, Any]]:
    """Return the entries of one page and the list's metadata.

    Pages after the first show the newest state, under the revision of the first: a watch from there
    repeats what changed in between. Raises ApiError (400, 504).
    """
    whole_number(query, "timeoutSeconds")
    any_revision = query.get("resourceVersion") == "0"  # the watch cache answers, in one page
    limit = 0 if any_revision else max(0, whole_number(query, "limit") or 0)
    token = _token(query.get("continue", ""))
    _check_revision(store, resource, query)
    entries = [
        entry
        for entry in store.entries(resource.bucket, selection.namespace or None)
        if (selection.takes_all or selection.takes(entry, lambda e=entry: e.object))  # type: ignore[misc]
        and (token is None or (entry.namespace, entry.name) > (token.namespace, token.name))
    ]
    revision = store.revision if token is None else token.rv
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if limit and len(entries) > limit:
        last = entries[limit - 1]
        metadata["continue"] = _text(_Continue(revision, last.namespace, last.name))
        if selection.takes_all:
            metadata["remainingItemCount"] = len(entries) - limit
        entries = entries[:limit]
    return entries, metadata


def _text(token: _Continue) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _token(text: str) -> _Continue | None:
    try:
        decoded = base64.urlsafe_b64decode(text)
        return msgspec.json.decode(decoded, type=_Continue) if text else None
    except (msgspec.DecodeError, ValueError):
        raise errors.bad_request("continue key is not valid: this server gave none such") from None


def _check_revision(store: Store, resource: Resource, query: MultiMapping[str]) -> None:
    """Refuse a revision that is still to come (504), and exactly one that is over (410).

    Nothing is kept of the past: a list at a past revision can be given when no object of its kind
    has changed since.
    """
    revision = revision_of(query.get("resourceVersion") or "0")
    if revision > store.revision:
        raise errors.too_large_revision(revision, store.revision)
    if (
        query.get("resourceVersionMatch") == "Exact"
        and store.since(resource.bucket, revision) != []
    ):
        raise errors.expired("The provided resource version is too old.")
