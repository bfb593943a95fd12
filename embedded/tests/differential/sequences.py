"""Strategies: sequences of requests about the objects of one kind."""

from typing import Any

from hypothesis import strategies as st

from embedded.tests.differential import odd
from embedded.tests.differential.asking import Request
from embedded.tests.differential.kinds import KINDS, Kind
from embedded.tests.differential.playing import DELETE, OWN, Seen, put

_CORE = f"/api/v1/namespaces/{OWN}"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
_PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

Query = tuple[tuple[str, str], ...]

NAMES = st.sampled_from(["a", "a", "a", "b"])
_WRITE_QUERY: list[Query] = [
    (),
    (),
    (),
    (("fieldValidation", "Strict"),),
    (("fieldValidation", "Warn"),),
    (("fieldValidation", "Ignore"),),
    (("fieldValidation", "Other"),),
    (("dryRun", "All"),),
    (("dryRun", "Some"),),
    (("fieldManager", "me"),),
]
_ACCEPT = st.sampled_from(["application/json"] * 6 + [_TABLE, _PARTIAL, "text/html", "*/*"])


def beginning(kind: Kind) -> list[Request]:
    """Give what the sequence's objects need: a namespace, a ServiceAccount, a node."""

    def post(path: str, obj: dict[str, Any]) -> Request:
        return Request(method="POST", path=path, body=obj)

    steps = [post("/api/v1/namespaces", {"metadata": {"name": OWN}})]
    if not kind.is_namespaced:
        return steps
    steps += [
        post(f"{_CORE}/serviceaccounts", {"metadata": {"name": "default"}}),
    ]
    if kind.plural == "pods":
        steps.append(post("/api/v1/nodes", {"metadata": {"name": f"{OWN}-n"}}))
    return steps


@st.composite
def creates(draw: st.DrawFn, kind: Kind) -> Request:
    obj: Any = kind.object(draw(st.integers(0, len(kind.objects) - 1)), kind.name(draw(NAMES)))
    for pointer, value in draw(odd.changes(obj)):
        obj = put(obj, pointer, value)
    query = draw(st.sampled_from(_WRITE_QUERY))
    if kind.dry:
        query = (*(pair for pair in query if pair[0] != "dryRun"), ("dryRun", "All"))
    return Request(method="POST", path=kind.path, body=obj, query=query, accept=draw(_ACCEPT))


def _good(kind: Kind) -> st.SearchStrategy[Request]:
    count = len(kind.objects)
    return st.builds(
        lambda index, name: Request(
            method="POST", path=kind.path, body=kind.object(index, kind.name(name))
        ),
        st.integers(0, count - 1),
        NAMES,
    )


@st.composite
def reads(draw: st.DrawFn, kind: Kind) -> Request:
    if draw(st.booleans()):
        path = f"{kind.path}/{kind.name(draw(NAMES))}"
        sub = draw(st.sampled_from(["", "", "", "/status", "/scale", "/nothing", "/log"]))
        query = draw(st.sampled_from([(), (), (("resourceVersion", "0"),)]))
        return Request(method="GET", path=path + sub, query=query, accept=draw(_ACCEPT))
    accept = draw(st.sampled_from(["application/json", "application/json", _TABLE, _PARTIALS]))
    query: Query = draw(st.sampled_from(_LIST_QUERY))
    if not kind.is_namespaced and not any(key == "labelSelector" for key, _ in query):
        query = (*query, ("labelSelector", f"sequence={OWN}"))
    if accept == _TABLE:
        query = (*query, ("includeObject", draw(st.sampled_from(["None", "Metadata", "Object"]))))
    return Request(method="GET", path=kind.path, query=query, accept=accept)


