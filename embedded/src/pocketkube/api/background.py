"""What agents and controllers share: a queue of what is due, and Events about what they do."""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from pocketkube.api.api import Api
from pocketkube.errors import ApiError
from pocketkube.objects import Object, rfc3339

_OBJECTS_MAX = 4096  # about which something is remembered
_EVENTS_MAX = 25  # of one component about one object; more of the same are counted


class Recorder:
    """Writes Events for controllers and kubelets."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # Names of Events by reason and message, by component and the object's UID.
        self._known: OrderedDict[tuple[str, str], dict[tuple[str, str], str]] = OrderedDict()
        self._serial = itertools.count()

    def record(
        self, component: str, about: Object, kind: str, reason: str, message: str, host: str = ""
    ) -> None:
        """Write an Event, or count one that is there. Raises no ApiError: Events may get lost.

        ``host`` is the node of a kubelet.
        """
        now_s = self._api.now_s()
        key = (component, about["metadata"]["uid"])
        names = self._known.setdefault(key, {})
        self._known.move_to_end(key)
        if len(self._known) > _OBJECTS_MAX:
            self._known.popitem(last=False)
        namespace = about["metadata"].get("namespace") or "default"
        name = names.get((reason, message))

        def count(event: Object) -> None:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = rfc3339(now_s)

        if name and self._api.amend("events", namespace, name, count) is not None:
            return
        if len(names) >= _EVENTS_MAX:
            return
        event = _event(component, about, kind, reason, message, host, now_s)
        serial = int(now_s * 1e9) + next(self._serial)
        name = event["metadata"]["name"] = f"{about['metadata']['name']}.{serial:016x}"
        with contextlib.suppress(ApiError):
            self._api.create(self._api.registry.named("v1", "events"), namespace, event)
            names[reason, message] = name


def _event(
    component: str, about: Object, kind: str, reason: str, message: str, host: str, now_s: float
) -> Object:
    metadata = about["metadata"]
    involved = {
        "kind": about["kind"],
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": about["apiVersion"],
        "resourceVersion": metadata.get("resourceVersion"),
    }
    namespace = metadata.get("namespace") or "default"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": reason,
        "message": message,
        "source": {"component": component, **({"host": host} if host else {})},
        "firstTimestamp": rfc3339(now_s),
        "lastTimestamp": rfc3339(now_s),
        "count": 1,
        "type": kind,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": host,
    }


Item = TypeVar("Item", bound=Hashable)


class WorkQueue(Generic[Item]):
    """Items with the time at which they are due. Each is in it once: the earliest time counts."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due_s: dict[Item, float] = {}
        self._heap: list[tuple[float, int, Item]] = []
        self._order = itertools.count()
        self.on_add: Callable[[], None] = lambda: None  #: wakes whoever sleeps until the next item

    def add(self, item: Item, delay_s: float = 0.0) -> None:
        """Have the item due after a delay, or earlier if it was to be so already."""
        self.add_at(item, self._clock() + delay_s)

    def add_at(self, item: Item, due_s: float) -> None:
        """Have the item due at a time of the clock, or earlier if it was to be so already."""
        if self._due_s.get(item, float("inf")) <= due_s:
            return
        self._due_s[item] = due_s
        heapq.heappush(self._heap, (due_s, next(self._order), item))
        self.on_add()

    def pop(self, now_s: float) -> Item | None:
        """Take the item that is due for longest; None when none is due."""
        while self._heap and self._heap[0][0] <= now_s:
            due_s, _, item = heapq.heappop(self._heap)
            if self._due_s.get(item) == due_s:
                del self._due_s[item]
                return item
        return None

    def next_s(self) -> float | None:
        """Return when the next item is due; None when there is none."""
        while self._heap and self._due_s.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
