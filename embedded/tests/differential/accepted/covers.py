"""What each accepted difference covers: predicates over one exchange and one difference."""

import re
from typing import Any

from embedded.tests.differential.comparing import Diff
from embedded.tests.differential.playing import Exchange

_APPLY = "application/apply-patch+yaml"


def managers(exchange: Exchange, diff: Diff) -> bool:
    if diff.path == "message" and exchange.real.code == 409:
        return no_names(diff.real) == no_names(diff.embedded)
    head, found, _ = diff.path.partition(".managedFields")
    if not found:
        return False
    sides = (exchange.real.body, exchange.embedded.body)
    real, embedded = (applied(at(body, head)) for body in sides)
    return real == embedded or exchange.step.method == "PUT"


def no_names(message: str) -> str:
    return re.sub('conflict with "[^"]*"', "conflict", str(message))


def applied(metadata: Any) -> list[Any]:
    entries = (metadata or {}).get("managedFields") or []
    return [entry for entry in entries if entry["operation"] == "Apply"]


def at(value: Any, path: str) -> Any:
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path):
        value = value[int(index)] if index else value.get(name)
    return value


def only_version(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether one server counted a write that shows nothing, and the other did not."""
    seen = [d for d in exchange.diffs if ".managedFields" not in d.path]
    seen = [d for d in seen if not description(exchange, d)]
    return len(seen) == 1 and diff.path.endswith("metadata.resourceVersion")


def is_about(exchange: Exchange, plural: str) -> bool:
    return f"/{plural}" in exchange.step.path


def description(_: Exchange, diff: Diff) -> bool:
    return diff.place.endswith(".columnDefinitions[].description") and diff.embedded == ""


def definition(exchange: Exchange, diff: Diff) -> bool:
    places = (".status.", ".metadata.finalizers", ".rows[0].object.metadata.finalizers")
    return is_about(exchange, "customresourcedefinitions") and diff.path.startswith(places)


def selectable(exchange: Exchange, diff: Diff) -> bool:
    told = [fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    return (
        is_about(exchange, "customresourcedefinitions")
        and diff.path in ("code", "causes")
        and {field for field in told[0] ^ told[1] if "selectableFields" not in field} == set()
    )


def fields(body: Any) -> set[str]:
    details = body.get("details") if isinstance(body, dict) else None
    return {cause.get("field", "") for cause in (details or {}).get("causes") or ()}


_LEFT_OUT = re.compile(
    r"spec\.(ports|clusterIPs|sessionAffinity|type|externalName|selector|strategy|updateStrategy"
    r"|podManagementPolicy|persistentVolumeClaimRetentionPolicy|ordinals|serviceName|timeZone"
    r"|hard|limits|scaleTargetRef|minReplicas|maxReplicas|metrics|startingDeadlineSeconds"
    r"|(successful|failed)JobsHistoryLimit|replicas|minReadySeconds)\b"
    r"|(.*\.)?(podFailurePolicy|env|livenessProbe|readinessProbe|startupProbe|lifecycle)\b"
    r"|(.*\.)?(ports|hostPort|resources|affinity|topologySpreadConstraints|tolerations|namespaces?)\b"
    r"|spec\.(finalizers|leaseDurationSeconds|leaseTransitions|preferredHolder|priority|nodeSelector"
    r"|priorityClassName|completions|parallelism|backoffLimitPerIndex|maxFailedIndexes|successPolicy"
    r"|activeDeadlineSeconds|template)\b|spec$|.*(lifecycle|restartPolicy|mountPath|os)\b"
    r"|involvedObject|report|series|eventTime|action|reason|message|note|type|count|source|related"
    r"|first|last|status\.(conditions|Phase)|.*template\.metadata\.labels|status\.\w*([rR]eplicas|Scheduled|Misscheduled|Ready"
    r"|Available|Unavailable|Generation|Count)\b"
    r"|rules\[|aggregationRule|subjects\[|roleRef|handler|addressType|revision|data\b|metadata\."
)
"""Fields of which a real server says more: checks between fields that no client meets (ADR 21)."""


def left_out(exchange: Exchange, diff: Diff) -> bool:
    told = [fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    missing = told[0] - told[1]
    free = is_about(exchange, "customresourcedefinitions")
    return (
        exchange.real.code == 422
        and diff.path in ("code", "causes")
        and told[1] <= told[0]
        and bool(missing)
        and all(free or _LEFT_OUT.match(field) for field in missing)
    )


def applied_twice(exchange: Exchange, diff: Diff) -> bool:
    return (
        exchange.step.content_type == _APPLY
        and exchange.real.code == 500
        and "duplicate entries for key" in str(exchange.real.body)
    )


def scale_path(exchange: Exchange, diff: Diff) -> bool:
    told = [fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    return diff.path == "causes" and told[0] - told[1] == {".spec.size"} and told[1] <= told[0]


def budget_metadata(exchange: Exchange, diff: Diff) -> bool:
    told = [fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    extra = told[1] - told[0]
    return (
        is_about(exchange, "poddisruptionbudgets")
        and diff.path == "causes"
        and told[0] <= told[1]
        and all(field.startswith("metadata.") for field in extra)
    )


def more_pages(exchange: Exchange, diff: Diff) -> bool:
    selects = any(key in ("labelSelector", "fieldSelector") for key, _ in exchange.step.query)
    return (
        selects and diff.path == ".metadata.continue" and "<absent>" in (diff.real, diff.embedded)
    )


def generated_selector(exchange: Exchange, diff: Diff) -> bool:
    return (
        is_about(exchange, "jobs")
        and exchange.step.content_type == _APPLY
        and exchange.real.code == 409
        and ".spec.selector" in str(diff.embedded)
        and ".spec.selector" not in str(diff.real)
    )


def large_number(exchange: Exchange, diff: Diff) -> bool:
    return (
        exchange.step.content_type == _APPLY
        and diff.path == "code"
        and exchange.real.code in (200, 201)
        and "got number" in str(diff.embedded)
    )
