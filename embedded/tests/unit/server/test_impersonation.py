"""Whom a request wants to be, and whether it may."""

import pytest
from multidict import CIMultiDict

from pocketkube.api.rights.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Authorizer
from pocketkube.api.writing import User
from pocketkube.errors import ApiError
from pocketkube.server.handler import allowed, wanted_of
from pocketkube.store.store import Store

HELPER = User("helper", ("system:authenticated",))


def headers(*given):
    return CIMultiDict(given)


def authorizer(*rules):
    """RBAC that gives the helper these rules."""
    store = Store()
    role = {"metadata": {"name": "r"}, "rules": list(rules)}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subject = {"apiGroup": reference["apiGroup"], "kind": "User", "name": "helper"}
    binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
    store.put(CLUSTER_ROLES, role)
    store.put(CLUSTER_ROLE_BINDINGS, binding)
    return Authorizer(store)


def may(resource, group="", *names):
    rule = {"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource]}
    return {**rule, "resourceNames": list(names)} if names else rule


@pytest.mark.parametrize(
    ("given", "groups"),
    [
        ([("Impersonate-User", "bob")], ["system:authenticated"]),
        (
            [("impersonate-user", "bob"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
            ["a", "b", "system:authenticated"],
        ),
        (
            [("Impersonate-User", "system:serviceaccount:ns:sa")],
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
        ),
        ([("Impersonate-User", "system:serviceaccount:ns")], ["system:authenticated"]),
        ([("Impersonate-User", "system:anonymous")], ["system:unauthenticated"]),
        (
            [("Impersonate-User", "bob"), ("Impersonate-Group", "system:authenticated")],
            ["system:authenticated"],
        ),
    ],
)
def test_a_user_has_the_groups_that_he_would_have_after_logging_in(given, groups):
    assert list(wanted_of(headers(*given)).groups) == groups


def test_most_requests_want_to_be_nobody_else():
    assert wanted_of(headers(("Authorization", "Bearer x"))) is None


BOB = ("Impersonate-User", "bob")


@pytest.mark.parametrize(
    "given",
    [
        [("Impersonate-Group", "x")],
        [BOB, ("Impersonate-Uid", "1")],
        [BOB, ("Impersonate-Extra-Scopes", "s")],
    ],
)
def test_groups_need_a_name_and_uids_and_extras_are_refused(given):
    with pytest.raises(ApiError) as caught:
        wanted_of(headers(*given))
    assert caught.value.code == 400


ACCOUNT = ("Impersonate-User", "system:serviceaccount:ns:sa")


@pytest.mark.parametrize(
    ("given", "rules", "answer"),
    [
        ([BOB], [], False),
        ([BOB], [may("users")], True),
        ([BOB], [may("users", "", "alice")], False),
        ([ACCOUNT], [may("users")], False),
        ([ACCOUNT], [may("serviceaccounts")], True),
        ([BOB, ("Impersonate-Group", "g")], [may("users")], False),
        ([BOB, ("Impersonate-Group", "g")], [may("users"), may("groups")], True),
        (
            [BOB, ("Impersonate-Group", "g"), ("Impersonate-Group", "h")],
            [may("users"), may("groups", "", "g")],
            False,
        ),
    ],
)
def test_each_thing_that_is_asked_for_needs_its_right(given, rules, answer):
    asked = headers(*given)
    assert allowed(HELPER, wanted_of(asked), asked, authorizer(*rules)) is answer
