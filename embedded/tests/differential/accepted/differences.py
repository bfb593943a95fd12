"""The differences that are accepted: each with its reason, and as narrow as it can be.

``test_differential`` shows that each is still there: an entry whose example has become equal has to
go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedded.tests.differential.accepted import covers
from embedded.tests.differential.asking import NO_ANSWER, Request
from embedded.tests.differential.comparing import Diff
from embedded.tests.differential.kinds import KINDS
from embedded.tests.differential.playing import OWN, Exchange, put

_APPLY = "application/apply-patch+yaml"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"


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
        covers=covers.managers,
        example=[NAMESPACE, _post(_ROLE)],
    ),
    Accepted(
        name="writes that show nothing",
        why="A real server writes where only the encoding or managedFields change: the first "
        "update of a claim, a scale of a custom resource.",
        covers=covers.only_version,
        example=[NAMESPACE, _post(_CLAIM), _patch(_CLAIM, {})],
        diverges=True,
    ),
    Accepted(
        name="descriptions of columns",
        why="The recorded document holds structure without prose.",
        covers=covers.description,
        example=[NAMESPACE, Request(method="GET", path=_ROLE.path, accept=_TABLE)],
    ),
    Accepted(
        name="definitions take effect at once",
        why="Names are accepted and the kind is served within the write of a CRD; a real server's "
        "controllers follow some moments later.",
        covers=covers.definition,
        example=[_post(_DEFINITION, query=(("dryRun", "All"),))],
    ),
    Accepted(
        name="refusals between fields that are left out",
        why="What no client meets is not checked (ADR 21): ports of Services, probes, rules of "
        "roles, strategies, what is odd about a definition that can be served.",
        covers=covers.left_out,
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
        name="items that an apply names twice",
        why="They are merged into one list as they are (ADR 21).",
        covers=covers.applied_twice,
        example=[
            NAMESPACE,
            _patch(
                KINDS["services"],
                put(
                    KINDS["services"].object(0, "a"),
                    ("spec", "ports"),
                    [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}],
                ),
                content_type=_APPLY,
                query=_ME,
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="the order of strategic patches",
        why="Whether the items of a patch stand in the order that it wants is not checked "
        "(ADR 21).",
        covers=lambda exchange, diff: (
            exchange.step.content_type == _STRATEGIC
            and diff.path == "code"
            and "doesn't match $setElementOrder list" in str(diff.real)
        ),
        example=[
            NAMESPACE,
            _post(KINDS["configmaps"]),
            _patch(
                KINDS["configmaps"],
                {
                    "metadata": {
                        "$setElementOrder/finalizers": ["example.com/hold"],
                        "finalizers": ["example.com/other"],
                    }
                },
                content_type=_STRATEGIC,
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="paths of selectableFields",
        why="Whether such a path leads to a field of the schema is not checked.",
        covers=covers.selectable,
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
            and covers.is_about(exchange, "podgroups")
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
            and covers.fields(exchange.real.body) <= {"data", "binaryData"}
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
            and covers.is_about(exchange, "services/")
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
        covers=covers.scale_path,
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
        covers=covers.budget_metadata,
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
        covers=covers.more_pages,
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
        covers=covers.large_number,
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
        covers=covers.generated_selector,
        example=[
            NAMESPACE,
            _post(_JOB),
            _patch(_JOB, _JOB.object(2, "a"), content_type=_APPLY, query=_ME),
        ],
    ),
]