_SELECTED = (f"sequence={OWN}", f"sequence in ({OWN},x),app", f"sequence={OWN},app!=a")
_LIST_QUERY: list[Query] = [
    (),
    *((("labelSelector", text),) for text in _SELECTED),
    (("labelSelector", "a in (b"),),
    (("labelSelector", "-a=b"),),
    (("labelSelector", f"sequence={OWN},!extra"),),
    (("fieldSelector", "metadata.name=a"),),
    (("fieldSelector", "metadata.name!=a"),),
    (("fieldSelector", f"metadata.namespace={OWN}"),),
    (("fieldSelector", "spec.nodeName="),),
    (("fieldSelector", "status.phase=Pending"),),
    (("fieldSelector", "spec.mode=a"),),
    (("fieldSelector", "type=Opaque"),),
    (("fieldSelector", "nothing.here=a"),),
    (("fieldSelector", "a"),),
    (("limit", "1"),),
    (("limit", "-1"),),
    (("limit", "x"),),
    (("continue", "abc"),),
    (("resourceVersion", "0"),),
    (("resourceVersion", "x"),),
    (("resourceVersionMatch", "Exact"),),
    (("resourceVersionMatch", "Other"), ("resourceVersion", "1")),
    (("timeoutSeconds", "x"),),
]


@st.composite
def updates(draw: st.DrawFn, kind: Kind) -> Request:
    path = f"{kind.path}/{kind.name(draw(NAMES))}"
    model = kind.object(draw(st.integers(0, len(kind.objects) - 1)), kind.name("a"))
    sub = draw(st.sampled_from(["", "", "", *(f"/{name}" for name in kind.more)]))
    changes = list(draw(odd.changes(model)))
    if sub == "/status":
        changes += draw(_status_changes(kind))
    if draw(st.integers(0, 3)) == 0:
        changes.append((("metadata", "resourceVersion"), DELETE))
    body: Any = Seen(path, tuple(changes))
    if draw(st.integers(0, 5)) == 0:
        body = model
        for pointer, value in changes:
            body = put(body, pointer, value)
    query = draw(st.sampled_from(_WRITE_QUERY))
    return Request(method="PUT", path=path + sub, body=body, query=query)


_STATUS_VALUES: list[Any] = [
    {"phase": "Running"},
    {"phase": "Succeeded", "reason": "x"},
    {"replicas": 2, "readyReplicas": 1, "observedGeneration": 1},
    {"replicas": -1},
    {"replicas": 1, "readyReplicas": 2},
    {"active": 1, "succeeded": 1},
    {"conditions": [{"type": "Ready", "status": "True"}]},
    {"conditions": [{"type": "Ready", "status": "True", "reason": "Ok", "message": "",
                     "lastTransitionTime": "2020-01-01T00:00:00Z"}]},
    {"conditions": [{"type": "", "status": "Maybe"}]},
    {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1,
     "observedGeneration": 1},
    {"size": 5, "selector": "a=b"},
    {"allocatable": {"cpu": "1"}, "capacity": {"cpu": "-1"}},
    {"unknownField": 1},
]  # fmt: skip


def _status_changes(_kind: Kind) -> st.SearchStrategy[list[odd.Change]]:
    return st.lists(
        st.sampled_from(_STATUS_VALUES).map(lambda value: (("status",), value)), max_size=1
    )


@st.composite
def patches(draw: st.DrawFn, kind: Kind) -> Request:
    name = kind.name(draw(NAMES))
    type_ = draw(st.sampled_from(list(_PATCHES)))
    model = kind.object(draw(st.integers(0, len(kind.objects) - 1)), name)
    subs = [f"/{sub}" for sub in kind.more if sub in ("status", "scale", "resize")]
    sub = draw(st.sampled_from(["", "", "", *subs]))
    changes = list(draw(odd.changes(model)))
    if sub == "/status":
        changes += draw(_status_changes(kind))
    query = draw(st.sampled_from(_WRITE_QUERY))
    if type_ == "json":
        body: Any = draw(_operations(changes))
    else:
        body = _nested(changes)
        if type_ == "strategic":
            body = draw(_directed(body))
    content = _PATCHES[type_]
    if draw(st.integers(0, 30)) == 0:
        content = draw(st.sampled_from(["application/json", "text/plain", ""]))
    return Request(
        method="PATCH",
        path=f"{kind.path}/{name}{sub}",
        body=body,
        query=query,
        content_type=content,
        accept=draw(_ACCEPT),
    )


