"""Server-side apply: a writer says what it wants, and owns that; nobody else's fields are lost.

Source of the rules: sigs.k8s.io/structured-merge-diff v6 ``merge/update.go`` and
k8s.io/apimachinery ``pkg/util/managedfields`` of 1.36.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Object, meta, name_of, namespace_of
from pocketkube.patch.apply.combining import merged, without
from pocketkube.patch.apply.conflicts import Conflict, conflict_error
from pocketkube.patch.apply.field_paths import (
    NOTHING,
    Fields,
    preorder,
    without_trees,
)
from pocketkube.patch.apply.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    NEVER_OWNED,
    UPDATE,
    Ignored,
    Manager,
    Managers,
    Owned,
    manager_of,
    managers_of,
    updated,
    with_managers,
    without_ignored,
    without_lost,
)
from pocketkube.patch.apply.structure import (
    ABSENT,
    MismatchError,
    difference,
    fields_of,
    nothing_like,
    settled,
    with_named_parents,
)
from pocketkube.patch.values import same
from pocketkube.schema.check import findings
from pocketkube.schema.shape import Shape


@dataclass(frozen=True, slots=True)
class _Request:
    """One apply: what, by whom, when."""

    applied: Object
    shape: Shape
    who: Manager
    force: bool
    api_version: str
    now: str
    ignored: Ignored


class _Outcome(NamedTuple):
    object: Object
    managers: Managers
    conflicts: list[Conflict]


def apply(
    live: Object | None,
    applied: Object,
    shape: Shape,
    *,
    manager: str,
    force: bool,
    api_version: str,
    now: str,
    subresource: str = "",
    ignored: Ignored = (),
    kind: str = "",
) -> Object:
    """Return the object as ``manager`` wants it, with managedFields that say so.

    In: the stored object, None when there is none; the applied configuration; the endpoint's
    ``api_version`` and ``kind`` (not checked when empty); ``now`` in RFC 3339; ``ignored``, what
    this kind of write cannot change. Nothing of the input is changed, and an apply without effect
    returns an object equal to ``live``.

    Raises ApiError: 400 for another kind or version, or for managedFields in ``applied``; 409 for
    fields that others own with other values, unless ``force``; 500, as upstream, for what is not of
    the shape.
    """
    _check(applied, shape, api_version, kind)
    who = manager_of(manager, APPLY, api_version, subresource)
    request = _Request(copy.deepcopy(applied), shape, who, force, api_version, now, ignored)
    before = with_managers(copy.deepcopy(live or {}), {})
    try:
        managers = _known(live, before, request)
        outcome = _applied(before, managers, request)
    except MismatchError as error:
        raise ApiError(500, "", f"failed to create typed live object: {error}") from error
    if outcome.conflicts:
        raise conflict_error(outcome.conflicts)
    return with_managers(outcome.object, outcome.managers)


def _check(applied: Object, shape: Shape, api_version: str, kind: str) -> None:
    group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
    what = f"{group}/{version}, Kind={applied.get('kind', '')}"
    if applied.get("apiVersion") != api_version or kind not in ("", applied.get("kind")):
        raise bad_request(f"invalid object type: {what}")
    if "managedFields" in meta(applied):
        raise bad_request("metadata.managedFields must be nil")
    found = findings(applied, shape)
    wrong = [
        f".{one.path}: expected {one.expected or 'object'}, got {one.got}"
        for one in found.mismatches
    ]
    wrong += [f".{path}: field not declared in schema" for path in found.unknown]
    if wrong:
        name = f"{namespace_of(applied)}/{name_of(applied)}; {what}"
        raise ApiError(500, "", f"failed to create typed patch object ({name}): {'; '.join(wrong)}")


def _known(live: Object | None, before: Object, request: _Request) -> Managers:
    """Return the managers so far, found now when nobody has applied to this object before."""
    managers = managers_of(live)
    if live is not None and not managers:
        shape, version = request.shape, request.api_version
        first = Manager(BEFORE_FIRST_APPLY, UPDATE, "", version)
        start, ignored = nothing_like(shape), request.ignored
        managers = updated({}, start, before, shape, first, version, request.now, ignored)
    return {
        who: Owned(settled(owned.fields, request.shape), owned.api_version, owned.time)
        for who, owned in managers.items()
    }


def _applied(before: Object, managers: Managers, request: _Request) -> _Outcome:
    """Merge, take out what is no longer applied, and see whose fields that changes."""
    shape, who = request.shape, request.who
    together = merged(before, request.applied, shape)
    together = {} if together is ABSENT else together
    mine = without_trees(fields_of(request.applied, shape), request.ignored)
    had = managers[who] if who in managers else Owned(NOTHING, request.api_version)
    owners = {**managers, who: Owned(mine, request.api_version, had.time)}
    after = _pruned(together, owners, had.fields, shape)
    change = without_ignored(difference(before, after, shape), request.ignored)
    others = {other: owned for other, owned in owners.items() if other != who}
    conflicts = [
        Conflict(other, path)
        for other, owned in others.items()
        for path in preorder(owned.fields & change.written)
    ]
    left = without_lost(others, change.written | change.removed)
    # The real server leaves the time alone when nothing but ownership changed.
    time = had.time if same(before, after) else request.now
    if mine - NEVER_OWNED:
        left[who] = Owned(mine - NEVER_OWNED, request.api_version, time)
    return _Outcome(after, left, [] if request.force else conflicts)


def _pruned(together: Object, owners: Managers, had: Fields, shape: Shape) -> Object:
    """Take out what the manager applied before, applies no longer, and nobody else owns."""
    if not had:
        return together
    had = with_named_parents(had, shape)
    present = with_named_parents(fields_of(together, shape), shape)
    owned = with_named_parents(NOTHING.union(*(o.fields for o in owners.values())), shape)
    bare = without(together, had, shape)
    kept = with_named_parents(fields_of(bare, shape), shape)
    # What went with its parent, though somebody owns it, comes back...
    unowned = without(together, present - (kept | owned), shape)
    # ... and so does what went with it and was never this manager's.
    kept = with_named_parents(fields_of(unowned, shape), shape)
    found: Object = without(together, (present - kept) & had, shape)
    return found
