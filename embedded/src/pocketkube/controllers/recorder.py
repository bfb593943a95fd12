"""Events, the objects: what ``kubectl describe`` shows at its end.

As client-go does it: repeated messages are counted, and one object gets a limited number; similar
ones are not combined. Source: k8s.io/client-go ``tools/record/events_cache.go`` of 1.36.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict

from pocketkube.api.api import Api
from pocketkube.errors import ApiError
from pocketkube.objects import Object, rfc3339

_OBJECTS_MAX = 4096  # about which something is remembered
_BURST = 25  # Events of one object at first
_REFILL_S = 300.0  # seconds until one more


class _Memory:
    """What was said about one object by one component."""

    __slots__ = ("last_s", "names", "tokens")

    def __init__(self, now_s: float) -> None:
        self.tokens = float(_BURST)
        self.last_s = now_s
        self.names: dict[tuple[str, str], str] = {}  # reason and message to the Event's name


class Recorder:
    """Writes Events for all controllers."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._memory: OrderedDict[tuple[str, str], _Memory] = OrderedDict()
        self._serial = itertools.count()

    def record(self, component: str, about: Object, kind: str, reason: str, message: str) -> None:
        """Write an Event, or count one that is there. Raises no ApiError: Events may get lost."""
        now_s = self._api.now_s()
        memory = self._remembered(component, about["metadata"]["uid"], now_s)
        if memory.tokens < 1:
            return
        memory.tokens -= 1
        namespace = about["metadata"].get("namespace") or "default"
        name = memory.names.get((reason, message))

        def count(event: Object) -> None:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = rfc3339(now_s)

        if name and self._api.amend("events", namespace, name, count) is not None:
            return
        event = _event(component, about, kind, reason, message, now_s)
        serial = int(now_s * 1e9) + next(self._serial)
        name = event["metadata"]["name"] = f"{about['metadata']['name']}.{serial:016x}"
        memory.names[reason, message] = name
        try:
            self._api.create(self._api.registry.named("v1", "events"), namespace, event)
        except ApiError:
            memory.names.pop((reason, message))

    def _remembered(self, component: str, uid: str, now_s: float) -> _Memory:
        memory = self._memory.get((component, uid))
        if memory is None:
            memory = self._memory[component, uid] = _Memory(now_s)
            if len(self._memory) > _OBJECTS_MAX:
                self._memory.popitem(last=False)
            return memory
        self._memory.move_to_end((component, uid))
        memory.tokens = min(_BURST, memory.tokens + (now_s - memory.last_s) / _REFILL_S)
        memory.last_s = now_s
        return memory


def _event(
    component: str, about: Object, kind: str, reason: str, message: str, now_s: float
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
        "source": {"component": component},
        "firstTimestamp": rfc3339(now_s),
        "lastTimestamp": rfc3339(now_s),
        "count": 1,
        "type": kind,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": "",
    }
