"""Objects by key, one revision for all, and watches: what etcd is to Kubernetes.

In: objects. Out: entries, which are bytes ready to be sent, and events. Called by ``api``. Objects
are kept encoded: a pod of 3 kB takes 3 kB instead of 15, and is encoded once for all its watchers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal

import msgspec

from pocketkube.objects import Object
from pocketkube.store.journal import Journal, Key

WINDOW = 20_000
"""Events that a bucket remembers, for watches that start in the past."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Entry:
    """One version of one object; never changed."""

    __slots__ = ("labels", "name", "namespace", "raw", "revision")

    def __init__(self, obj: Object, raw: bytes, revision: int) -> None:
        metadata = obj["metadata"]
        self.namespace: str = metadata.get("namespace", "")
        self.name: str = metadata["name"]
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.revision = revision
        self.raw = raw

    @property
    def object(self) -> Object:
        """Decode the object: a new one with each call, so the caller may change it."""
        found: Object = decode(self.raw)
        return found


def same(entry: Entry, obj: Object) -> bool:
    """Tell whether an entry holds exactly this object, whatever the order of its keys.

    Encodes first, because a length that differs, as it mostly does, settles it in half the time.
    """
    raw = encode(obj)
    return len(raw) == len(entry.raw) and (raw == entry.raw or entry.object == obj)


class Event:
    """What happened to one object; for a deletion ``entry`` is its last state."""

    def __init__(self, type_: EventType, bucket: str, entry: Entry, before: Entry | None) -> None:
        self.type = type_
        self.bucket = bucket
        self.entry = entry
        self.before = before

    @cached_property
    def object(self) -> Object:
        """The object, decoded once for all who watch now: copy what you keep, change nothing."""
        return self.entry.object

    @cached_property
    def object_before(self) -> Object | None:
        """The object before, likewise; None when it is new."""
        return None if self.before is None else self.before.object

    def forget_objects(self) -> None:
        """Drop what was decoded: the window keeps events, and bytes are five times smaller."""
        vars(self).pop("object", None)
        vars(self).pop("object_before", None)


class _Bucket:
    __slots__ = ("forgotten", "ordered", "spaces", "watchers", "window")

    def __init__(self) -> None:
        self.spaces: dict[str, dict[str, Entry]] = {}
        self.ordered: dict[str, list[str]] = {}  # names by namespace, as long as none comes or goes
        self.window: deque[Event] = deque()
        self.forgotten = 0  # revision of the last event that left the window
        self.watchers: list[Callable[[Event], None]] = []


class Store:
    """All objects. Every method is synchronous; watchers are called before a write returns."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._buckets: dict[str, _Bucket] = {}
        self._journal = journal
        self._everywhere: list[Callable[[Event], None]] = []
        self.revision = 1
        if journal is not None:
            self._load(journal)

    def _load(self, journal: Journal) -> None:
        for key, (revision, raw) in journal.take_objects().items():
            entry = Entry(decode(raw), raw, revision)
            self._bucket(key.bucket).spaces.setdefault(key.namespace, {})[key.name] = entry
        self.revision = journal.revision
        for bucket in self._buckets.values():
            bucket.forgotten = self.revision

    def close(self) -> None:
        """Let go of the journal's file."""
        if self._journal is not None:
            self._journal.close()

    # Reading

    def get(self, bucket: str, namespace: str, name: str) -> Entry | None:
        """Return the newest version of an object; None when there is none."""
        return self._bucket(bucket).spaces.get(namespace, {}).get(name)

    def entries(self, bucket: str, namespace: str | None = None) -> Iterator[Entry]:
        """Give entries in the order of their keys; of one namespace, or of all (None)."""
        one = self._bucket(bucket)
        chosen = sorted(one.spaces) if namespace is None else [namespace]
        for space in chosen:
            entries = one.spaces.get(space, {})
            names = one.ordered.get(space)
            if names is None:
                names = one.ordered[space] = sorted(entries)
            for name in names:
                yield entries[name]

    def count(self, bucket: str) -> int:
        """Return how many objects a bucket has."""
        return sum(len(space) for space in self._bucket(bucket).spaces.values())

    def buckets(self) -> list[str]:
        """Return the names of all buckets that have, or had, objects."""
        return list(self._buckets)

    # Writing

    def put(self, bucket: str, obj: Object) -> Entry:
        """Store an object under its namespace and name; sets metadata.resourceVersion."""
        one = self._bucket(bucket)
        entry = self._next_entry(obj)
        space = one.spaces.setdefault(entry.namespace, {})
        before = space.get(entry.name)
        space[entry.name] = entry
        if before is None:
            one.ordered.pop(entry.namespace, None)
        if self._journal is not None:
            key = Key(bucket, entry.namespace, entry.name)
            self._journal.write(key, entry.revision, entry.raw)
        self._tell(one, Event("MODIFIED" if before else "ADDED", bucket, entry, before))
        return entry

    def remove(self, bucket: str, namespace: str, name: str) -> Entry | None:
        """Remove an object; return its last state under the revision of the deletion."""
        one = self._bucket(bucket)
        before = one.spaces.get(namespace, {}).pop(name, None)
        if before is None:
            return None
        one.ordered.pop(namespace, None)
        entry = self._next_entry(before.object)
        if self._journal is not None:
            self._journal.write(Key(bucket, namespace, name), entry.revision, b"")
        self._tell(one, Event("DELETED", bucket, entry, before))
        return entry

    def _next_entry(self, obj: Object) -> Entry:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Entry(obj, encode(obj), self.revision)

    # Watching

    def watch(self, bucket: str, watcher: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``watcher`` with each event of a bucket from now on; return how to stop that."""
        watchers = self._bucket(bucket).watchers
        watchers.append(watcher)
        return lambda: watchers.remove(watcher) if watcher in watchers else None

    def watch_all(self, watcher: Callable[[Event], None]) -> None:
        """Call ``watcher`` with each event of every bucket from now on."""
        self._everywhere.append(watcher)

    def since(self, bucket: str, revision: int) -> list[Event] | None:
        """Return a bucket's events after a revision; None when the window does not reach back."""
        one = self._bucket(bucket)
        if revision < one.forgotten:
            return None
        found: list[Event] = []
        for event in reversed(one.window):
            if event.entry.revision <= revision:
                break
            found.append(event)
        found.reverse()
        return found

    def _tell(self, one: _Bucket, event: Event) -> None:
        if len(one.window) == WINDOW:
            one.forgotten = one.window.popleft().entry.revision
        one.window.append(event)
        for watcher in tuple(one.watchers):
            watcher(event)
        for watcher in self._everywhere:
            watcher(event)
        event.forget_objects()

    def _bucket(self, name: str) -> _Bucket:
        found = self._buckets.get(name)
        if found is None:
            found = self._buckets[name] = _Bucket()
        return found
