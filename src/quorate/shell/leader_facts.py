"""What only the running scheduler knows, read from what it has told: held slots.

Holds live in the leader's memory, so a look at the cluster (``shell.survey``) cannot find them. The
leader writes them down: as Events about the gang that has them, and in the conditions of the pods
that wait because of them. Called by ``cli``. What may not be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

import msgspec

from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.room.held_room import speaks_of_holds
from quorate.core.scheduler import Scheduler
from quorate.dialects.common.fields import parse_time
from quorate.shell.annotations import HELD_FOR, HELD_UNTIL
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.objects import Condition, Metadata
from quorate.shell.kube.paths import pod_path
from quorate.shell.report.held import HELD, NOT_HELD, RELEASED

_EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events?{}"
_NAMESPACES_ASKED_MAX = 20
_GANGS_ASKED_MAX = 20


class _Event(msgspec.Struct, rename="camel"):
    metadata: Metadata
    reason: str = ""
    note: str = ""
    event_time: str | None = None


class _Events(msgspec.Struct):
    items: list[_Event]


class _Status(msgspec.Struct):
    conditions: list[Condition] | None = None


class _Pod(msgspec.Struct):
    status: _Status | None = None


async def with_told(
    client: KubeClient, scheduler: Scheduler, found: list[Explanation], now_s: float
) -> list[Explanation]:
    """Return the explanations with what the leader said of held slots, where that is news."""
    held: dict[GangKey, str] = {}
    placed = {one.key for one in found if one.members.bound and not one.key.is_single}
    for namespace in sorted({key.namespace for key in placed})[:_NAMESPACES_ASKED_MAX]:
        held |= await _held_in(client, namespace, placed, now_s)
    asked = 0
    told = []
    for one in found:
        is_unclear = one.reason is Reason.STARTING and one.members.waiting > 0
        if is_unclear and asked < _GANGS_ASKED_MAX:
            asked += 1
            told.append(await _as_told(client, scheduler, one))
        else:
            told.append(msgspec.structs.replace(one, held=held.get(one.key, "")))
    return told


async def _held_in(
    client: KubeClient, namespace: str, gangs: Iterable[GangKey], now_s: float
) -> dict[GangKey, str]:
    """Return the newest note of each gang, if it says what is held now or is not."""
    events: list[_Event] = []
    for reason in (HELD, NOT_HELD, RELEASED):
        query = urlencode({"fieldSelector": f"reason={reason}"})
        try:
            raw = await client.get_list(_EVENTS.format(namespace, query))
            events += msgspec.json.decode(raw, type=_Events).items
        except (ApiError, msgspec.MsgspecError):
            return {}
    names = {f"{key.dialect}/{key.name}": key for key in gangs if key.namespace == namespace}
    newest: dict[GangKey, _Event] = {}
    for event in sorted(events, key=lambda one: one.event_time or ""):
        key = names.get((event.metadata.annotations or {}).get(HELD_FOR, ""))
        if key is not None:
            newest[key] = event
    return {key: event.note for key, event in newest.items() if _is_held(event, now_s)}


def _is_held(event: _Event, now_s: float) -> bool:
    until_s = parse_time((event.metadata.annotations or {}).get(HELD_UNTIL, ""))
    return event.reason != RELEASED and until_s is not None and until_s > now_s


async def _as_told(client: KubeClient, scheduler: Scheduler, one: Explanation) -> Explanation:
    """Return the leader's reason where it is held room: to a look it seems free."""
    members = scheduler.cluster.gangs[one.key].members.values()
    waiting = [entry.pod for entry in members if entry.where is Where.WAITING]
    pod = min(waiting, key=lambda pod: pod.name)
    try:
        raw = await client.get(pod_path(pod.namespace, pod.name))
        status = msgspec.json.decode(raw, type=_Pod).status
    except (ApiError, msgspec.MsgspecError):
        return one
    for condition in (status.conditions or ()) if status else ():
        is_it = condition.type == "PodScheduled" and condition.status == "False"
        if is_it and speaks_of_holds(condition.message):
            remedy = "free or add room, or wait"
            return msgspec.structs.replace(
                one, reason=Reason.ROOM_HELD, sentence=condition.message, remedy=remedy
            )
    return one
