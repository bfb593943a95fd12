"""ResourceQuotas: what a namespace may use in all."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World
from pocketkube.errors import ApiError

QUOTAS = "resourcequotas"


@pytest.fixture
def world():
    return World(kubelets=False)


def quota(world, hard, **spec):
    body = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    world.create("v1", QUOTAS, body)
    world.settle()


def pod(world, name="p", requests=None, most=None, **spec):
    resources = {"requests": requests or {}, "limits": most or {}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec}
    return world.create("v1", "pods", {"metadata": {"name": name}, "spec": spec})


def refused(world, *args, **kwargs):
    with pytest.raises(ApiError) as caught:
        pod(world, *args, **kwargs)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.message


def used(world):
    world.settle()
    return world.status(QUOTAS, "q")["used"]


def test_what_is_too_much_is_refused_in_the_words_of_a_real_server(world):
    quota(world, {"requests.nvidia.com/gpu": "8"})
    gpus = {"nvidia.com/gpu": "5"}
    pod(world, "a", gpus, gpus)
    assert refused(world, "b", gpus, gpus) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=5, '
        "used: requests.nvidia.com/gpu=5, limited: requests.nvidia.com/gpu=8"
    )
    assert used(world) == {"requests.nvidia.com/gpu": "5"}


def test_room_comes_back_when_a_pod_ends_or_goes(world):
    quota(world, {"pods": "2"})
    pod(world, "a")
    pod(world, "b")
    refused(world, "c")
    world.set_phase("a", "Succeeded")
    assert used(world) == {"pods": "1"}
    pod(world, "c")
    refused(world, "d")
    world.delete("pods", "b", grace_period_s=0)
    assert used(world) == {"pods": "1"}
    pod(world, "d")


def test_a_quota_that_comes_later_counts_what_is_there(world):
    pod(world, "a", {"cpu": "500m", "memory": "1Gi"})
    quota(world, {"requests.cpu": "1", "memory": "2Gi", "count/pods": "5"})
    assert used(world) == {"requests.cpu": "500m", "memory": "1Gi", "count/pods": "1"}


def test_a_quota_of_cpu_needs_pods_that_say_how_much(world):
    quota(world, {"requests.cpu": "1", "limits.memory": "1Gi"})
    told = "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
    assert refused(world).endswith(told)


@pytest.mark.parametrize(
    "spec",
    [
        {"hard": {"configmaps": "1"}},
        {"hard": {"requests.storage": "1Gi"}},
        {"hard": {"pods": "1"}, "scopes": ["BestEffort"]},
    ],
    ids=["kind", "storage", "scope"],
)
def test_what_is_not_counted_is_no_quota(world, spec):
    with pytest.raises(ApiError) as caught:
        world.create("v1", QUOTAS, {"metadata": {"name": "q"}, "spec": spec})
    assert caught.value.code == 422


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                }
            },
            {"priorityClassName": "high"},
            {},
        ),
    ],
)
def test_scopes_say_which_pods_count(world, scope, inside, outside):
    high = {"metadata": {"name": "high"}, "value": 9}
    world.create("scheduling.k8s.io/v1", "priorityclasses", high)
    quota(world, {"pods": "1"}, **scope)
    pod(world, "out", **outside)
    pod(world, "in", **inside)
    assert used(world) == {"pods": "1"}
    refused(world, "more", **inside)
    pod(world, "out-too", **outside)
