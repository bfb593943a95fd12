"""ResourceQuotas and LimitRanges: what a namespace may use in all, and what each object may ask."""

import pytest

from embedded.tests.unit.controllers.controllers_world import World
from pocketkube.api.writing import Writing
from pocketkube.errors import ApiError

QUOTAS = "resourcequotas"


@pytest.fixture
def world():
    return World(kubelets=False)


def quota(world, hard, **spec):
    body = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    world.create("v1", QUOTAS, body)
    world.settle()


def limits(world, **limits):
    body = {"metadata": {"name": "l"}, "spec": {"limits": [limits]}}
    world.create("v1", "limitranges", body)


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


def test_a_dry_run_uses_nothing(world):
    quota(world, {"pods": "1"})
    pods = world.api.registry.named("v1", "pods")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "dry"}}
    body["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    world.api.create(pods, "default", body, Writing(dry_run=True))
    assert used(world) == {"pods": "0"}
    pod(world, "real")


def test_other_namespaces_and_other_kinds_are_not_counted(world):
    quota(world, {"pods": "0"})
    world.namespace("other")
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    world.create("v1", "pods", body, "other")
    world.create("v1", "configmaps", {"metadata": {"name": "m"}})


@pytest.mark.parametrize(
    ("hard", "make"),
    [
        ("configmaps", ("v1", "configmaps", {})),
        ("count/jobs.batch", ("batch/v1", "jobs", None)),
        ("requests.storage", ("v1", "persistentvolumeclaims", None)),
        ("persistentvolumeclaims", ("v1", "persistentvolumeclaims", None)),
        ("services.nodeports", ("v1", "services", {"type": "NodePort", "ports": [{"port": 80}]})),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects_of_other_kinds_are_counted_too(world, hard, make):
    api_version, plural, spec = make
    if plural == "jobs":
        containers = [{"name": "c", "image": "i"}]
        pods = {"spec": {"containers": containers, "restartPolicy": "Never"}}
        spec = {"template": pods}
    if plural == "persistentvolumeclaims":
        storage = {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": storage}
    quota(world, {hard: "0"})
    body = {"metadata": {"name": "x"}} | ({"spec": spec} if spec else {})
    with pytest.raises(ApiError) as caught:
        world.create(api_version, plural, body)
    assert f"exceeded quota: q, requested: {hard}=" in caught.value.message


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ({"scopes": ["BestEffort"]}, {}, {"requests": {"cpu": "1"}}),
        ({"scopes": ["NotBestEffort"]}, {"requests": {"cpu": "1"}}, {}),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, {}),
        ({"scopes": ["NotTerminating"]}, {}, {"activeDeadlineSeconds": 5}),
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
    ids=["best-effort", "not-best-effort", "terminating", "not-terminating", "priority"],
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


def test_defaults_come_from_a_limit_range_and_count_in_quotas(world):
    limits(world, type="Container", default={"cpu": "2"}, defaultRequest={"cpu": "1"})
    quota(world, {"requests.cpu": "3", "limits.cpu": "9"})
    made = pod(world)
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert used(world) == {"requests.cpu": "1", "limits.cpu": "2"}


@pytest.mark.parametrize(
    ("bounds", "requests", "most", "why"),
    [
        (
            {"max": {"cpu": "1"}},
            {},
            {"cpu": "2"},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"min": {"cpu": "1"}},
            {"cpu": "100m"},
            {},
            "minimum cpu usage per Container is 1, but request is 100m",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "1"},
            {"cpu": "3"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
    ids=["max", "min", "ratio"],
)
def test_a_container_out_of_bounds_is_refused(world, bounds, requests, most, why):
    limits(world, type="Container", **bounds)
    assert why in refused(world, "p", requests, most)


def test_a_pod_out_of_bounds_is_refused_by_the_sum_of_its_containers(world):
    limits(world, type="Pod", max={"cpu": "3"})
    two = {"name": "d", "image": "i", "resources": {"limits": {"cpu": "2"}}}
    why = refused(world, containers=[two, {**two, "name": "e"}])
    assert "maximum cpu usage per Pod is 3, but limit is 4" in why
    assert "maximum cpu usage per Pod is 3.  No limit is specified" in refused(world)
    pod(world, containers=[two])


def test_a_claim_out_of_bounds_is_refused(world):
    limits(world, type="PersistentVolumeClaim", max={"storage": "1Gi"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    with pytest.raises(ApiError, match="maximum storage usage per PersistentVolumeClaim is 1Gi"):
        world.create("v1", "persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
