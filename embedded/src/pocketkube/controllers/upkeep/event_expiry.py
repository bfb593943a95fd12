"""Events are forgotten an hour after they were last written, as a real API server does.

Source: ``--event-ttl`` of kube-apiserver, 1 h.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pocketkube.controllers.base import Controller, Shared, Work
from pocketkube.errors import ApiError
from pocketkube.objects import Object, parsed_time_s
from pocketkube.store.store import Event

EVENT_TTL_S = 3600.0


class EventExpiry(Controller):
    """Deletes Events that nobody has written for an hour."""

    buckets = ("events",)

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._events = self.api.registry.named("v1", "events")

    def on_event(self, event: Event) -> None:
        """Note when an Event that is new will be due."""
        if event.type == "ADDED":
            self.enqueue((event.entry.namespace, event.entry.name), EVENT_TTL_S)

    def reconcile(self, key: Any) -> Work:
        """Delete one Event, or look again when its hour is over."""
        found = self.api.find("events", *key)
        if found is None:
            return None
        left_s = EVENT_TTL_S - (self.api.now_s() - _written_s(found))
        if left_s > 0:
            self.enqueue(key, left_s)
            return None
        with contextlib.suppress(ApiError):
            self.api.delete(self._events, *key)
        return None


def _written_s(event: Object) -> float:
    """Return when an Event was last written, in seconds since 1970."""
    times = (
        event["metadata"].get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    )
    return max(parsed_time_s(one) for one in times if one)
