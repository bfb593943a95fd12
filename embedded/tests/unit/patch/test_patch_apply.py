"""Server-side apply: a merge by the last writer, without owners of fields."""

import pytest

from pocketkube.errors import ApiError
from pocketkube.patch.apply import apply
from pocketkube.schema.document import Document

POD = Document.load().shape("io.k8s.api.core.v1.Pod")


def pod(*containers, **metadata):
    spec = {"containers": list(containers)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def applied(live, body):
    return apply(live, body, POD, api_version="v1", kind="Pod")


def test_what_is_applied_is_written_over_what_is_there():
    live = pod({"name": "a", "image": "one"}, {"name": "b", "image": "two"}, labels={"x": "1"})
    body = pod({"name": "b", "image": "new"}, {"name": "c", "image": "three"}, labels={"y": "2"})
    found = applied(live, body)
    images = [(c["name"], c["image"]) for c in found["spec"]["containers"]]
    assert images == [("a", "one"), ("b", "new"), ("c", "three")]
    assert found["metadata"]["labels"] == {"x": "1", "y": "2"}
    assert live["spec"]["containers"][1]["image"] == "two", "the input is not changed"


def test_null_takes_a_field_away_and_an_atomic_list_is_replaced():
    live = pod({"name": "a", "command": ["x", "y"], "image": "i"}, labels={"x": "1", "y": "2"})
    found = applied(live, pod({"name": "a", "command": ["z"]}, labels={"x": None}))
    assert found["spec"]["containers"] == [{"name": "a", "command": ["z"], "image": "i"}]
    assert found["metadata"]["labels"] == {"y": "2"}


def test_items_are_known_by_all_their_keys_and_the_defaults_of_keys():
    live = pod({"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP", "name": "p"}]})
    ports = [{"containerPort": 1, "hostPort": 2}, {"containerPort": 1, "protocol": "UDP"}]
    found = applied(live, pod({"name": "a", "ports": ports}))
    assert found["spec"]["containers"][0]["ports"] == [
        {"containerPort": 1, "protocol": "TCP", "name": "p", "hostPort": 2},
        {"containerPort": 1, "protocol": "UDP"},
    ]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({**pod(), "kind": "Node"}, 400),
        (pod(managedFields=[]), 400),
        (pod({"image": "nameless"}), 500),
    ],
)
def test_what_cannot_be_applied_is_refused(body, code):
    with pytest.raises(ApiError) as caught:
        applied(pod({"name": "a"}), body)
    assert caught.value.code == code
