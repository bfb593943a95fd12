"""Who may do what, by the roles and bindings of a store; reviews answer as a real server does."""

import pytest

from pocketkube.api.rights import rbac, reviews
from pocketkube.api.rights.rbac import Authorizer
from pocketkube.api.rights.tokens import Tokens
from pocketkube.api.writing import User
from pocketkube.schema.document import Document
from pocketkube.store.store import Store

AMY = User("amy")
BOT = User("system:serviceaccount:t1:bot")
VIEWER = User("zoe", ("viewers",))
COLLECTOR = User("kim", ("collectors",))
ROOT = User("root", ("system:masters",))
NOW_S = 1_795_262_400.0


def role(name: str, *rules: dict, namespace: str = "", **fields) -> dict:
    metadata = {"name": name, "labels": fields.pop("labels", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata, "rules": list(rules), **fields}


def binding(name: str, kind: str, of: str, *subjects: dict, namespace: str = "") -> dict:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "metadata": metadata,
        "roleRef": {"kind": kind, "name": of},
        "subjects": list(subjects),
    }


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> dict:
    found = {
        "verbs": verbs.split(","),
        "resources": resources.split(","),
        "apiGroups": groups.split(","),
    }
    return {**found, "resourceNames": names.split(",")} if names else found


def filled() -> Store:
    store = Store()
    store.put(
        rbac.ROLES,
        role(
            "podder",
            rule("get,list", "pods,pods/log,*/scale"),
            rule("*", "deployments", "apps", "web,api"),
            namespace="t1",
        ),
    )
    subjects = [{"kind": "User", "name": "amy"}, {"kind": "ServiceAccount", "name": "bot"}]
    store.put(rbac.ROLE_BINDINGS, binding("podder", "Role", "podder", *subjects, namespace="t1"))
    store.put(rbac.CLUSTER_ROLES, role("view", rule("get", "*", "*")))
    viewers = {"kind": "Group", "name": "viewers"}
    store.put(rbac.ROLE_BINDINGS, binding("viewer", "ClusterRole", "view", viewers, namespace="t1"))
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"collect": "yes"}}]}
    store.put(rbac.CLUSTER_ROLES, role("all", aggregationRule=selectors))
    store.put(
        rbac.CLUSTER_ROLES, role("a", rule("get", "jobs", "batch"), labels={"collect": "yes"})
    )
    paths = {"verbs": ["get"], "nonResourceURLs": ["/foo/*", "/bar"]}
    store.put(rbac.CLUSTER_ROLES, role("b", paths, labels={"collect": "yes"}))
    collectors = {"kind": "Group", "name": "collectors"}
    store.put(rbac.CLUSTER_ROLE_BINDINGS, binding("c", "ClusterRole", "all", collectors))
    store.put(rbac.CLUSTER_ROLE_BINDINGS, binding("d", "ClusterRole", "nowhere", collectors))
    return store


@pytest.mark.parametrize(
    ("user", "asked", "allowed"),
    [
        (AMY, ("get", "", "pods", "", "t1"), True),
        (BOT, ("get", "", "pods", "", "t1"), True),  # of the binding's own namespace
        (AMY, ("watch", "", "pods", "", "t1"), False),
        (AMY, ("get", "", "pods", "", "t2"), False),
        (AMY, ("get", "", "pods", "", ""), False),
        (AMY, ("get", "apps", "pods", "", "t1"), False),
        (AMY, ("get", "", "pods", "log", "t1"), True),
        (AMY, ("get", "", "pods", "exec", "t1"), False),
        (AMY, ("get", "", "anything", "scale", "t1"), True),
        (AMY, ("patch", "apps", "deployments", "", "t1", "web"), True),
        (AMY, ("patch", "apps", "deployments", "", "t1", "other"), False),
        (AMY, ("create", "apps", "deployments", "", "t1"), False),
        (AMY, ("patch", "apps", "deployments", "scale", "t1", "web"), False),
        (VIEWER, ("get", "x.y", "foos", "status", "t1", "any"), True),
        (VIEWER, ("list", "x.y", "foos", "", "t1"), False),
        (VIEWER, ("get", "", "nodes", "", ""), False),
        (COLLECTOR, ("get", "batch", "jobs", "", "t1"), True),
        (COLLECTOR, ("get", "batch", "jobs", "", ""), True),
        (COLLECTOR, ("get", "", "jobs", "", ""), False),
        (ROOT, ("delete", "any", "thing", "", ""), True),
        (User("nobody"), ("get", "", "pods", "", "t1"), False),
    ],
)
def test_roles_allow(user, asked, allowed):
    authorizer = Authorizer(filled())
    assert authorizer.allowed(user, *asked) is allowed
    assert authorizer.allowed(user, *asked) is allowed  # and again, from what is remembered


