"""The options of a request, from its query and body: how to write, to delete, to list.

Source: ``metav1.CreateOptions`` and its kin, and their checks in k8s.io/apimachinery
``pkg/apis/meta/v1/validation`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from multidict import MultiMapping

from pocketkube import errors
from pocketkube.api.writing import Deleting, User, Writing
from pocketkube.causes import required, unsupported
from pocketkube.errors import Cause
from pocketkube.schema.binary import protobuf
from pocketkube.schema.document import Document

_GROUP = "meta.k8s.io"
_VALIDATIONS = ("Ignore", "Warn", "Strict")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}

Query = MultiMapping[str]


def is_true(text: str | None) -> bool:
    """Read a truth value as a query has it: whatever is given and is not false, or 0, is true."""
    return text is not None and text.lower() not in ("false", "0")


def whole_number(query: Query, name: str) -> int | None:
    """Read a number of a query, None when there is none. Raises ApiError (400)."""
    text = query.get(name)
    if text is None:
        return None
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def writing_of(
    query: Query,
    user: User,
    warn: Callable[[str], None],
    *,
    method: str = "POST",
    is_apply: bool = False,
) -> Writing:
    """Read the options of a create, update or patch. Raises ApiError (422)."""
    validation = query.get("fieldValidation") or "Warn"
    causes = []
    if method == "PATCH" and is_apply and not query.get("fieldManager"):
        causes.append(required("fieldManager", "is required for apply patch"))
    dry_run = query.getall("dryRun", [])
    causes += _dry_run_causes(dry_run)
    if validation not in _VALIDATIONS:
        causes.append(unsupported("fieldValidation", validation, ("Ignore", "Strict", "Warn")))
    _refuse(_KINDS.get(method, "CreateOptions"), causes)
    return Writing(
        user=user,
        dry_run=bool(dry_run),
        field_validation=validation,  # type: ignore[arg-type]  # checked above
        warn=warn,
    )


def _dry_run_causes(values: Sequence[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    return [unsupported("dryRun", list(values), ("All",))]


def _refuse(kind: str, causes: list[Cause]) -> None:
    if causes:
        raise errors.invalid(_GROUP, kind, "", causes)


class _Preconditions(msgspec.Struct):
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815  # as in DeleteOptions


class _DeleteOptions(msgspec.Struct):
    apiVersion: str = ""  # noqa: N815
    kind: str = ""
    gracePeriodSeconds: int | None = None  # noqa: N815
    propagationPolicy: str | None = None  # noqa: N815
    orphanDependents: bool | None = None  # noqa: N815
    preconditions: _Preconditions | None = None
    dryRun: list[str] | None = None  # noqa: N815


def deleting_of(raw: bytes, query: Query, content_type: str = "") -> Deleting:
    """Read DeleteOptions from the body; from the query when there is none.

    Raises ApiError (400, 415, 422).
    """
    options = _from_body(raw, content_type) if raw else _from_query(query)
    propagation, dry_run = options.propagationPolicy, options.dryRun or []
    causes = []
    if propagation is not None and propagation not in _PROPAGATIONS:
        known = (*_PROPAGATIONS, "nil")
        causes.append(unsupported("propagationPolicy", propagation, known))
    _refuse("DeleteOptions", causes + _dry_run_causes(dry_run))
    if options.orphanDependents is not None:
        propagation = "Orphan" if options.orphanDependents else "Background"
    before = options.preconditions or _Preconditions()
    return Deleting(
        grace_period_s=options.gracePeriodSeconds,
        propagation=propagation or "",  # type: ignore[arg-type]  # checked above
        uid=before.uid,
        resource_version=before.resourceVersion,
        dry_run=bool(dry_run),
    )


def _from_query(query: Query) -> _DeleteOptions:
    orphan = query.get("orphanDependents")
    return _DeleteOptions(
        gracePeriodSeconds=whole_number(query, "gracePeriodSeconds"),
        propagationPolicy=query.get("propagationPolicy"),
        orphanDependents=None if orphan is None else is_true(orphan),
        dryRun=query.getall("dryRun", []),
    )


def _from_body(raw: bytes, content_type: str) -> _DeleteOptions:
    try:
        if content_type == protobuf.CONTENT_TYPE:
            return msgspec.convert(protobuf.decoded(raw, Document.load()), _DeleteOptions)
        if content_type not in ("application/json", "", "application/octet-stream"):
            raise errors.unsupported_media_type(list(_BODIES))
        options = msgspec.json.decode(raw, type=_DeleteOptions)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise errors.bad_request(f"the DeleteOptions cannot be read: {error}") from None
    if options.kind not in ("", "DeleteOptions"):
        raise errors.bad_request(
            f'no kind "{options.kind}" is registered for version "{options.apiVersion}"'
        )
    return options


_BODIES = ("application/json", "application/yaml", protobuf.CONTENT_TYPE)


def revision_of(text: str) -> int:
    """Read a resourceVersion as a list has it. Raises ApiError (400)."""
    if text.isascii() and text.isdigit():
        return int(text)
    raise errors.bad_request(f"invalid resource version: {text!r} is no number")
