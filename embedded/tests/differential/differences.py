"""The differences that are accepted: each with its reason, and as narrow as it can be.

``test_differential`` shows that each is still there: an entry whose example has become equal has to
go.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedded.tests.differential.asking import NO_ANSWER, Request
from embedded.tests.differential.comparing import Diff
from embedded.tests.differential.kinds import KINDS
from embedded.tests.differential.playing import OWN, Exchange, put

_APPLY = "application/apply-patch+yaml"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """One difference: why it may be, what it covers, and requests that show it."""

    name: str
    why: str
    covers: Callable[[Exchange, Diff], bool]
    example: list[Request]
    diverges: bool = False
    """The servers hold other objects afterwards, so that a sequence ends here."""


def unexplained(exchange: Exchange) -> list[Diff]:
    """Return the differences that no entry of the list covers."""
    return [diff for diff in exchange.diffs if not _entries(exchange, diff)]


def ends(exchange: Exchange) -> bool:
    """Tell whether accepted differences make what follows incomparable."""
    entries = [entry for diff in exchange.diffs for entry in _entries(exchange, diff)]
    return any(entry.diverges for entry in entries)


def _entries(exchange: Exchange, diff: Diff) -> list[Accepted]:
    return [entry for entry in ACCEPTED if entry.covers(exchange, diff)]


# What they cover


def _managers(exchange: Exchange, diff: Diff) -> bool:
    if diff.path == "message" and exchange.real.code == 409:
        return _no_names(diff.real) == _no_names(diff.embedded)
    head, found, _ = diff.path.partition(".managedFields")
    if not found:
        return False
    sides = (exchange.real.body, exchange.embedded.body)
    real, embedded = (_applied(_at(body, head)) for body in sides)
    return real == embedded or exchange.step.method == "PUT"


def _no_names(message: str) -> str:
    return re.sub('conflict with "[^"]*"', "conflict", str(message))


def _applied(metadata: Any) -> list[Any]:
    entries = (metadata or {}).get("managedFields") or []
    return [entry for entry in entries if entry["operation"] == "Apply"]


def _at(value: Any, path: str) -> Any:
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path):
        value = value[int(index)] if index else value.get(name)
    return value


def _only_version(exchange: Exchange, diff: Diff) -> bool:
    """Tell whether one server counted a write that shows nothing, and the other did not."""
    seen = [d for d in exchange.diffs if ".managedFields" not in d.path]
    seen = [d for d in seen if not _description(exchange, d)]
    return len(seen) == 1 and diff.path.endswith("metadata.resourceVersion")


def _is_about(exchange: Exchange, plural: str) -> bool:
    return f"/{plural}" in exchange.step.path


def _description(_: Exchange, diff: Diff) -> bool:
    return diff.place.endswith(".columnDefinitions[].description") and diff.embedded == ""


def _definition(exchange: Exchange, diff: Diff) -> bool:
    places = (".status.", ".metadata.finalizers", ".rows[0].object.metadata.finalizers")
    return _is_about(exchange, "customresourcedefinitions") and diff.path.startswith(places)


def _selectable(exchange: Exchange, diff: Diff) -> bool:
    told = [_fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    return (
        _is_about(exchange, "customresourcedefinitions")
        and diff.path in ("code", "causes")
        and {field for field in told[0] ^ told[1] if "selectableFields" not in field} == set()
    )


def _fields(body: Any) -> set[str]:
    details = body.get("details") if isinstance(body, dict) else None
    return {cause.get("field", "") for cause in (details or {}).get("causes") or ()}


_LEFT_OUT = re.compile(
    r"spec\.(ports|clusterIPs|sessionAffinity|type|externalName|selector|strategy|updateStrategy"
    r"|podManagementPolicy|persistentVolumeClaimRetentionPolicy|ordinals|serviceName|timeZone"
    r"|hard|limits|scaleTargetRef|minReplicas|maxReplicas|metrics|startingDeadlineSeconds"
    r"|(successful|failed)JobsHistoryLimit|replicas|minReadySeconds)\b"
    r"|(.*\.)?(podFailurePolicy|env|livenessProbe|readinessProbe|startupProbe|lifecycle)\b"
    r"|.*template\.metadata\.labels|status\.\w*([rR]eplicas|Scheduled|Misscheduled|Ready"
    r"|Available|Unavailable|Generation|Count)\b"
    r"|rules\[|aggregationRule|subjects\[|roleRef|handler|addressType|revision|data\b|metadata\."
)
"""Fields of which a real server says more: checks between fields that no client meets (ADR 21)."""


def _left_out(exchange: Exchange, diff: Diff) -> bool:
    told = [_fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    missing = told[0] - told[1]
    free = _is_about(exchange, "customresourcedefinitions")
    return (
        exchange.real.code == 422
        and diff.path in ("code", "causes")
        and told[1] <= told[0]
        and bool(missing)
        and all(free or _LEFT_OUT.match(field) for field in missing)
    )


def _scale_path(exchange: Exchange, diff: Diff) -> bool:
    told = [_fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    return diff.path == "causes" and told[0] - told[1] == {".spec.size"} and told[1] <= told[0]


def _budget_metadata(exchange: Exchange, diff: Diff) -> bool:
    told = [_fields(answer.body) for answer in (exchange.real, exchange.embedded)]
    extra = told[1] - told[0]
    return (
        _is_about(exchange, "poddisruptionbudgets")
        and diff.path == "causes"
        and told[0] <= told[1]
        and all(field.startswith("metadata.") for field in extra)
    )


def _more_pages(exchange: Exchange, diff: Diff) -> bool:
    selects = any(key in ("labelSelector", "fieldSelector") for key, _ in exchange.step.query)
    return (
        selects and diff.path == ".metadata.continue" and "<absent>" in (diff.real, diff.embedded)
    )


def _generated_selector(exchange: Exchange, diff: Diff) -> bool:
    return (
        _is_about(exchange, "jobs")
        and exchange.step.content_type == _APPLY
        and exchange.real.code == 409
        and ".spec.selector" in str(diff.embedded)
        and ".spec.selector" not in str(diff.real)
    )


def _large_number(exchange: Exchange, diff: Diff) -> bool:
    return (
        exchange.step.content_type == _APPLY
        and diff.path == "code"
        and exchange.real.code in (200, 201)
        and "cannot unmarshal number" in str(diff.embedded)
    )


# What shows them

_CLAIM = KINDS["persistentvolumeclaims"]
_WIDGET = KINDS["widgets"]
_ROLE = KINDS["roles"]
_BUDGET = KINDS["poddisruptionbudgets"]
_JOB = KINDS["jobs"]
_DEFINITION = KINDS["customresourcedefinitions"]
_CLUSTER_ROLE = KINDS["clusterroles"]

NAMESPACE = Request(method="POST", path="/api/v1/namespaces", body={"metadata": {"name": OWN}})


def _post(kind: Any, index: int = 0, **more: Any) -> Request:
    return Request(method="POST", path=kind.path, body=kind.object(index, kind.name("a")), **more)


def _patch(kind: Any, body: Any, sub: str = "", content_type: str = _MERGE, **more: Any) -> Request:
    path = f"{kind.path}/{kind.name('a')}{sub}"
    return Request(method="PATCH", path=path, body=body, content_type=content_type, **more)


def _bad_definition(*change: Any) -> Request:
    obj = put(_DEFINITION.object(0, _DEFINITION.name("a")), change[:-1], change[-1])
    return Request(method="POST", path=_DEFINITION.path, body=obj, query=(("dryRun", "All"),))


_SCHEMA = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties")
_ME = (("fieldManager", "me"),)

ACCEPTED = [
    Accepted(
        name="managers of updates",
        why="Who updated which field is tracked from the first apply on (ADR 6), so that a body "
        "sent before it brings other managedFields back.",
        covers=_managers,
        example=[NAMESPACE, _post(_ROLE)],
    ),
    Accepted(
        name="writes that show nothing",
        why="A real server writes where only the encoding or managedFields change: the first "
        "update of a claim, a scale of a custom resource.",
        covers=_only_version,
        example=[NAMESPACE, _post(_CLAIM), _patch(_CLAIM, {})],
        diverges=True,
    ),
    Accepted(
        name="descriptions of columns",
        why="The recorded document holds structure without prose.",
        covers=_description,
        example=[NAMESPACE, Request(method="GET", path=_ROLE.path, accept=_TABLE)],
    ),
    Accepted(
        name="definitions take effect at once",
        why="Names are accepted and the kind is served within the write of a CRD; a real server's "
        "controllers follow some moments later.",
        covers=_definition,
        example=[_post(_DEFINITION, query=(("dryRun", "All"),))],
    ),
    Accepted(
        name="refusals between fields that are left out",
        why="What no client meets is not checked (ADR 21): ports of Services, probes, rules of "
        "roles, strategies, what is odd about a definition that can be served.",
        covers=_left_out,
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=KINDS["services"].path,
                body=put(KINDS["services"].object(0, "a"), ("spec", "ports"), []),
                query=(("dryRun", "All"),),
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="paths of selectableFields",
        why="Whether such a path leads to a field of the schema is not checked.",
        covers=_selectable,
        example=[_bad_definition("spec", "versions", 0, "selectableFields", 0, "jsonPath", "-a")],
        diverges=True,
    ),
    Accepted(
        name="real servers that panic",
        why="A real server closes the connection on some definitions; this one answers.",
        covers=lambda exchange, _diff: exchange.real.code == NO_ANSWER,
        example=[
            _bad_definition(*_SCHEMA, "status", "x-kubernetes-preserve-unknown-fields", False)
        ],
        diverges=True,
    ),
    Accepted(
        name="Tables of Scales",
        why="Nobody prints the subresource scale; it is sent as it is.",
        covers=lambda exchange, _diff: (
            exchange.step.path.endswith("/scale") and "as=Table" in exchange.step.accept
        ),
        example=[NAMESPACE, _post(_WIDGET), _patch(_WIDGET, {}, "/scale", accept=_TABLE)],
    ),
    Accepted(
        name="Tables of a PodGroup's status",
        why="A real server knows no columns for it, and sends the object as it is.",
        covers=lambda exchange, _diff: (
            exchange.step.path.endswith("/status")
            and _is_about(exchange, "podgroups")
            and "as=Table" in exchange.step.accept
        ),
        example=[
            NAMESPACE,
            _post(KINDS["podgroups"]),
            Request(method="GET", path=f"{KINDS['podgroups'].path}/a/status", accept=_TABLE),
        ],
    ),
    Accepted(
        name="empty maps in immutable objects",
        why="Go tells an empty map from none, so that a real server sees a change; JSON objects "
        "are stored without their empty maps here.",
        covers=lambda exchange, diff: (
            diff.path == "code"
            and exchange.embedded.code == 200
            and "field is immutable when `immutable` is set" in str(diff.real)
            and _fields(exchange.real.body) <= {"data", "binaryData"}
        ),
        example=[
            NAMESPACE,
            _post(KINDS["configmaps"], 1),
            _patch(KINDS["configmaps"], {"binaryData": {}}),
        ],
    ),
    Accepted(
        name="the status of a Service that is not there",
        why="A real server creates the Service then, half made: without an address. Here it is not "
        "found.",
        covers=lambda exchange, diff: (
            exchange.step.path.endswith("/status")
            and _is_about(exchange, "services/")
            and exchange.embedded.code == 404
            and diff.path == "code"
        ),
        example=[
            NAMESPACE,
            Request(
                method="PUT",
                path=f"{KINDS['services'].path}/a/status",
                body=KINDS["services"].object(0, "a"),
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="the issuer of tokens",
        why="A cluster's own choice: the default audience is its issuer.",
        covers=lambda _exchange, diff: (
            diff.path == ".spec.audiences[0]" and str(diff.real).startswith("https://127.0.0.1:")
        ),
        example=[
            NAMESPACE,
            _post(KINDS["serviceaccounts"]),
            Request(
                method="POST",
                path=f"{KINDS['serviceaccounts'].path}/a/token",
                body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            ),
        ],
    ),
    Accepted(
        name="objects that are born dying",
        why="An apply or update that creates keeps the deletionTimestamp that it brings on a real "
        "server, and nobody can want that.",
        covers=lambda exchange, diff: (
            exchange.step.method in ("PATCH", "PUT")
            and exchange.real.code == 201
            and ".metadata.deletion" in diff.path
            and diff.embedded == "<absent>"
        ),
        example=[
            NAMESPACE,
            _patch(
                _ROLE,
                put(
                    _ROLE.object(0, "a"), ("metadata", "deletionTimestamp"), "2020-01-01T00:00:00Z"
                ),
                content_type=_APPLY,
                query=_ME,
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="scale paths are checked twice",
        why="A real server reports a wrong type at a CRD's scale path under a second name.",
        covers=_scale_path,
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=_WIDGET.path,
                body=put(_WIDGET.object(0, "a"), ("spec", "size"), "x"),
            ),
        ],
    ),
    Accepted(
        name="metadata of budgets",
        why="A real server checks the metadata of a budget only when all else is right; here both "
        "are reported together.",
        covers=_budget_metadata,
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=_BUDGET.path,
                body=put(
                    put(_BUDGET.object(0, "a"), ("spec", "minAvailable"), -1),
                    ("metadata", "labels", "app"),
                    "not ok",
                ),
            ),
        ],
    ),
    Accepted(
        name="pages of selected objects",
        why="A real server pages through all objects and selects afterwards, so that it may "
        "promise a page that turns out empty.",
        covers=_more_pages,
        example=[
            _post(_CLUSTER_ROLE),
            Request(
                method="GET",
                path=_CLUSTER_ROLE.path,
                query=(("limit", "1"), ("labelSelector", f"sequence={OWN}")),
            ),
        ],
    ),
    Accepted(
        name="numbers that are too large in an apply",
        why="A real server cuts off the upper bits of a number that does not fit its field; nobody "
        "applied what is left, so it is refused here.",
        covers=_large_number,
        example=[
            NAMESPACE,
            _patch(
                KINDS["coreevents"],
                put(KINDS["coreevents"].object(0, "a"), ("count",), 2**40),
                content_type=_APPLY,
                query=_ME,
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="owners of a Job's selector",
        why="Nobody owns what the server itself adds to a new object; as updates are tracked only "
        "from the first apply on, the generated selector cannot be told apart then.",
        covers=_generated_selector,
        example=[
            NAMESPACE,
            _post(_JOB),
            _patch(_JOB, _JOB.object(2, "a"), content_type=_APPLY, query=_ME),
        ],
    ),
]
