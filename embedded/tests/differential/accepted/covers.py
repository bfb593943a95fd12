"""What each accepted difference covers: predicates over one exchange and one difference."""

import re
from typing import Any

from embedded.tests.differential.comparing import MISSING, Diff
from embedded.tests.differential.playing import Exchange


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


def fields(body: Any) -> set[str]:
    details = body.get("details") if isinstance(body, dict) else None
    return {cause.get("field", "") for cause in (details or {}).get("causes") or ()}


def left_out(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether a real server refuses more of an object than this one does.

    It names the schema of a definition's only version as that of the definition.
    """
    of_custom = "/differential.example.com/" in exchange.step.path
    real = fields(exchange.real.body)
    embedded = fields(exchange.embedded.body)
    of_schema = {
        field.replace("spec.versions[0].schema.", "spec.validation.") for field in embedded
    }
    return (
        exchange.real.code == 422
        and diff.path in ("code", "causes", "message")
        and (embedded <= real or of_schema <= real or of_custom)
    )


def more_pages(exchange: Exchange, diff: Diff) -> bool:
    selects = any(key in ("labelSelector", "fieldSelector") for key, _ in exchange.step.query)
    return (
        selects and diff.path == ".metadata.continue" and "<absent>" in (diff.real, diff.embedded)
    )


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def template_generation(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether only the annotation that counts a DaemonSet's templates is missing."""
    head, _, key = diff.path.rpartition("metadata.annotations")
    if not (is_about(exchange, "daemonsets") and head) or diff.embedded != MISSING:
        return False
    return key == f".{_TEMPLATE_GENERATION}" or (
        key == "" and set(diff.real) == {_TEMPLATE_GENERATION}
    )


def template_count(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether a real server wrote an object because that annotation was not sent."""
    return diff.path == ".metadata.resourceVersion" and any(
        template_generation(exchange, other) for other in exchange.diffs
    )


def no_selector(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether both refuse a DaemonSet that selects nothing, the real one for more fields."""
    return (
        is_about(exchange, "daemonsets")
        and diff.path == "causes"
        and exchange.real.code == exchange.embedded.code == 422
        and "spec.selector" in fields(exchange.embedded.body)
    )


def group_of_events(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether a conflict of Events names their newer group."""
    return (
        is_about(exchange, "events")
        and exchange.real.code == exchange.embedded.code == 409
        and diff.path in ("message", "details.group")
        and str(diff.embedded).replace("events.k8s.io", "").replace("events.", "events")
        == str(diff.real or "")
    )


def other_columns(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether a Table of a kind that gangs do not meet has other columns."""
    parts = r"columnDefinitions(\[\]\.(name|type|format|priority))?|rows\[\]\.cells(\[\])?"
    return (
        any(group in exchange.step.path for group in _WITHOUT_COLUMNS)
        and "as=Table" in exchange.step.accept
        and (
            re.fullmatch(rf"(\[\]\.object)?\.({parts})", diff.place) is not None
            or (diff.place == ".rows" and diff.real is None and diff.embedded == [])
        )
    )


_WITHOUT_COLUMNS = (
    "/rbac.authorization.k8s.io/",
    "/customresourcedefinitions",
    "/services",
    "/resourcequotas",
)


def probes(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether a default inside a probe, a hook, a variable or a volume is missing."""
    parts = (
        "livenessProbe.",
        "readinessProbe.",
        "startupProbe.",
        "lifecycle.",
        ".env[",
        "volumes[",
    )
    return (
        diff.embedded == MISSING
        and exchange.real.code in (200, 201)
        and any(part in diff.path for part in parts)
    )


def precondition_words(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether both refuse a deletion for the same precondition, in other words."""
    return (
        exchange.step.method == "DELETE"
        and exchange.real.code == exchange.embedded.code == 409
        and diff.path in ("message", "details.kind", "details.group")
        and "in the precondition" in str(exchange.real.body)
        and "Precondition failed" in str(exchange.embedded.body)
    )


def node_ports(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether a Service lacks its node port, or what goes with one."""
    fields = (
        ".spec.ports[].nodePort",
        ".spec.externalTrafficPolicy",
        ".spec.sessionAffinityConfig",
    )
    return is_about(exchange, "services") and diff.embedded == MISSING and diff.place in fields
