"""All that is watched, as one stream of changes. In: a client. Out: changes, through a callback.

Run by ``shell.app``. One reflector for each kind of object; an object that cannot be read is
quarantined: counted, logged, and taken out of the core's sight, while everything else goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import structlog

from quorate.core.changes import (
    AnyChange,
    DialectServed,
    GangChanged,
    GangGone,
    NodeChanged,
    ObjectChanged,
    PodChanged,
)
from quorate.core.model import GangKey
from quorate.dialects.base import Malformed
from quorate.shell.clock import Clock
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.reach import Reach
from quorate.shell.kube.watching import (
    Absent,
    Deleted,
    Garbled,
    ListBegins,
    Listed,
    Reflector,
    SomeListed,
    WatchEvent,
)
from quorate.shell.watch.objects import PODS, WatchedKind, identity, watched_kinds

log = structlog.get_logger(__name__)


class Feed:
    """Watches nodes, pods and the gangs' objects, and keeps the newest version of the latter.

    ``on_change`` gets every change; ``on_object`` the key of each gang whose object was written,
    by whomever, so that a status that somebody overwrote is written anew.
    """

    def __init__(
        self,
        client: KubeClient,
        owned: frozenset[str],
        *,
        on_change: Callable[[AnyChange], None],
        on_object: Callable[[GangKey], None],
        clock: Clock,
        chance: Callable[[], float],
    ) -> None:
        self._on_change = on_change
        self._on_object = on_object
        self.objects: dict[GangKey, bytes] = {}
        """The newest version of each gang's object, for its status."""
        self.quarantined: dict[tuple[str, str], str] = {}
        """Why an object cannot be read, by kind and name."""
        self.served: set[str] = set()
        """The dialects whose objects the API server serves."""
        self._known: dict[str, dict[str, _Who]] = {}
        self._unreadable: dict[str, set[str]] = {}
        self._met: dict[str, _Met] = {}
        self.reflectors: dict[str, Reflector] = {}
        reach = Reach(clock, chance)
        for path, kind in watched_kinds(owned).items():
            self._known[path] = {}
            self._unreadable[path] = set()
            self.reflectors[path] = Reflector(
                client,
                path,
                on_event=self._handler(kind),
                clock=clock,
                chance=chance,
                reach=reach,
            )

    @property
    def is_synced(self) -> bool:
        """Whether everything was listed: before that, nothing may be decided."""
        return all(reflector.is_synced for reflector in self.reflectors.values())

    @property
    def is_fresh(self) -> bool:
        """Whether everything was listed, and no watch is in trouble as far as we know."""
        return all(
            reflector.is_synced and (reflector.is_absent or reflector.last_error is None)
            for reflector in self.reflectors.values()
        )

    def unready_reason(self) -> str | None:
        """Say what is not listed yet, and why; None when everything is."""
        missing = [
            f"{path} ({reflector.last_error})" if reflector.last_error else path
            for path, reflector in self.reflectors.items()
            if not reflector.is_synced
        ]
        return f"not listed yet: {', '.join(missing)}" if missing else None

    async def run(self) -> None:
        """Watch until cancelled; what a watcher raises ends all of them."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    def _handler(self, kind: WatchedKind) -> Callable[[WatchEvent], None]:
        def on_event(event: WatchEvent) -> None:
            match event:
                case ListBegins():
                    self._met[kind.path] = _Met(set(), set())
                case SomeListed():
                    for raw in event.items:
                        self._changed(kind, raw)
                case Listed():
                    self._listed(kind)
                case Absent():
                    self._absent(kind)
                case Deleted():
                    self._gone(kind, event.raw)
                case Garbled():
                    log.warning("garbled watch event", kind=kind.resource.kind, error=event.error)
                case _:
                    self._changed(kind, event.raw)

        return on_event

    def _listed(self, kind: WatchedKind) -> None:
        """Apply the end of a list: what was known and is not in it has gone meanwhile."""
        if kind.dialect and kind.dialect not in self.served:
            self.served.add(kind.dialect)
            self._on_change(DialectServed(kind.dialect, served=True))
        met = self._met.pop(kind.path)
        unreadable = self._unreadable[kind.path]
        for name in unreadable - met.unreadable:
            self.quarantined.pop((kind.resource.kind, name), None)
        unreadable &= met.unreadable
        known = self._known[kind.path]
        for who in [who for uid, who in known.items() if uid not in met.known]:
            del known[who.id]
            if kind.resource is PODS or who.full_name not in met.unreadable:
                self._gone(kind, who.as_object())

    def _absent(self, kind: WatchedKind) -> None:
        for name in self._unreadable[kind.path]:
            self.quarantined.pop((kind.resource.kind, name), None)
        self._unreadable[kind.path].clear()
        for who in list(self._known[kind.path].values()):
            self._gone(kind, who.as_object())
        self.served.discard(kind.dialect)
        if kind.dialect:
            self._on_change(DialectServed(kind.dialect, served=False))
        elif not kind.optional:
            log.error("the API server does not serve what every cluster has", path=kind.path)

    def _changed(self, kind: WatchedKind, raw: bytes) -> None:
        try:
            change = kind.changed(raw)
        except Malformed as error:
            self._quarantine(kind, error)
            return
        who = _who(change)
        self._known[kind.path][who.id] = who
        if kind.path in self._met:
            self._met[kind.path].known.add(who.id)
        if self.quarantined:
            self._readable(kind, who.full_name)
        if isinstance(change, GangChanged):
            self.objects[change.spec.key] = raw
            self._on_object(change.spec.key)
        self._on_change(change)

    def _gone(self, kind: WatchedKind, raw: bytes) -> None:
        try:
            change = kind.gone(raw)
        except Malformed as error:
            self._quarantine(kind, error)
            return
        if isinstance(change, GangGone):
            self.objects.pop(change.key, None)
        who = identity(raw)
        known = _Who(who.uid if kind.resource is PODS else "", who.namespace, who.name)
        self._known[kind.path].pop(known.id, None)
        self._readable(kind, f"{who.namespace}/{who.name}")
        self._on_change(change)

    def _readable(self, kind: WatchedKind, name: str) -> None:
        """Forget that an object was quarantined: it can be read now, or is gone."""
        self.quarantined.pop((kind.resource.kind, name), None)
        self._unreadable[kind.path].discard(name)

    def _quarantine(self, kind: WatchedKind, error: Malformed) -> None:
        name = f"{error.namespace}/{error.name}"
        if self.quarantined.get((kind.resource.kind, name)) != error.message:
            log.warning(
                "an object cannot be read and is left out",
                kind=kind.resource.kind,
                object=name,
                problem=error.message,
            )
        self.quarantined[kind.resource.kind, name] = error.message
        self._unreadable[kind.path].add(name)
        if kind.path in self._met:
            self._met[kind.path].unreadable.add(name)
        change = kind.unreadable(error)
        if change is not None:
            self._on_change(change)
        elif kind.path not in self._met:
            self.reflectors[kind.path].doubt()  # an event of nobody knows which object


class _Met(NamedTuple):
    """Whom a list that is under way has named: ids, and names of those that cannot be read."""

    known: set[str]
    unreadable: set[str]


class _Who(NamedTuple):
    """Who an object is: enough to say later that it is gone."""

    uid: str
    namespace: str
    name: str

    @property
    def id(self) -> str:
        return self.full_name if not self.uid else self.uid

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    def as_object(self) -> bytes:
        metadata = {"uid": self.uid, "namespace": self.namespace, "name": self.name}
        return msgspec.json.encode({"metadata": metadata})


def _who(change: AnyChange) -> _Who:
    """Return whom a change is about, without reading the object again."""
    match change:
        case PodChanged(pod=pod):
            return _Who(pod.uid, pod.namespace, pod.name)
        case NodeChanged(node=node):
            return _Who("", "", node.name)
        case GangChanged(spec=spec):
            return _Who("", spec.key.namespace, spec.key.name)
        case ObjectChanged(object=found):
            return _Who("", getattr(found, "namespace", ""), found.name)
    raise AssertionError(f"{change} is not about an object")
