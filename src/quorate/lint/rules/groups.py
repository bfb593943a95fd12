"""Rules about PodGroups alone: their API, their fields, their numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from quorate.core.model.policy import Policy
from quorate.core.words.counting import counted
from quorate.dialects import DIALECTS
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding, Severity
from quorate.lint.manifests import Group, Manifests, spec_of
from quorate.lint.objects import path_text, value_at
from quorate.lint.tree import Path

_TIMEOUT_S_MAX = Policy().attempt_timeout_s_max
_APIS = tuple(dialect.resource.api_version for dialect in DIALECTS if dialect.resource)
_FORMER_APIS = {
    former: dialect.object.resource.api_version
    for dialect in DIALECTS
    if dialect.object
    for former in dialect.object.former_versions
}
"""Versions that are no longer served, with their replacements."""
_FIELDS_OF_MIN = {dialect.object.min_path[-1] for dialect in DIALECTS if dialect.object}
_TAKEN_FOR_MIN = _FIELDS_OF_MIN | {"minAvailable", "minMembers", "minPods"}


def unknown_api(manifests: Manifests) -> Iterator[Finding]:
    """A PodGroup of an API that quorate does not read: wrong version, typo, other scheduler."""
    for one in manifests.strange_groups:
        path: Path = ("apiVersion",)
        rule = "podgroup-api-unknown"
        if successor := _FORMER_APIS.get(one.api_version):
            yield one.error(
                rule,
                path,
                f"apiVersion {one.api_version} is deprecated and served no more",
                f"use {successor}",
            )
            continue
        same_group = [api for api in _APIS if api.partition("/")[0] == one.group]
        close = same_group or difflib.get_close_matches(one.api_version, _APIS, n=1, cutoff=0.85)
        if close and one.api_version != "scheduling.k8s.io/v1beta1":
            yield one.error(
                rule,
                path,
                f"no scheduler that quorate knows serves PodGroup in {shown(one.api_version)}",
                f"did you mean {close[0]}?",
            )
        else:
            yield one.warning(
                rule,
                path,
                f"quorate does not read PodGroups of {shown(one.api_version)}",
                f"for quorate, use {' or '.join(_APIS)}",
            )


def unknown_fields(manifests: Manifests) -> Iterator[Finding]:
    """A field that the API does not have: the API server drops it, so min may not be as written."""
    for group in manifests.groups:
        known = group.api.fields
        for field in spec_of(group):
            if field in known:
                continue
            close = difflib.get_close_matches(field, known, n=1, cutoff=0.6)
            lower = {name.lower(): name for name in known}
            meant = lower.get(field.lower()) or (close[0] if close else "")
            other = _field_of_other_api(field, group)
            yield group.object.finding(
                "podgroup-field-unknown",
                Severity.ERROR if meant or other else Severity.WARNING,
                ("spec", field),
                f"PodGroup of {group.object.api_version} has no field spec.{field}",
                other or (f"did you mean {meant}?" if meant else f"it has {', '.join(known)}"),
            )


def _field_of_other_api(field: str, group: Group) -> str:
    """Return the replacement of a field that is min in another API, or in no API."""
    path = group.api.min_path
    if len(path) == 2:
        return f"did you mean {path[-1]}?" if field in _TAKEN_FOR_MIN else ""
    return f"in this API it is {path_text(path)}" if field in _FIELDS_OF_MIN else ""


def invalid(manifests: Manifests) -> Iterator[Finding]:
    """A PodGroup that the scheduler cannot use, with the scheduler's own message."""
    for group in manifests.groups:
        defect = group.spec.defect
        if not defect:
            continue
        where, _, what = defect.partition(": ")
        path = _path(where)
        is_min = path[-1] in _FIELDS_OF_MIN
        what, _, hint = (what or defect).rpartition("; ")
        yield group.object.error(
            "min-invalid" if is_min else "podgroup-invalid",
            path,
            f"{where}: {what or hint}" if where != defect else defect,
            hint if what else "fix that field",
        )


def min_not_positive(manifests: Manifests) -> Iterator[Finding]:
    """A min that is 0 or absent: every pod starts alone."""
    for group in manifests.groups:
        if group.spec.defect or group.spec.min_count > 0 or group.api.may_be_no_gang:
            continue
        least = group.api.min_least
        written = value_at(group.object.value, group.api.min_path)
        known = group.api.fields
        if any("min" in other.lower() and other not in known for other in spec_of(group)):
            continue  # it is misspelt, which another rule reports
        state = "absent" if written is None else str(written)
        field = path_text(group.api.min_path)
        what = f"{field} is {state}: every pod starts for itself, it is no gang"
        refused = type(written) is int and (least > 0 or written < 0)
        yield group.object.finding(
            "min-not-positive",
            Severity.ERROR if refused else Severity.WARNING,
            group.api.min_path if written is not None else ("spec",),
            f"{what}; this API's definition asks for {least} or more"
            if least > 0 and written is not None
            else what,
            "write how many members must start together",
        )


def timeout(manifests: Manifests) -> Iterator[Finding]:
    """A scheduleTimeoutSeconds whose written value is not the one used."""
    for group in manifests.groups:
        seconds = spec_of(group).get("scheduleTimeoutSeconds")
        if type(seconds) is not int or group.spec.defect:
            continue
        if seconds < 0 or seconds > _TIMEOUT_S_MAX:
            counts = f"at most {_TIMEOUT_S_MAX:.0f} count" if seconds > 0 else "the default counts"
            yield group.object.warning(
                "timeout-out-of-range",
                ("spec", "scheduleTimeoutSeconds"),
                f"spec.scheduleTimeoutSeconds is {seconds}: {counts}, and they bound one attempt, "
                "not the wait of the gang",
                f"write 1 to {_TIMEOUT_S_MAX:.0f}, or leave it out",
            )


def without_pods(manifests: Manifests) -> Iterator[Finding]:
    """A PodGroup that no pod of the files names; its pods may come from elsewhere."""
    for group in manifests.groups_without_pods():
        astray = _astray(group, manifests)
        yield group.object.warning(
            "podgroup-without-pods",
            ("metadata", "name"),
            f"no pod in these files names PodGroup {group.object.name}{astray}",
            f"give its pods {group.dialect.member_key}: {group.object.name}"
            " (an operator may make them, too)",
        )


def _astray(group: Group, manifests: Manifests) -> str:
    """Return which pods are meant for the group, and name it in vain; "" if none."""
    for source in manifests.sources:
        meant = source.meant
        if meant is None or meant.gang.name != group.object.name:
            continue
        if meant.gang.namespace == group.spec.key.namespace:
            pods = "the pods" if source.count is None else counted(source.count, "pod")
            are = "is" if source.count == 1 else "are"
            return f"; {pods} of {source.title} {are} meant for it: {meant.words}"
    return ""


def _path(written: str) -> Path:
    """Return text such as ``spec.minMember`` as a path; ``("spec",)`` if it is not a path."""
    parts = written.split(".")
    return tuple(parts) if parts[0] == "spec" and " " not in written else ("spec",)
