"""Rules about PodGroups alone: their API, their fields, their numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from quorate.core.model.policy import Policy
from quorate.dialects import native, sigs, volcano, x_k8s
from quorate.dialects.fields import shown
from quorate.lint.finding import Finding, Severity
from quorate.lint.manifests import Group, Manifests, api_version_of, spec_of
from quorate.lint.tree import Path

_TIMEOUT_S_MAX = Policy().attempt_timeout_s_max
_COSCHEDULING = ("minMember", "minResources", "scheduleTimeoutSeconds")
_FIELDS = {
    x_k8s.NAME: _COSCHEDULING,
    sigs.NAME: _COSCHEDULING,
    volcano.NAME: (
        "minMember",
        "minTaskMember",
        "queue",
        "priorityClassName",
        "minResources",
        "networkTopology",
        "subGroupPolicy",
    ),
    native.NAME: (
        "schedulingPolicy",
        "podGroupTemplateRef",
        "schedulingConstraints",
        "resourceClaims",
        "disruptionMode",
        "priorityClassName",
        "priority",
    ),
}
"""Fields of each API's spec: CRDs of scheduler-plugins and Volcano, OpenAPI of Kubernetes 1.36."""

_APIS = tuple(
    api_version_of(dialect.RESOURCE)
    for dialect in (x_k8s, sigs, volcano, native)
    if dialect.RESOURCE
)
_OLD_APIS = {
    "scheduling.incubator.k8s.io/v1alpha1": "scheduling.volcano.sh/v1beta1",
    "scheduling.volcano.sh/v1alpha1": "scheduling.volcano.sh/v1beta1",
    "scheduling.volcano.sh/v1alpha2": "scheduling.volcano.sh/v1beta1",
}
"""Versions that once were served, and what took their place."""


def unknown_api(manifests: Manifests) -> Iterator[Finding]:
    """A PodGroup of an API that quorate does not read: another version, a typo, or a peer's."""
    for one in manifests.strange_groups:
        path: Path = ("apiVersion",)
        rule = "podgroup-api-unknown"
        if successor := _OLD_APIS.get(one.api_version):
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
    """A field that the API does not have: the API server drops it, and min is not what it seems."""
    for group in manifests.groups:
        known = _FIELDS[group.dialect.NAME]
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
    if field in ("minCount", "minAvailable", "minMembers", "minPods") and (
        group.dialect.NAME != native.NAME
    ):
        return "did you mean minMember?"
    if field in ("minMember", "minCount") and group.dialect.NAME == native.NAME:
        return "in this API it is spec.schedulingPolicy.gang.minCount"
    return ""


def invalid(manifests: Manifests) -> Iterator[Finding]:
    """A PodGroup that the scheduler cannot use, in the words that it would say itself."""
    for group in manifests.groups:
        defect = group.spec.defect
        if not defect:
            continue
        where, _, what = defect.partition(": ")
        path = _path(where)
        is_min = path[-1] in ("minMember", "minCount")
        what, _, remedy = (what or defect).rpartition("; ")
        yield group.object.error(
            "min-invalid" if is_min else "podgroup-invalid",
            path,
            f"{where}: {what or remedy}" if where != defect else defect,
            remedy if what else "mend that field",
        )


def min_not_positive(manifests: Manifests) -> Iterator[Finding]:
    """A min of 0, or none: every pod starts for itself."""
    for group in manifests.groups:
        if group.spec.defect or group.spec.min_count > 0 or group.dialect.NAME == native.NAME:
            continue
        written = spec_of(group).get("minMember")
        known = _FIELDS[group.dialect.NAME]
        if any("min" in field.lower() and field not in known for field in spec_of(group)):
            continue  # it is misspelt, which has been said
        if written is None:
            what = "spec.minMember is absent: every pod starts for itself, it is no gang"
        else:
            what = f"spec.minMember is {written}: every pod starts for itself, it is no gang"
        refused = written is not None and (group.dialect.NAME == x_k8s.NAME or written < 0)
        yield group.object.finding(
            "min-not-positive",
            Severity.ERROR if refused else Severity.WARNING,
            ("spec", "minMember") if written is not None else ("spec",),
            f"{what}; this API's definition asks for 1 or more"
            if group.dialect.NAME == x_k8s.NAME and written is not None
            else what,
            "write how many members must start together",
        )


def timeout(manifests: Manifests) -> Iterator[Finding]:
    """A scheduleTimeoutSeconds that does not count as it is written."""
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
        yield group.object.warning(
            "podgroup-without-pods",
            ("metadata", "name"),
            f"no pod in these files names PodGroup {group.object.name}",
            f"give its pods {group.dialect.NAMED_BY}: {group.object.name}"
            " (an operator may make them, too)",
        )


def _path(written: str) -> Path:
    """Return ``spec.minMember`` as a path; what is no path is the spec."""
    parts = written.split(".")
    return tuple(parts) if parts[0] == "spec" and " " not in written else ("spec",)
