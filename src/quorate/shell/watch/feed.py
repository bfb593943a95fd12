"""All that is watched, as one stream of changes. In: a client. Out: changes, through a callback.

Run by ``shell.app``. One reflector for each kind of object; an object that cannot be read is
quarantined: counted, logged, and taken out of the core's sight, while everything else goes on.
"""

from __future__ import annotations

import asyncio
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
from quorate.shell.watch.objects import (
    PODS,
    Identity,
    WatchedKind,
    for_status,
    identity,
    watched_kinds,
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
        fair_try_s: float = FAIR_TRY_S,
    ) -> None:
        """Prepare to watch; ``fair_try_s`` of infinity means to go on without no kind."""
        self._fair_try_s = fair_try_s
        self._on_change = on_change
        self._on_object = on_object
        self.objects: dict[GangKey, bytes] = {}
        """Of the newest version of each gang's object what its status is written by."""
        self.quarantined: dict[tuple[str, str], str] = {}
        """Why an object cannot be read, by kind and name."""
        self.served: set[str] = set()
        """The dialects whose objects the API server serves."""
        self.unavailable: dict[str, Unavailable] = {}
        """Kinds without which the others go on, by path: why, and what to do."""
        self._told: set[str] = set()
        """Paths of kinds that were listed, or are known not to be served."""
        self._required: list[str] = []
        self._of_gangs: set[str] = set()
        self._known: dict[str, dict[str, Identity]] = {}
        self._unreadable: dict[str, set[str]] = {}
        self._met: dict[str, _Met] = {}
        self.reflectors: dict[str, Reflector] = {}
        availability = Availability(clock, chance)
        for path, kind in watched_kinds(owned).items():
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
        """Whether all that can be listed was: before that, nothing may be decided.

        Of pods and nodes no new list may be due. Another kind counts while it is listed anew, as
        its watch would: what is known of it is a little old.
        """
        return all(self._is_known(path) for path in self.reflectors)

    def _is_known(self, path: str) -> bool:
        if path in self._required:
            return self.reflectors[path].is_synced
        return path in self._told or path in self.unavailable

    @property
    def is_fresh(self) -> bool:
        """Whether everything was listed, and no watch fails as far as we know.

        Gangs' objects that are not to be had do not count: they say nothing of nodes and pods.
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
            match event:
                case ListBegins():
                    self._met[kind.path] = _Met(set(), set())
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
                    self._hear_of_trouble(kind, event)

        return on_event

    def _hear_of_trouble(
        self, kind: WatchedKind, event: Absent | Garbled | Failing | Recovered
    ) -> None:
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
        """Apply the end of a list: what was known and is not in it has gone meanwhile."""
        met = self._met.pop(kind.path)
        unreadable = self._unreadable[kind.path]
        for name in unreadable - met.unreadable:
            self.quarantined.pop((kind.resource.kind, name), None)
        unreadable &= met.unreadable
        known = self._known[kind.path]
        for who in [who for uid, who in known.items() if uid not in met.known]:
            del known[_id(who)]
            if kind.resource is PODS or who.full_name not in met.unreadable:
                self._is_gone(kind, who)
        self._told.add(kind.path)
        self._restored(kind)
        if kind.dialect and kind.dialect not in self.served:
            self._tell_served(kind, None)

    def _failing(self, kind: WatchedKind, event: Failing) -> None:
        """Go on without a kind that had a fair try, and say so once for each cause."""
        if kind.required:
            return
        required = [self.reflectors[path] for path in self._required]
        if not is_unavailable(
            event,
            was_known=kind.path in self._told,
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
        self._tell_served(kind, why)

    def _restored(self, kind: WatchedKind) -> None:
        if self.unavailable.pop(kind.path, None) is not None:
            log.info("a kind is to be had again", path=kind.path)
            self._tell_served(kind, None)

    def _tell_served(self, kind: WatchedKind, why: Unavailable | None) -> None:
        """Tell the core whether a kind is to be had, and if not, why."""
        problem, hint = (why.problem, why.hint) if why else ("", "")
        if not kind.dialect:
            self._on_change(KindServed(kind.struct, problem, hint))
            return
        (self.served.discard if why else self.served.add)(kind.dialect)
        self._on_change(DialectServed(kind.dialect, why is None, problem, hint))

    def _absent(self, kind: WatchedKind, versions: tuple[str, ...] = ()) -> None:
        for name in self._unreadable[kind.path]:
            self.quarantined.pop((kind.resource.kind, name), None)
        self._unreadable[kind.path].clear()
        for who in list(self._known[kind.path].values()):
            self._is_gone(kind, who)
        self._told.add(kind.path)
        if kind.dialect:
            self.unavailable.pop(kind.path, None)
            self.served.discard(kind.dialect)
            self._on_change(DialectServed(kind.dialect, served=False))
        elif kind.optional:
            self._lose(kind, not_served(kind.resource, versions))
        else:
            self._restored(kind)
            log.error("the API server does not serve what every cluster has", path=kind.path)

    def _changed(self, kind: WatchedKind, raw: bytes) -> None:
        try:
            change = kind.changed(raw)
        except Malformed as error:
            self._quarantine(kind, error)
            return
        if isinstance(change, PodGone):
            self._past(kind, raw, change)
            return
        who = _who(change)
        id_ = _id(who)
        self._known[kind.path][id_] = who
        if kind.path in self._met:
            self._met[kind.path].known.add(id_)
        if self.quarantined:
            self._readable(kind, who.full_name)
        if isinstance(change, GangChanged):
            self.objects[change.spec.key] = for_status(raw)
            self._on_object(change.spec.key)
        self._on_change(change)

    def _past(self, kind: WatchedKind, raw: bytes, change: PodGone) -> None:
        """Leave out a pod that is there and means nothing any more."""
        if self.quarantined:
            self._readable(kind, identity(raw).full_name)
        if self._known[kind.path].pop(change.uid, None) is not None:
            self._on_change(change)

    def _gone(self, kind: WatchedKind, raw: bytes) -> None:
        try:
            who = identity(raw)
        except Malformed as error:
            self._quarantine(kind, error)
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


def _id(who: Identity) -> str:
    return who.uid or who.full_name


def _who(change: AnyChange) -> Identity:
    """Return whom a change is about, without reading the object again."""
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