@st.composite
def _operations(draw: st.DrawFn, changes: list[odd.Change]) -> Any:
    made = []
    for pointer, value in changes:
        path = "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in pointer)
        kinds = ["remove"] if value == DELETE else ["add", "replace", "test", "copy", "other"]
        operation = {"op": draw(st.sampled_from(kinds)), "path": path}
        if operation["op"] == "copy":
            operation["from"] = "/metadata/labels/app"
        elif value != DELETE:
            operation["value"] = value
        made.append(operation)
    return draw(st.sampled_from([made, made, made, made, {}, [{"op": "add"}], [5]]))


def _nested(changes: list[odd.Change]) -> Any:
    body: Any = {}
    for pointer, value in changes:
        if any(isinstance(key, int) for key in pointer):
            continue
        body = put(body, pointer, None if value == DELETE else value)
    return body


_DIRECTIVES: list[odd.Change] = [
    (("metadata", "labels"), {"$patch": "replace", "new": "x"}),
    (("metadata", "labels"), {"$patch": "delete"}),
    (("metadata", "labels"), {"$patch": "other"}),
    (("spec",), {"$patch": "replace"}),
    (("metadata", "$deleteFromPrimitiveList/finalizers"), ["example.com/hold"]),
    (("metadata", "$setElementOrder/finalizers"), ["example.com/hold"]),
    (("spec", "containers"), [{"name": "main", "image": "new"}]),
    (("spec", "containers"), [{"name": "new", "image": "new"}]),
    (("spec", "containers"), [{"name": "main", "$patch": "delete"}]),
    (("spec", "containers"), [{"image": "new"}]),
    (("spec", "template", "spec", "containers"), [{"name": "main", "image": "new"}]),
    (("spec", "template", "spec", "containers"), [{"name": "main", "env": [{"name": "A"}]}]),
    (("spec", "ports"), [{"port": 80, "name": "new"}]),
    (("spec", "ports"), [{"port": 82}]),
    (("spec", "taints"), [{"key": "gpu", "effect": "NoExecute"}]),
    (("spec", "strategy"), {"$retainKeys": ["type"], "type": "Recreate"}),
    (("secrets",), [{"name": "b"}]),
    (("subjects",), [{"kind": "User", "name": "x"}]),
    (("status", "conditions"), [{"type": "Ready", "status": "False"}]),
]


def _directed(body: Any) -> st.SearchStrategy[Any]:
    plain = st.just(body)
    return st.one_of(plain, st.sampled_from(_DIRECTIVES).map(lambda one: put(body, *one)))


@st.composite
def deletes(draw: st.DrawFn, kind: Kind) -> Request:
    path = f"{kind.path}/{kind.name(draw(NAMES))}"
    body = draw(
        st.sampled_from(
            [
                None,
                None,
                {},
                {"gracePeriodSeconds": 0},
                {"gracePeriodSeconds": 5},
                {"gracePeriodSeconds": -1},
                {"propagationPolicy": "Foreground"},
                {"propagationPolicy": "Orphan"},
                {"propagationPolicy": "Background"},
                {"propagationPolicy": "Other"},
                {"orphanDependents": True},
                {"orphanDependents": True, "propagationPolicy": "Orphan"},
                {"preconditions": {"uid": "11111111-0000-0000-0000-000000000000"}},
                {"preconditions": {"uid": f"<<uid {path}>>"}},
                {"preconditions": {"resourceVersion": f"<<rv {path}>>"}},
                {"preconditions": {"resourceVersion": "1"}},
                {"dryRun": ["All"]},
                {"dryRun": ["Other"]},
                {"unknownField": 1},
                {"gracePeriodSeconds": "x"},
                {"apiVersion": "v1", "kind": "DeleteOptions"},
                {"apiVersion": "v1", "kind": "Pod"},
                [],
            ]
        )
    )
    query: Query = draw(st.sampled_from([(), (), (("dryRun", "All"),),
        (("propagationPolicy", "Orphan"),), (("gracePeriodSeconds", "0"),),
        (("gracePeriodSeconds", "x"),)]))  # fmt: skip
    if draw(st.integers(0, 4)) == 0:
        selector = ("labelSelector", draw(st.sampled_from(_SELECTED)))
        return Request(method="DELETE", path=kind.path, body=body, query=(*query, selector))
    return Request(method="DELETE", path=path, body=body, query=query)


