"""A watch: what is there, what happened since, and what happens, as lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from aiohttp import web
from multidict import MultiMapping

from pocketkube import errors
from pocketkube.registry.rules.events import from_storage
from pocketkube.schema.resource import Resource
from pocketkube.server.answers import (
    Form,
    Wanted,
    encode,
    is_stored_form,
    watch_body,
)
from pocketkube.server.options import is_true, whole_number
from pocketkube.server.selecting import Selection
from pocketkube.store.store import Entry, Event, Store

BACKLOG_BYTES_MAX = 64 * 1024 * 1024
"""A client that reads slower than this falls behind is cut off; it may start again."""
BOOKMARK_EVERY_S = 60.0
_TIMEOUT_S = 1800.0


class Watch:
    """One watch of one client; collects lines as events come, and writes them in bursts."""

    def __init__(
        self, store: Store, resource: Resource, selection: Selection, wanted: Wanted, now_s: float
    ) -> None:
        self._store = store
        self.resource = resource
        self._selection = selection
        self._wanted = wanted
        self._now_s = now_s
        self._as_stored = wanted.form is Form.OBJECT and is_stored_form(resource)
        self._lines: list[bytes] = []
        self._bytes = 0
        self._news = asyncio.Event()
        self._too_slow = False
        self._ended = False
        self._bookmarks = False
        self._has_begun = False

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Write events until the client goes, the time is over, or the server stops."""
        query = request.query
        loop = asyncio.get_running_loop()
        timeout_s = float(whole_number(query, "timeoutSeconds") or 0) or _TIMEOUT_S
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        answer.enable_chunked_encoding()
        self.first_lines(query)
        # Nothing may happen between what was and what comes: no await before this.
        stop = self._store.watch(self.resource.bucket, self.on_event)
        try:
            with contextlib.suppress(ConnectionError):  # the client has gone
                await answer.prepare(request)
                await self._write_until(answer, loop.time() + timeout_s)
        finally:
            stop()
        return answer

    async def _write_until(self, answer: web.StreamResponse, end_s: float) -> None:
        loop = asyncio.get_running_loop()
        bookmark_s = loop.time() + BOOKMARK_EVERY_S
        while not self._too_slow:
            if self._lines:
                lines, self._lines, self._bytes = self._lines, [], 0
                await answer.write(b"".join(lines))
                continue
            now_s = loop.time()
            if self._ended or now_s >= end_s:
                return
            if self._bookmarks and now_s >= bookmark_s:
                bookmark_s = now_s + BOOKMARK_EVERY_S
                await answer.write(self._bookmark())
            self._news.clear()
            wait_s = min(end_s, bookmark_s if self._bookmarks else end_s) - now_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._news.wait()

    def end(self) -> None:
        """End the stream after what is still to be written."""
        self._ended = True
        self._news.set()

    def on_event(self, event: Event) -> None:
        """Take one event of the store, if it is selected."""
        type_ = self._type_for(event)
        if type_ is None:
            return
        entry = event.entry
        if type_ == "DELETED" and event.type != "DELETED":  # it left the selection: show it in it
            entry = _under_revision(event)
        line = self._line_of(type_, entry)
        self._lines.append(line)
        self._bytes += len(line)
        self._too_slow = self._bytes > BACKLOG_BYTES_MAX
        self._news.set()

    def _type_for(self, event: Event) -> str | None:
        """Return the event's type for this selection; objects may come into it and leave it."""
        takes = self._selection.takes
        if event.type == "DELETED" or event.before is None:
            return event.type if takes(event.entry, lambda: event.object) else None
        if self._selection.takes_all:
            return event.type if takes(event.entry, lambda: event.object) else None
        now = takes(event.entry, lambda: event.object)
        before = takes(event.before, lambda: event.object_before)
        return {(True, True): "MODIFIED", (True, False): "ADDED", (False, True): "DELETED"}.get(
            (now, before)
        )

    def first_lines(self, query: MultiMapping[str]) -> list[bytes]:
        """Return what comes before the first new event; a refusal is the only and last line."""
        self._bookmarks = is_true(query.get("allowWatchBookmarks"))
        refused = self._begin(query)
        if refused is not None:
            self._lines, self._ended = [_line("ERROR", encode(refused.status()))], True
        return self._lines

    def _begin(self, query: MultiMapping[str]) -> errors.ApiError | None:
        """Collect what comes before the first new event; return why not, if it cannot be."""
        revision = query.get("resourceVersion") or ""
        initial = is_true(query.get("sendInitialEvents"))
        if initial and revision.isdigit() and int(revision) > self._store.revision:
            return errors.too_large_revision(int(revision), self._store.revision)
        if initial or revision in ("", "0"):
            if initial or "sendInitialEvents" not in query:
                self._lines.extend(self._present())
            if initial and self._bookmarks:
                self._lines.append(self._bookmark(ends_initial=True))
            return None
        if not revision.isdigit():
            return errors.bad_request(f'Invalid value: "{revision}": invalid resource version')
        if int(revision) > self._store.revision:
            return errors.expired(
                f"too large resource version: {revision} ({self._store.revision})"
            )
        events = self._store.since(self.resource.bucket, int(revision))
        if events is None:
            return errors.expired(f"too old resource version: {revision} ({self._store.revision})")
        for event in events:
            self.on_event(event)
        return None

    def _present(self) -> Iterator[bytes]:
        selection = self._selection
        for entry in self._store.entries(self.resource.bucket, selection.namespace or None):
            if selection.takes(entry, lambda e=entry: e.object):  # type: ignore[misc]
                yield self._line_of("ADDED", entry)

    def _line_of(self, type_: str, entry: Entry) -> bytes:
        if self._as_stored:
            return _line(type_, entry.raw)
        found = from_storage(self.resource, entry.object)
        about = (self.resource, found, self._wanted, self._now_s)
        body = watch_body(*about, is_first=not self._has_begun)
        self._has_begun = True
        return _line(type_, body)

    def _bookmark(self, *, ends_initial: bool = False) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._store.revision)}
        if ends_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        api_version, kind = self.resource.api_version, self.resource.kind
        if self._wanted.form is Form.METADATA:
            api_version, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
        if self._wanted.form is Form.TABLE:
            api_version, kind = "meta.k8s.io/v1", "Table"
        obj = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        return _line("BOOKMARK", encode(obj))


def _under_revision(event: Event) -> Entry:
    """Return what was before an event, under the event's revision."""
    assert event.before is not None, "what leaves a selection was in it"
    obj = event.before.object
    obj["metadata"]["resourceVersion"] = str(event.entry.revision)
    return Entry(obj, encode(obj), event.entry.revision)


def _line(type_: str, raw: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + raw + b"}\n"
