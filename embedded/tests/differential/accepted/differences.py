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
_DEPLOYMENT = KINDS["deployments"]
_DAEMON_SET = KINDS["daemonsets"]
_CONTAINERS = ("spec", "template", "spec", "containers")
_QUOTA = KINDS["resourcequotas"]
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

ACCEPTED = [
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
        example=[NAMESPACE, Request(method="GET", path=_CLAIM.path, accept=_TABLE)],
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
        why="Checks between fields are few here, and values of custom resources are refused for "
        "the first thing that is wrong, in the words of a library (ADR 21).",
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
        name="logs of a pod that no kubelet runs",
        why="No container runs here, so that logs are refused before a kubelet is looked for.",
        covers=lambda exchange, diff: (
            exchange.step.path.endswith("/log")
            and diff.path == "code"
            and exchange.real.code in (204, 500)
            and exchange.embedded.code == 400
        ),
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=KINDS["serviceaccounts"].path,
                body={"metadata": {"name": "default"}},
            ),
            _post(KINDS["pods"]),
            Request(method="GET", path=f"{KINDS['pods'].path}/a/log"),
        ],
    ),
    Accepted(
        name="the generation of a DaemonSet's template",
        why="The annotation is deprecated, and nothing reads it.",
        covers=covers.template_generation,
        example=[NAMESPACE, _post(_DAEMON_SET)],
    ),
    Accepted(
        name="writes of that annotation",
        why="A real server counts it again, and so writes an object that is as it was.",
        covers=covers.template_count,
        example=[
            NAMESPACE,
            _post(_DAEMON_SET),
            Request(
                method="PUT",
                path=f"{_DAEMON_SET.path}/a/status",
                body=_DAEMON_SET.object(0, "a"),
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="DaemonSets without a selector",
        why="Here the selector is refused, as that of other workloads; a real server refuses what "
        "follows from it.",
        covers=covers.no_selector,
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=_DAEMON_SET.path,
                body=put(_DAEMON_SET.object(0, "a"), ("spec",), {}),
            ),
        ],
    ),
    Accepted(
        name="the group of Events in conflicts",
        why="Both groups hold the same objects, and the code and the reason are the same.",
        covers=covers.group_of_events,
        example=[
            NAMESPACE,
            *[
                Request(
                    method="POST",
                    path=KINDS["events"].path,
                    body=put(
                        KINDS["events"].object(0, "a"), ("metadata", "generateName"), "drawn-"
                    ),
                )
            ]
            * 2,
        ],
    ),
    Accepted(
        name="columns of roles, bindings, definitions, Services and quotas",
        why="kubectl prints a name and an age of kinds that gangs do not meet (ADR 21).",
        covers=covers.other_columns,
        example=[NAMESPACE, _post(KINDS["rolebindings"], accept=_TABLE)],
    ),
    Accepted(
        name="defaults of probes, hooks, variables and sources of volumes",
        why="Nothing here reads them, so they stay as they are given (ADR 21).",
        covers=covers.probes,
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=_DEPLOYMENT.path,
                body=put(
                    _DEPLOYMENT.object(0, "a"),
                    (*_CONTAINERS, 0, "livenessProbe"),
                    {"httpGet": {"path": "/", "port": 80}},
                ),
            ),
        ],
    ),
    Accepted(
        name="words of preconditions",
        why="The code and the reason are the same (ADR 21).",
        covers=covers.precondition_words,
        example=[
            NAMESPACE,
            _post(_CLAIM),
            Request(
                method="DELETE",
                path=f"{_CLAIM.path}/a",
                body={"preconditions": {"resourceVersion": "1"}},
            ),
        ],
    ),
    Accepted(
        name="quotas of what gangs do not ask for",
        why="They are refused with a reason, not counted wrongly (ADR 21).",
        covers=lambda exchange, _diff: "this cluster counts" in str(exchange.embedded.body),
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=_QUOTA.path,
                body=put(_QUOTA.object(0, "a"), ("spec", "hard", "configmaps"), "50"),
            ),
        ],
        diverges=True,
    ),
    Accepted(
        name="node ports",
        why="No traffic enters the cluster, so that no ports are given out (ADR 21).",
        covers=covers.node_ports,
        example=[
            NAMESPACE,
            Request(
                method="POST",
                path=KINDS["services"].path,
                body=put(
                    KINDS["services"].object(0, "a"),
                    ("spec",),
                    {"type": "NodePort", "ports": [{"port": 80}], "sessionAffinity": "ClientIP"},
                ),
            ),
        ],
        diverges=True,
    ),
]
