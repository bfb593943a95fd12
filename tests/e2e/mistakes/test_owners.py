"""Goal: a hint never asks for what is so already: it names what holds an owner back.

Method: what users reported, against the controllers that make the pods; the same words are in the
condition, in the Event and in ``quorate why``, and lint says before what can be said before.
"""

import json

import pytest

from tests.e2e.harness.workloads import CASES, case
from tools.testing import call, wait_for

BATCH = "batch/v1"
REFUSED = "2 of 4 members exist; Job {} makes 4, and the API server refuses the others: "
QUOTA = (
    "exceeded quota: team-cpu, requested: requests.cpu=1, used: requests.cpu=4, "
    "limited: requests.cpu=4"
)

pytestmark = pytest.mark.core


def of_job(name: str) -> str:
    return f"batch.kubernetes.io/job-name={name}"


def patch_job(world, name: str, **spec) -> None:
    world.patch(world.path("jobs", name, BATCH), {"spec": spec})


def is_told_alike(world, name: str, reason: str, text: str, selector: str = "") -> dict:
    """Look for the same words in condition, Event and command line; return the explanation."""
    sentence = world.wait_condition(text, selector)
    explanation = world.why(name)
    assert (explanation["reason"], explanation["message"]) == (reason, sentence)
    assert (reason, sentence) in world.conditions(selector)
    assert world.wait_event("FailedScheduling", sentence) == sentence
    return explanation


def has_quota(world, quota: dict) -> None:
    """Create a quota, and wait until it counts."""
    world.apply(quota)
    path = world.path("resourcequotas", quota["metadata"]["name"])
    wait_for(lambda: world.cluster.api("GET", path).get("status"), "the quota counts")


def test_a_quota_that_refuses_the_others_is_named_when_jobs_are_scaled(world):
    """It said "Job alpha makes 4", and asked for a Job that makes 4."""
    world.nodes(3, allocatable={"cpu": "4"})
    quota, *others = case("04-quota.yaml")
    has_quota(world, quota)
    world.apply(*others)
    for name in ("alpha", "beta"):
        text = f"2 of 4 members exist; Job {name} makes 2"
        world.wait_condition(text, of_job(name))
    for name in ("alpha", "beta"):
        patch_job(world, name, parallelism=4)
    for name in ("alpha", "beta"):
        text = REFUSED.format(name) + QUOTA
        explanation = is_told_alike(world, name, "NotEnoughMembers", text, of_job(name))
        assert explanation["hint"] == "let what refuses them allow more, or lower min to 2"
    world.cluster.api("DELETE", world.path("resourcequotas", "team-cpu"))
    wait_for(lambda: world.running() == 8, "with the hint followed, both start")


def test_a_quota_is_named_for_a_deployment_too(world):
    """Its ReplicaSet has the Event; the Deployment's own condition has the words."""
    world.nodes(3, allocatable={"cpu": "4"})
    quota, group, _, job, _ = case("04-quota.yaml")
    template = job["spec"]["template"]
    template["metadata"]["labels"]["app"] = "alpha"
    template["spec"] |= {"restartPolicy": "Always"}
    spec = {"replicas": 6, "selector": {"matchLabels": {"app": "alpha"}}, "template": template}
    group["spec"]["minMember"] = 6
    has_quota(world, quota)
    world.apply(
        group,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec},
    )
    is_told_alike(
        world,
        "alpha",
        "NotEnoughMembers",
        "4 of 6 members exist; Deployment web makes 6, and the API server refuses the others: "
        "exceeded quota: team-cpu",
    )


def test_a_stateful_set_that_makes_its_pods_in_order_can_never_start(world, capsys):
    """Lint found nothing, and the hint asked for a StatefulSet that makes 3."""
    world.nodes(3, allocatable={"cpu": "4"})
    ring = case("05-ordered-ready.yaml")
    world.apply(*ring)
    explanation = is_told_alike(
        world,
        "ring",
        "OwnerMakesTooFew",
        "1 of 3 members exist; StatefulSet ring makes its 3 pods one after another",
    )
    assert explanation["hint"] == "make StatefulSet ring anew with podManagementPolicy: Parallel"
    assert call("lint", str(CASES / "05-ordered-ready.yaml"), "-o", "json") == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["rule"], found["severity"]) == ("pods-made-in-order", "error")
    assert found["hint"] == "write spec.podManagementPolicy: Parallel"
    world.cluster.api("DELETE", world.path("statefulsets", "ring", "apps/v1"))
    wait_for(lambda: not world.pods("app=ring"), "its pod is gone")
    ring[1]["spec"]["podManagementPolicy"] = "Parallel"
    world.apply(ring[1])
    wait_for(lambda: world.running("app=ring") == 3, "with the hint followed, it starts")


def test_a_second_owner_that_is_suspended_is_named(world):
    """It said "Job driver has to make 3": the two workers come from another Job."""
    world.nodes(3, allocatable={"cpu": "4"})
    world.apply(*case("15-two-owners.yaml"))
    alone = "1 of 3 members exist; Job driver makes 1"
    explanation = is_told_alike(world, "mixed", "OwnerMakesTooFew", alone)
    assert explanation["hint"] == (
        "make Job driver anew with parallelism and completions of 3, or lower min to 1; more "
        "members may come from elsewhere"
    )
    world.apply(*case("15b-second-owner.yaml"))
    explanation = world.why("mixed")
    assert explanation["message"] == f"{alone}; Job workers is suspended"
    assert explanation["hint"] == "resume Job workers (spec.suspend: false)"
    patch_job(world, "workers", suspend=False)
    wait_for(lambda: world.running() == 3, "with the hint followed, it starts")


def test_a_gang_whose_pods_are_all_refused_says_so(world):
    """It said "create the other 4" of a Job that tries to."""
    quota, group, _, job, _ = case("04-quota.yaml")
    quota["spec"]["hard"] = {"requests.cpu": "0"}
    job["spec"]["parallelism"] = 4
    has_quota(world, quota)
    world.apply(group, job)
    words = "0 of 4 members exist; Job alpha makes 4, and the API server refuses the others"
    explanation = wait_for(
        lambda: (said := world.why("alpha"))["message"].startswith(words) and said,
        "it is told what refuses them",
    )
    assert "exceeded quota: team-cpu" in explanation["message"]
    assert explanation["hint"] == "let what refuses them allow more"
