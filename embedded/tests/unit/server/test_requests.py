"""From URLs to targets, and from bodies and queries to objects and options."""

import pytest
from multidict import MultiDict

from pocketkube.api.writing import User
from pocketkube.errors import ApiError
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.server import options
from pocketkube.server.requests import target_of
from pocketkube.server.writing import bodies


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(Document.load().resources())


def asked(registry: Registry, method: str, path: str, **query: str):
    found = target_of(registry, method, path, MultiDict(query))
    return (found.verb, found.resource.bucket, found.namespace, found.name, found.subresource)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/p", ("get", "pods", "a", "p", "")),
        ("POST", "/api/v1/namespaces/a/pods/p/binding", ("create", "pods", "a", "p", "binding")),
        ("DELETE", "/api/v1/namespaces/a/pods", ("deletecollection", "pods", "a", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "namespaces", "", "a", "")),
        ("PUT", "/api/v1/namespaces/a/status", ("update", "namespaces", "", "a", "status")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "namespaces", "", "a", "finalize")),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            ("patch", "deployments.apps", "a", "d", "scale"),
        ),
        ("GET", "/api/v1/nodes/a%2Fb", ("get", "nodes", "", "a/b", "")),
    ],
)
def test_a_path_says_what_is_asked(registry, method, path, expected):
    assert asked(registry, method, path) == expected


def test_a_query_makes_a_list_a_watch(registry):
    assert asked(registry, "GET", "/api/v1/pods", watch="true")[0] == "watch"


@pytest.mark.parametrize(
    "path", ["/", "/api", "/apis/apps/v1", "/version", "/openapi/v3", "/healthz"]
)
def test_other_paths_name_no_resource(registry, path):
    assert target_of(registry, "GET", path, MultiDict()) is None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nothings",
        "/apis/apps/v7/deployments",
        "/apis/no.such/v1/things",
        "/api/v1/namespaces/a/nodes/n",
        "/api/v1/pods/p",
        "/api/v1/namespaces/a/pods/p/log/more",
    ],
)
def test_what_is_not_served_is_not_found(registry, path):
    with pytest.raises(ApiError) as error:
        target_of(registry, "GET", path, MultiDict())
    assert error.value.code == 404


def refused(code: int, action, *args):
    with pytest.raises(ApiError) as error:
        action(*args)
    assert error.value.code == code
    return error.value


def test_bodies_are_json_or_yaml():
    assert bodies.object_of(b'{"a": 1}', "application/json") == ({"a": 1}, b'{"a": 1}')
    assert bodies.object_of(b"a: 1\n", "application/yaml") == ({"a": 1}, None)
    refused(400, bodies.object_of, b"{", "application/json")
    refused(400, bodies.object_of, b"a: [", "application/yaml")
    refused(415, bodies.object_of, b"x", "text/plain")


def test_patches_are_known_by_their_media_type():
    assert bodies.patch_of(b"[]", "application/json-patch+json").type == "json"
    assert bodies.patch_of(b"{}", "application/strategic-merge-patch+json").type == "strategic"
    assert bodies.patch_of(b"a: 1", "application/apply-patch+yaml").body == {"a": 1}
    refused(415, bodies.patch_of, b"{}", "application/json")


def written(**query: str):
    return options.writing_of(MultiDict(query), User("u"), "kubectl/v1.36", lambda _text: None)


def test_the_query_says_how_to_write():
    how = written(dryRun="All", fieldValidation="Strict", force="true")
    assert (how.dry_run, how.field_validation, how.force) == (True, "Strict", True)
    assert (how.field_manager, how.agent) == ("", "kubectl")
    assert written(fieldManager="me").field_manager == "me"
    refused(422, lambda: written(dryRun="Some"))
    refused(422, lambda: written(fieldValidation="Maybe"))


def test_delete_options_come_from_the_body_and_the_query():
    body = (
        b'{"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan"}'
    )
    deleting = options.deleting_of(body, MultiDict())
    assert (deleting.grace_period_s, deleting.uid, deleting.propagation) == (0, "u", "Orphan")
    assert options.deleting_of(b"", MultiDict(gracePeriodSeconds="5")).grace_period_s == 5
    assert options.deleting_of(b"", MultiDict()).grace_period_s is None
    refused(422, options.deleting_of, b'{"propagationPolicy": "Sideways"}', MultiDict())
    refused(400, options.deleting_of, b'{"gracePeriodSeconds": "x"}', MultiDict())