@st.composite
def subresources(draw: st.DrawFn, kind: Kind) -> Request:
    name = kind.name(draw(NAMES))
    sub = draw(st.sampled_from([sub for sub in kind.more if sub != "status"]))
    path = f"{kind.path}/{name}/{sub}"
    if sub in _BODIES:
        model = _BODIES[sub]
        body: Any = {**model, "metadata": {"name": name}} if sub != "token" else model
        for pointer, value in draw(odd.changes(body)):
            body = put(body, pointer, value)
        method = "PUT" if sub == "scale" else "POST"
        query = draw(st.sampled_from(_WRITE_QUERY))
        return Request(method=method, path=path, body=body, query=query)
    method = draw(st.sampled_from(["GET", "POST", "PUT", "DELETE"]))
    body = Seen(f"{kind.path}/{name}") if method in ("POST", "PUT") else None
    return Request(method=method, path=path, body=body)


_BODIES: dict[str, dict[str, Any]] = {
    "scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}},
    "binding": {
        "apiVersion": "v1",
        "kind": "Binding",
        "target": {"kind": "Node", "name": f"{OWN}-n"},
    },
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": {}},
    "token": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "audiences": ["x"]},
    },
}


def steps(kind: Kind) -> st.SearchStrategy[Request]:
    """Draw one request about objects of a kind."""
    if kind.dry:
        return creates(kind)
    ways = [creates(kind), reads(kind), updates(kind), updates(kind), patches(kind), patches(kind)]
    ways += [deletes(kind)]
    if any(sub != "status" for sub in kind.more):
        ways.append(subresources(kind))
    return st.one_of(ways)


@st.composite
def watches(draw: st.DrawFn, kind: Kind) -> list[Request]:
    """Read everything that happened to a kind's objects since the namespace was made."""
    last = kind.object(draw(st.integers(0, len(kind.objects) - 1)), f"{OWN}-last")
    query: Query = (
        ("watch", "true"),
        ("resourceVersion", f"<<rv /api/v1/namespaces/{OWN}>>"),
        ("timeoutSeconds", "2"),
    )
    selectors = [(("labelSelector", f"sequence={OWN}"),)]
    if kind.is_namespaced:
        selectors += [(), (("labelSelector", "app=a"),), (("fieldSelector", "metadata.name!=a"),)]
    query += draw(st.sampled_from(selectors))
    accept = draw(st.sampled_from(["application/json", "application/json", _TABLE, _PARTIAL]))
    return [
        Request(method="POST", path=kind.path, body=last),
        Request(method="WATCH", path=kind.path, query=query, accept=accept),
    ]


@st.composite
def sequences(draw: st.DrawFn, plurals: tuple[str, ...] = ()) -> list[Request]:
    """Draw a sequence about one of the kinds that are named, or of all."""
    kind = KINDS[draw(st.sampled_from(plurals or tuple(KINDS)))]
    first = [] if kind.dry or draw(st.integers(0, 4)) == 0 else [draw(_good(kind))]
    middle = draw(st.lists(steps(kind), min_size=1, max_size=6))
    watch = [] if kind.dry or draw(st.integers(0, 3)) else draw(watches(kind))
    return [*beginning(kind), *first, *middle, *watch]
