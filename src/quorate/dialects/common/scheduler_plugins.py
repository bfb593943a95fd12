"""PodGroup of scheduler-plugins: what its two API groups, ``x_k8s`` and ``sigs``, have in common.

In: a PodGroup's JSON and what is known of the gang. Out: ``GangSpec``, and the status that
scheduler-plugins' own controller would write (pkg/controllers, as of August 2026).
"""

from __future__ import annotations

import msgspec

from quorate.core.model import GangKey, GangSpec
from quorate.core.model.reasons import GangView
from quorate.core.words.plain_text import plain
from quorate.dialects.base import INT32_MAX, Malformed
from quorate.dialects.common import fields

FIELDS = ("minMember", "minResources", "scheduleTimeoutSeconds")
"""Fields of the spec, by its CRDs."""
_TERMINAL = ("Finished", "Failed")
_OCCUPANT_CHARS_MAX = 512
"""A name of a namespace and one of an object; an owner's name is whatever a pod says it is."""


def decode(raw: bytes, dialect: str, *, least: int) -> GangSpec:
    """Return the gang. An absent minMember is 0, which scheduler-plugins meets with any member.

    ``least`` is the smallest minMember that the CRD stores; everything up to 0 means 0.
    """
    meta, whole = fields.read_object(raw)
    try:
        spec = fields.mapping(whole, "spec", "spec")
        min_count = fields.whole_number(spec, "minMember", "spec.minMember", least=least)
        return GangSpec(
            key=GangKey(meta.namespace, dialect, meta.name),
            min_count=max(0, min_count or 0),
            uid=meta.uid,
            created_s=meta.created_s,
            min_resources=fields.resources(spec, "minResources", "spec.minResources"),
            timeout_s=_timeout_s(spec),
            owner=meta.owner,
        )
    except fields.FieldError as error:
        return fields.invalid_gang(dialect, meta, str(error))


def _timeout_s(spec: fields.JsonObject) -> float | None:
    """Return the bound of one attempt; the field is a nullable pointer and 0 means the default."""
    if spec.get("scheduleTimeoutSeconds") is None:
        return None
    path = "spec.scheduleTimeoutSeconds"
    seconds = fields.whole_number(spec, "scheduleTimeoutSeconds", path, least=-INT32_MAX)
    return float(seconds) if seconds and seconds > 0 else None


def status_body(view: GangView, raw: bytes) -> bytes | None:
    """Return the merge patch of the status, or None when the object says it already.

    Counts are a pure function of the view: unlike HEAD, they are refreshed in phase Pending too.
    A phase of ``Finished`` or ``Failed`` is final, as at HEAD: nothing is written any more.
    """
    try:
        meta, whole = fields.read_object(raw)
        now = fields.mapping(whole, "status", "status")
    except (Malformed, fields.FieldError):
        return None
    phase = fields.text(now, "phase")
    if phase and not view.scheduler_known:
        return None
    if phase in _TERMINAL or (view.uid and meta.uid and view.uid != meta.uid):
        return None
    members = view.members
    changed: dict[str, object] = {}
    wanted = _phase(view)
    if wanted != phase:
        changed["phase"] = wanted
    left_pending = phase in ("", "Pending") and wanted != "Pending"
    nobody_yet = wanted != "Pending" and not now.get("occupiedBy")
    if view.owner and (left_pending or nobody_yet):
        occupant = plain(f"{view.key.namespace}/{view.owner.name}", _OCCUPANT_CHARS_MAX)
        if now.get("occupiedBy") != occupant:
            changed["occupiedBy"] = occupant
    for count in ("running", "succeeded", "failed"):
        value = getattr(members, count)
        if (now.get(count) or 0) != value:
            changed[count] = value
    return msgspec.json.encode({"status": changed}) if changed else None


def _phase(view: GangView) -> str:
    """Return the phase in which HEAD's machine comes to rest, without the writes in between.

    From any phase that is not final, enough pods lead through Scheduling and too few to Pending.
    A min of 0 counts as 1: by the letter, an empty gang would be Finished, for ever, before its
    first pod exists.
    """
    members = view.members
    least = max(1, members.needed)
    if members.total < least:
        return "Pending"
    wanted = "Running" if members.succeeded + members.running >= least else "Scheduling"
    if members.failed and members.failed + members.running + members.succeeded >= least:
        wanted = "Failed"
    if members.succeeded >= least:
        wanted = "Finished"
    return wanted