@pytest.mark.parametrize(
    ("user", "path", "allowed"),
    [
        (COLLECTOR, "/foo/x", True),
        (COLLECTOR, "/foo/", True),
        (COLLECTOR, "/foo", False),
        (COLLECTOR, "/bar", True),
        (COLLECTOR, "/bar/x", False),
        (AMY, "/bar", False),
        (ROOT, "/metrics", True),
    ],
)
def test_roles_allow_paths(user, path, allowed):
    assert Authorizer(filled()).allowed_path(user, "get", path) is allowed
    assert not Authorizer(filled()).allowed_path(COLLECTOR, "post", "/bar")


def test_a_change_of_roles_or_bindings_counts_at_once():
    store = filled()
    authorizer = Authorizer(store)
    asked = (AMY, "get", "", "pods", "", "t1")
    assert authorizer.allowed(*asked)
    store.put(rbac.ROLES, role("podder", namespace="t1"))
    assert not authorizer.allowed(*asked)
    store.put(rbac.ROLES, role("podder", rule("get", "pods"), namespace="t1"))
    assert authorizer.allowed(*asked)
    store.remove(rbac.ROLE_BINDINGS, "t1", "podder")
    assert not authorizer.allowed(*asked)
    extra = binding("e", "ClusterRole", "view", {"kind": "User", "name": "amy"})
    store.put(rbac.CLUSTER_ROLE_BINDINGS, extra)
    assert authorizer.allowed(*asked)


def test_the_recorded_roles_let_the_controllers_work_and_the_anonymous_look_at_the_version():
    store = Store()
    for obj in Document.load().bootstrap:
        if obj["apiVersion"].startswith("rbac."):
            plural = f"{obj['kind'].lower()}s"
            store.put(f"{plural}.rbac.authorization.k8s.io", obj)
    authorizer = Authorizer(store)
    controller = User("system:serviceaccount:kube-system:replicaset-controller")
    assert authorizer.allowed(controller, "create", "", "pods", "", "any")
    assert not authorizer.allowed(controller, "create", "", "secrets", "", "any")
    scheduler = User("system:kube-scheduler")
    assert authorizer.allowed(scheduler, "create", "", "pods", "binding", "any", "p")
    anonymous = User("system:anonymous", ("system:unauthenticated",))
    assert authorizer.allowed_path(anonymous, "get", "/version")
    assert not authorizer.allowed_path(anonymous, "get", "/metrics")
    someone = User("x", ("system:authenticated",))
    kind = ("authorization.k8s.io", "selfsubjectaccessreviews")
    assert authorizer.allowed(someone, "create", *kind)


PODS = {"verb": "get", "resource": "pods", "namespace": "t1"}
PATH = {"verb": "get", "path": "/bar"}


@pytest.mark.parametrize(
    ("kind", "user", "spec", "allowed"),
    [
        ("selfsubjectaccessreviews", AMY, {"resourceAttributes": PODS}, True),
        ("selfsubjectaccessreviews", AMY, {"nonResourceAttributes": PATH}, False),
        ("selfsubjectaccessreviews", ROOT, {"nonResourceAttributes": PATH}, True),
        ("selfsubjectaccessreviews", COLLECTOR, {"nonResourceAttributes": PATH}, True),
        ("subjectaccessreviews", AMY, {"user": BOT.name, "resourceAttributes": PODS}, True),
        ("subjectaccessreviews", AMY, {"groups": ["viewers"], "resourceAttributes": PODS}, True),
        ("subjectaccessreviews", AMY, {"user": "nobody", "resourceAttributes": PODS}, False),
    ],
)
def test_one_may_ask_what_one_and_others_may(kind, user, spec, allowed):
    tokens = Tokens(b"secret", lambda: NOW_S, lambda *_: "")
    asked = reviews.Asked(Authorizer(filled()), tokens, user, {"spec": spec})
    answer = reviews.reviewed(f"{kind}.authorization.k8s.io", asked)
    assert (answer["spec"], answer["status"]) == (spec, {"allowed": allowed})
