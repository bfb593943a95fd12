"""Reservations of the leader, read from what it has written into the cluster.

Reservations for replacements live in the leader's memory, so ``shell.survey`` cannot find them. The
leader writes them down: in Events about the gang that has them, and in the conditions of the pods
that wait because of them. Called by ``cli``. What the caller may not read is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

import msgspec

from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.room.reserved_room import speaks_of_reservations
from quorate.core.scheduler import Scheduler
from quorate.dialects.common.fields import parse_time
from quorate.shell.annotations import RESERVED_FOR, RESERVED_UNTIL
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.objects import Metadata, PodObject
from quorate.shell.kube.paths import pod_path
from quorate.shell.report.reservations import NOT_RESERVED, RELEASED, RESERVED

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


async def with_reservations(
    client: KubeClient, scheduler: Scheduler, found: list[Explanation], now_s: float
) -> list[Explanation]:
    """Return the explanations, with the leader's reservations added where they matter."""
    notes: dict[GangKey, str] = {}
    placed = {one.key for one in found if one.members.bound and not one.key.is_single}
    for namespace in sorted({key.namespace for key in placed})[:_NAMESPACES_ASKED_MAX]:
        notes |= await _reservations_in(client, namespace, placed, now_s)
    asked = 0
    result = []
    for one in found:
        is_unclear = one.reason is Reason.STARTING and one.members.waiting > 0
        if is_unclear and asked < _GANGS_ASKED_MAX:
            asked += 1
            result.append(await _with_leaders_reason(client, scheduler, one))
        else:
            result.append(msgspec.structs.replace(one, held=notes.get(one.key, "")))
    return result


async def _reservations_in(
    client: KubeClient, namespace: str, gangs: Iterable[GangKey], now_s: float
) -> dict[GangKey, str]:
    """Return the newest note of each gang, unless its reservation was released or is over."""
    events: list[_Event] = []
    for reason in (RESERVED, NOT_RESERVED, RELEASED):
        query = urlencode({"fieldSelector": f"reason={reason}"})
        try:
            raw = await client.get_list(_EVENTS.format(namespace, query))
            events += msgspec.json.decode(raw, type=_Events).items
        except (ApiError, msgspec.MsgspecError):
            return {}
    names = {f"{key.dialect}/{key.name}": key for key in gangs if key.namespace == namespace}
    newest: dict[GangKey, _Event] = {}
    for event in sorted(events, key=lambda one: one.event_time or ""):
        key = names.get((event.metadata.annotations or {}).get(RESERVED_FOR, ""))
        if key is not None:
            newest[key] = event
    return {key: event.note for key, event in newest.items() if _is_reserved(event, now_s)}


def _is_reserved(event: _Event, now_s: float) -> bool:
    until_s = parse_time((event.metadata.annotations or {}).get(RESERVED_UNTIL, ""))
    return event.reason != RELEASED and until_s is not None and until_s > now_s


async def _with_leaders_reason(
    client: KubeClient, scheduler: Scheduler, one: Explanation
) -> Explanation:
    """Return the leader's reason if that is a reservation: to us the room seems free."""
    members = scheduler.cluster.gangs[one.key].members.values()
    waiting = [entry.pod for entry in members if entry.where is Where.WAITING]
    pod = min(waiting, key=lambda pod: pod.name)
    try:
        raw = await client.get(pod_path(pod.namespace, pod.name))
        conditions = msgspec.json.decode(raw, type=PodObject).status.conditions or ()
    except (ApiError, msgspec.MsgspecError):
        return one
    for condition in conditions:
        is_it = condition.type == "PodScheduled" and condition.status == "False"
        if is_it and speaks_of_reservations(condition.message):
            hint = "free or add room, or wait"
            return msgspec.structs.replace(
                one, reason=Reason.ROOM_HELD, message=condition.message, hint=hint
            )
    return one
