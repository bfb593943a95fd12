"""Bodies of reports: Events and conditions. Pure: values in, JSON values out. Used by ``reporter``.

Names and words are the default scheduler's (kubernetes pkg/scheduler), so that tools which read
them keep working.
"""

from __future__ import annotations

from typing import cast

import msgspec

from quorate.core.model import Pod
from quorate.core.model.plan import Preemption
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.words.plain_text import plain, plain_json
from quorate.dialects.common.fields import format_micro_time, format_time
from quorate.shell.annotations import EXPLAINS, EXPLANATION

_NOTE_BYTES_MAX = 1024
_NAME_CHARS_MAX = 253
_BLOCKERS_MAX, _RULED_OUT_MAX = 10, 20
"""So many classes of pods, and rules for each of them, have a place in an Event."""


def condition_reason(reason: Reason) -> str:
    """Return the reason of PodScheduled=False.

    ``Unschedulable`` makes autoscalers add nodes, so it is used only where nodes would help.
    """
    return "Unschedulable" if reason.nodes_would_help else str(reason)


def not_scheduled(reason: Reason, message: str, now_s: float) -> dict[str, object]:
    """Return the strategic merge patch of a pod's status that says why it has no node."""
    return {
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": condition_reason(reason),
                    "message": clipped(message),
                    "lastTransitionTime": format_time(now_s),
                    "lastProbeTime": None,
                }
            ]
        }
    }


def event(
    pod: Pod,
    *,
    kind: str,
    reason: str,
    action: str,
    note: str,
    instance: str,
    now_s: float,
    by: str = "",
) -> dict[str, object]:
    """Return an events.k8s.io/v1 Event about a pod. ``kind`` is Normal or Warning.

    It is said by the scheduler ``by``, or else by the pod's.
    """
    regarding = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
    return event_about(
        regarding,
        kind=kind,
        reason=reason,
        action=action,
        note=note,
        instance=instance,
        now_s=now_s,
        by=by or pod.scheduler,
    )


def event_about(
    regarding: dict[str, str],
    *,
    kind: str,
    reason: str,
    action: str,
    note: str,
    instance: str,
    now_s: float,
    by: str,
) -> dict[str, object]:
    """Return the same about any object; that of one without a namespace is in ``default``."""
    suffix = f".{int(now_s * 1e9):x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": regarding["name"][: _NAME_CHARS_MAX - len(suffix)] + suffix,
            "namespace": regarding.get("namespace", "default"),
        },
        "eventTime": format_micro_time(now_s),
        "type": kind,
        "reason": reason,
        "action": action,
        "note": clipped(note),
        "reportingController": by,
        "reportingInstance": instance,
        "regarding": regarding,
    }


def series(count: int, now_s: float) -> dict[str, object]:
    """Return the merge patch of a repeated Event: ``count`` times so far, last at ``now_s``."""
    return {"series": {"count": count, "lastObservedTime": format_micro_time(now_s)}}


def caused_by(event: dict[str, object], preemption: Preemption) -> dict[str, object]:
    """Return an Event about a victim; ``related`` is the pod that preempts it."""
    related = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": preemption.namespace,
        "name": preemption.name,
        "uid": preemption.uid,
    }
    return {**event, "related": related}


def about(event: dict[str, object], regarding: dict[str, str] | None) -> dict[str, object]:
    """Return an Event about ``regarding`` (None: its pod), in its namespace."""
    if regarding is None:
        return event
    meta = {**cast(dict[str, object], event["metadata"])}
    suffix = str(meta["name"]).rpartition(".")[2]
    meta["name"] = f"{regarding['name'][: _NAME_CHARS_MAX - len(suffix) - 1]}.{suffix}"
    return {**event, "metadata": meta, "regarding": regarding}


def explaining(event: dict[str, object], explanation: Explanation) -> dict[str, object]:
    """Return an Event with the explanation of its gang, which ``quorate why`` prints."""
    told = msgspec.structs.replace(
        explanation,
        message=clipped(explanation.message),
        hint=clipped(explanation.hint),
        warnings=(),  # they are told by what the pods and the gang's object say themselves
        blockers=tuple(
            msgspec.structs.replace(one, ruled_out=one.ruled_out[:_RULED_OUT_MAX])
            for one in explanation.blockers[:_BLOCKERS_MAX]
        ),
    )
    meta = {
        **cast(dict[str, object], event["metadata"]),
        "labels": {EXPLAINS: "pod" if explanation.key.is_single else "gang"},
        "annotations": {EXPLANATION: plain_json(msgspec.json.encode(told).decode())},
    }
    return {**event, "metadata": meta}


def clipped(note: str) -> str:
    """Escape control characters in a note, and cut it to the API's 1024 bytes."""
    note = plain(note)
    encoded = note.encode()
    if len(encoded) <= _NOTE_BYTES_MAX:
        return note
    return encoded[: _NOTE_BYTES_MAX - 4].decode(errors="ignore") + " ..."
