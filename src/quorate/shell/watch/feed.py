"""Watched objects as one stream of changes. In: a client, kinds. Out: changes, by a callback.

Run by ``app``; one reflector for each kind. An object that cannot be read is quarantined: counted,
logged, and gone for the core, while everything else goes on.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import NamedTuple

import structlog

from quorate.core.model import GangKey
from quorate.core.model.changes import (
    AnyChange,
    DialectServed,
    GangChanged,
    GangGone,
    KindServed,
    NodeChanged,
    ObjectChanged,
    PodChanged,
    PodGone,
)
from quorate.core.words.plain_text import plain
from quorate.dialects.base import Malformed
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.connections.availability import Availability
from quorate.shell.kube.lists.events import (
    Absent,
    Added,
    Deleted,
    Failing,
    Garbled,
    ListBegins,
    Listed,
    Modified,
    Recovered,
    SomeListed,
    WatchEvent,
)
from quorate.shell.kube.lists.reflector import Pace, Reflector
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import Note, words_of
from quorate.shell.watch.objects import (
    PODS,
    Identity,
    Kinds,
    WatchedKind,
    for_status,
    identity,
)
from quorate.shell.watch.unavailable import (
    Unavailable,
    is_unavailable,
    not_served,
    unavailable_because,
)

log = structlog.get_logger(__name__)

FAIR_TRY_S = 5.0
"""How long a kind may fail at the start before all others go on without it."""
_READY_CHARS_MAX = 300
_REQUIRED = Pace(absent_poll_s=None)


class Feed:
    """Watches objects of some kinds, and keeps the newest version of the gangs'.

    ``on_change`` gets every change. ``on_object`` gets the key of each gang whose object was
    written by anybody, so that an overwritten status is written again.
    """

    def __init__(
        self,
        client: KubeClient,
        kinds: Kinds,
        *,
        on_change: Callable[[AnyChange], None],
        on_object: Callable[[GangKey], None],
        clock: Clock,
        chance: Callable[[], float],
        note: Note,
        fair_try_s: float = FAIR_TRY_S,
    ) -> None:
        """Prepare to watch. With an infinite ``fair_try_s`` every kind is required."""
        self._fair_try_s = fair_try_s
        self._note = note
        self._on_change = on_change
        self._on_object = on_object
        self.objects: dict[GangKey, bytes] = {}
        """Parts of each gang's newest object: those from which its status is made."""
        self.quarantined: dict[tuple[str, str], str] = {}
        """Why an object cannot be read, by kind and name."""
        self.served: dict[str, int] = {}
        """Dialects whose objects the API server serves, each with a number of its newest list.

        Another list may be that of a definition that was made anew.
        """
        self._numbers = itertools.count(1)
        self.unavailable: dict[str, Unavailable] = {}
        """Kinds that are left out for now, by path: why, and what to do."""
        self._settled: set[str] = set()
        """Paths of kinds that were listed once, or are not served."""
        self._required: list[str] = []
        self._of_gangs: set[str] = set()
        self._known: dict[str, dict[str, Identity]] = {}
        self._unreadable: dict[str, set[str]] = {}
        self._listing: dict[str, _Listing] = {}
        self.reflectors: dict[str, Reflector] = {}
        availability = Availability(clock, chance)
        for path, kind in kinds.items():
            self._known[path] = {}
            self._unreadable[path] = set()
            if kind.required:
                self._required.append(path)
            if kind.dialect:
                self._of_gangs.add(path)
            self.reflectors[path] = Reflector(
                client,
                path,
                on_event=self._handler(kind),
                clock=clock,
                chance=chance,
                availability=availability,
                pace=_REQUIRED if kind.required else Pace(tells_versions=kind.optional),
                kind=kind.resource.kind,
            )

    @property
    def is_synced(self) -> bool:
        """Whether everything that can be listed was listed: before that, nothing is decided.

        Pods and nodes must be current. Another kind may be in the middle of a new list: what is
        known of it is then a little old, as with a slow watch.
        """
        return all(self._is_known(path) for path in self.reflectors)

    def _is_known(self, path: str) -> bool:
        if path in self._required:
            return self.reflectors[path].is_synced
        return path in self._settled or path in self.unavailable

    @property
    def is_fresh(self) -> bool:
        """Whether everything was listed, and no watch fails as far as we know.

        Unavailable objects of gangs do not count: they say nothing about nodes and pods.
        """
        return all(
            reflector.is_synced and (reflector.is_absent or reflector.last_error is None)
            for path, reflector in self.reflectors.items()
            if path not in self.unavailable or path not in self._of_gangs
        )

    def unready_reason(self) -> str | None:
        """Say what is not listed yet, and why; None when everything is."""
        missing = [path for path in self.reflectors if not self._is_known(path)]
        if not missing:
            return None
        required = [path for path in self._required if path in missing]
        first = (required or missing)[0]
        error = self.reflectors[first].last_error
        why = f" ({plain(str(error), _READY_CHARS_MAX)})" if error else ""
        more = f" and {len(missing) - 1} more kinds" if len(missing) > 1 else ""
        return f"not listed yet: {first}{why}{more}"

    async def run(self) -> None:
        """Watch until cancelled; what a watcher raises ends all of them."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    def _handler(self, kind: WatchedKind) -> Callable[[WatchEvent], None]:
        def on_event(event: WatchEvent) -> None:
            try:
                take(event)
            except Exception as error:  # what was missed is in the next list
                self._note("watch", kind.path, error)
                self.reflectors[kind.path].request_relist()

        def take(event: WatchEvent) -> None:
            match event:
                case ListBegins():
                    self._listing[kind.path] = _Listing(set(), set())
                case SomeListed():
                    for raw in event.items:
                        self._changed(kind, raw)
                case Listed():
                    self._listed(kind)
                case Deleted():
                    self._gone(kind, event.raw)
                case Added() | Modified():
                    self._changed(kind, event.raw)
                case _:
                    self._on_trouble(kind, event)

        return on_event

    def _on_trouble(self, kind: WatchedKind, event: Absent | Garbled | Failing | Recovered) -> None:
        match event:
            case Garbled():
                log.warning("garbled watch event", kind=kind.resource.kind, error=event.error)
            case Failing():
                self._failing(kind, event)
            case Recovered() if not self.reflectors[kind.path].is_absent:
                self._restored(kind)
            case Absent():
                self._absent(kind, event.versions)
            case _:
                self._absent(kind)

    def _listed(self, kind: WatchedKind) -> None:
        """End a list: known objects that are not in it are gone."""
        listing = self._listing.pop(kind.path)
        unreadable = self._unreadable[kind.path]
        for name in unreadable - listing.unreadable:
            self.quarantined.pop((kind.resource.kind, name), None)
        unreadable &= listing.unreadable
        known = self._known[kind.path]
        for who in [who for uid, who in known.items() if uid not in listing.known]:
            del known[_id(who)]
            if kind.resource is PODS or who.full_name not in listing.unreadable:
                self._is_gone(kind, who)
        self._settled.add(kind.path)
        was_there = kind.path not in self.unavailable
        self._restored(kind)
        if kind.dialect and was_there:
            self._report_served(kind, None)

    def _failing(self, kind: WatchedKind, event: Failing) -> None:
        """Leave out a kind that has failed for long enough; log each cause once."""
        if kind.required:
            return
        required = [self.reflectors[path] for path in self._required]
        if not is_unavailable(
            event,
            was_known=kind.path in self._settled,
            fair_try_s=self._fair_try_s,
            is_server_well=all(one.is_synced and one.last_error is None for one in required),
        ):
            return
        why = unavailable_because(kind.resource, event.error)
        before = self.unavailable.get(kind.path)
        if before is None or before.status != why.status:
            log.warning("going on without a kind", problem=why.problem, hint=why.hint)
            self._lose(kind, why)

    def _lose(self, kind: WatchedKind, why: Unavailable) -> None:
        self.unavailable[kind.path] = why
        self._report_served(kind, why)

    def _restored(self, kind: WatchedKind) -> None:
        if self.unavailable.pop(kind.path, None) is not None:
            log.info("a kind is available again", path=kind.path)
            self._report_served(kind, None)

    def _report_served(self, kind: WatchedKind, why: Unavailable | None) -> None:
        """Tell the core whether a kind is available, and if not, why."""
        problem, hint = (why.problem, why.hint) if why else ("", "")
        if not kind.dialect:
            self._on_change(KindServed(kind.struct, problem, hint))
            return
        if why:
            self.served.pop(kind.dialect, None)
        else:
            self.served[kind.dialect] = next(self._numbers)
        self._on_change(DialectServed(kind.dialect, why is None, problem, hint))

    def _absent(self, kind: WatchedKind, versions: tuple[str, ...] = ()) -> None:
        for name in self._unreadable[kind.path]:
            self.quarantined.pop((kind.resource.kind, name), None)
        self._unreadable[kind.path].clear()
        for who in list(self._known[kind.path].values()):
            self._is_gone(kind, who)
        self._settled.add(kind.path)
        if kind.dialect:
            self.unavailable.pop(kind.path, None)
            self.served.pop(kind.dialect, None)
            self._on_change(DialectServed(kind.dialect, served=False))
        elif kind.optional:
            self._lose(kind, not_served(kind.resource, versions))
        else:
            self._restored(kind)
            log.error("the API server does not serve what every cluster has", path=kind.path)

    def _changed(self, kind: WatchedKind, raw: bytes) -> None:
        try:
            self._take(kind, raw)
        except Malformed as error:
            self._defects(kind, error)
        except Exception as error:
            self._note("watch", f"{kind.resource.kind} {identity(raw).full_name}", error)
            self._defects(kind, _unread(raw, error))

    def _take(self, kind: WatchedKind, raw: bytes) -> None:
        change = kind.changed(raw)
        if isinstance(change, PodGone):
            self._ended(kind, raw, change)
            return
        who = _who(change)
        id_ = _id(who)
        self._known[kind.path][id_] = who
        if kind.path in self._listing:
            self._listing[kind.path].known.add(id_)
        if self.quarantined:
            self._readable(kind, who.full_name)
        if isinstance(change, GangChanged):
            self.objects[change.spec.key] = for_status(raw)
            self._on_object(change.spec.key)
        self._on_change(change)

    def _ended(self, kind: WatchedKind, raw: bytes, change: PodGone) -> None:
        """Drop a pod that still exists but has ended."""
        if self.quarantined:
            self._readable(kind, identity(raw).full_name)
        if self._known[kind.path].pop(change.uid, None) is not None:
            self._on_change(change)

    def _gone(self, kind: WatchedKind, raw: bytes) -> None:
        try:
            who = identity(raw)
        except Malformed as error:
            self._defects(kind, error)
            return
        self._is_gone(kind, who if kind.resource is PODS else Identity(who.name, who.namespace))

    def _is_gone(self, kind: WatchedKind, who: Identity) -> None:
        change = kind.gone(who)
        if isinstance(change, GangGone):
            self.objects.pop(change.key, None)
        self._known[kind.path].pop(_id(who), None)
        if self.quarantined:
            self._readable(kind, who.full_name)
        self._on_change(change)

    def _readable(self, kind: WatchedKind, name: str) -> None:
        """End the quarantine of an object: it can be read now, or is gone."""
        self.quarantined.pop((kind.resource.kind, name), None)
        self._unreadable[kind.path].discard(name)

    def _defects(self, kind: WatchedKind, error: Malformed) -> None:
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
        if kind.path in self._listing:
            self._listing[kind.path].unreadable.add(name)
        change = kind.unreadable(error)
        if change is not None:
            self._on_change(change)
        elif kind.path not in self._listing:
            # Nobody knows which object the event is about.
            self.reflectors[kind.path].request_relist()


class _Listing(NamedTuple):
    """A list in progress: ids so far, and names of objects that cannot be read."""

    known: set[str]
    unreadable: set[str]


def _unread(raw: bytes, error: Exception) -> Malformed:
    """Return what is said of an object that met a defect of ours in its decoder."""
    who = identity(raw)
    named = {"namespace": who.namespace, "name": who.name, "uid": who.uid}
    return Malformed(f"it cannot be read: {words_of(error)}", **named)


def _id(who: Identity) -> str:
    return who.uid or who.full_name


def _who(change: AnyChange) -> Identity:
    """Return the object that a change is about, without decoding it again."""
    match change:
        case PodChanged(pod=pod):
            return Identity(pod.name, pod.namespace, pod.uid)
        case NodeChanged(node=node):
            return Identity(node.name)
        case GangChanged(spec=spec):
            return Identity(spec.key.name, spec.key.namespace)
        case ObjectChanged(object=found):
            return Identity(found.name, getattr(found, "namespace", ""))
    raise AssertionError(f"{change} is not about an object")
