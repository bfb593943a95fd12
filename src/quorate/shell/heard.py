"""What the leader has said of gangs: the explanations that its Events carry.

In: the Events of a namespace or of all, by their label. Out: the newest explanation of each gang,
and when it was said. Called by ``survey``. An Event that cannot be read, or that speaks of another
namespace than its own, says nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation
from quorate.dialects.base import Malformed, Resource
from quorate.dialects.common.fields import parse_time
from quorate.shell.annotations import EXPLAINS, EXPLANATION
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.lists.events import (
    Added,
    Deleted,
    ListBegins,
    Listed,
    Modified,
    SomeListed,
    WatchEvent,
)
from quorate.shell.kube.lists.reflector import Pace, Reflector
from quorate.shell.kube.objects import Metadata
from quorate.shell.kube.paths import resource_path, with_params
from quorate.shell.process.clock import Clock
from quorate.shell.watch.objects import identity

EVENTS = Resource("", "v1", "events", "Event")
"""In the version for which Kubernetes' ClusterRole view has rights."""


class Heard(NamedTuple):
    """What was said of a gang, and when (epoch seconds); ``uid`` is that of what it was said at."""

    explanation: Explanation
    at_s: float
    uid: str = ""


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class _Regarded(msgspec.Struct):
    uid: str = ""


class _Event(msgspec.Struct, rename="camel"):
    metadata: Metadata
    involved_object: _Regarded = msgspec.field(default_factory=_Regarded)
    event_time: str | None = None
    series: _Series | None = None


_EVENT = msgspec.json.Decoder(_Event)
_EXPLANATION = msgspec.json.Decoder(Explanation)


class Hearing:
    """Keeps the newest explanation of each gang. ``reflector`` has to run."""

    def __init__(
        self, client: KubeClient, namespace: str | None, clock: Clock, chance: Callable[[], float]
    ) -> None:
        """Prepare to read the Events of a namespace; None: of all."""
        events = resource_path(EVENTS.group, EVENTS.version, EVENTS.plural, namespace)
        self.path = with_params(events, {"labelSelector": EXPLAINS})
        self.reflector = Reflector(
            client,
            self.path,
            on_event=self._on_event,
            clock=clock,
            chance=chance,
            pace=Pace(absent_poll_s=None),
            kind=EVENTS.kind,
        )
        self._has_news = False
        self._heard: dict[GangKey, dict[str, Heard]] = {}
        self._about: dict[str, GangKey] = {}
        self._listed: set[str] = set()

    def of(self, key: GangKey) -> Heard | None:
        """Return what was said last of a gang; None: nothing."""
        return max(self._heard.get(key, {}).values(), key=lambda one: one.at_s, default=None)

    def take_news(self) -> bool:
        """Return whether something came since this was asked last."""
        has_news, self._has_news = self._has_news, False
        return has_news

    def _on_event(self, event: WatchEvent) -> None:
        self._has_news = True
        match event:
            case ListBegins():
                self._listed = set()
            case SomeListed():
                self._listed |= {self._take(raw) for raw in event.items}
            case Listed():
                for name in self._about.keys() - self._listed:
                    self._forget(name)
            case Added() | Modified():
                self._take(event.raw)
            case Deleted():
                self._forget(_full_name(event.raw))
            case _:
                pass

    def _take(self, raw: bytes) -> str:
        name = _full_name(raw)
        self._forget(name)
        with contextlib.suppress(msgspec.MsgspecError):  # of another version, or a stranger's
            event = _EVENT.decode(raw)
            last = event.series.last_observed_time if event.series is not None else None
            at_s = parse_time(last or event.event_time or "")
            said = _EXPLANATION.decode((event.metadata.annotations or {}).get(EXPLANATION, ""))
            if at_s is not None and said.key.namespace == event.metadata.namespace:
                self._about[name] = said.key
                self._heard.setdefault(said.key, {})[name] = Heard(
                    said, at_s, event.involved_object.uid
                )
        return name

    def _forget(self, name: str) -> None:
        key = self._about.pop(name, None)
        if key is not None:
            del self._heard[key][name]


def _full_name(raw: bytes) -> str:
    """Return the name of an Event in its namespace; ``""``: it has none that can be read."""
    try:
        return identity(raw).full_name
    except Malformed:
        return ""
