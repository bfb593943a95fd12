"""Paths are quoted, and nothing can climb out of its place."""

import pytest

from quorate.shell.kube.paths import pod_path, resource_path, with_params


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("", "v1", "nodes"), "/api/v1/nodes"),
        (("", "v1", "pods", "a"), "/api/v1/namespaces/a/pods"),
        (("", "v1", "pods", "a", "b", "binding"), "/api/v1/namespaces/a/pods/b/binding"),
        (("", "v1", "pods", "a", "b/../c"), "/api/v1/namespaces/a/pods/b%2F..%2Fc"),
        (("batch", "v1", "jobs", "a", "b c"), "/apis/batch/v1/namespaces/a/jobs/b%20c"),
        (
            ("scheduling.k8s.io", "v1alpha2", "podgroups", "a", "b", "status"),
            "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups/b/status",
        ),
    ],
)
def test_resource_paths(arguments, path):
    assert resource_path(*arguments) == path


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_name_another_resource_is_refused(name):
    with pytest.raises(ValueError, match="cannot be a part"):
        pod_path("default", name)
    with pytest.raises(ValueError, match="cannot be a part"):
        resource_path("", "v1", "pods", name or "", "x")


def test_a_subresource_needs_an_object():
    with pytest.raises(ValueError, match="needs the name"):
        resource_path("", "v1", "pods", "a", sub="status")


def test_pod_path_is_resource_path():
    assert pod_path("a", "b?c#d", "binding") == resource_path(
        "", "v1", "pods", "a", "b?c#d", "binding"
    )
    assert pod_path("a", "b") == "/api/v1/namespaces/a/pods/b"


def test_params_are_quoted_and_appended():
    assert with_params("/x", None) == "/x"
    assert with_params("/x", {"a": "b=c,d", "n": 1}) == "/x?a=b%3Dc%2Cd&n=1"
    assert with_params("/x?y=1", {"a": "b"}) == "/x?y=1&a=b"
