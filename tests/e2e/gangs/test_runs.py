"""Goal: the last members of a Job are replaced, and two runs of a CronJob are never one gang.

Method: real Jobs; their pods' ends are written into their status, as a kubelet would.
"""

import pytest

from tests.e2e.harness.workloads import case
from tools.testing import wait_for

BATCH = "batch/v1"
JOB = "batch.kubernetes.io/job-name={}"
DIALECTS = ("tune", "tune-native")
"""The Jobs of case 01: by scheduler-plugins' label, and by the native API."""

pytestmark = pytest.mark.core


def straggler(name: str) -> list[dict]:
    return case("01-straggler.yaml", name)


def pods_of(world, job: str) -> list[dict]:
    return world.pods(JOB.format(job))


def running(world, job: str) -> list[dict]:
    return [pod for pod in pods_of(world, job) if pod["status"]["phase"] == "Running"]


def end(world, pod: dict, phase: str) -> None:
    """Let a pod end."""
    path = f"{world.path('pods', pod['metadata']['name'])}/status"
    world.patch(path, {"status": {"phase": phase}})


def index_of(pod: dict) -> str:
    return pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]


def succeeded(world, job: str) -> int:
    return world.cluster.api("GET", world.path("jobs", job, BATCH))["status"].get("succeeded", 0)


def start(world, *objects: dict, job: str, members: int) -> list[dict]:
    """Start a Job's gang; return its pods."""
    world.apply(*objects)
    wait_for(lambda: len(running(world, job)) == members, "all members run")
    return running(world, job)


@pytest.mark.parametrize("job", DIALECTS)
def test_the_last_member_that_fails_is_replaced_alone(world, job):
    world.nodes(3, allocatable={"cpu": "4"})
    pods = start(world, *straggler(job), job=job, members=3)
    *others, last = sorted(pods, key=index_of)
    for one in others:
        end(world, one, "Succeeded")
    wait_for(lambda: succeeded(world, job) == 2, "the Job has counted them")
    end(world, last, "Failed")
    wait_for(lambda: running(world, job), "the replacement runs")
    [again] = running(world, job)
    assert index_of(again) == "2"
    end(world, again, "Succeeded")
    wait_for(lambda: succeeded(world, job) == 3, "the Job is complete")


def run_of(world, cron_job: dict, name: str) -> None:
    """Make a Job of a CronJob, as ``kubectl create job --from`` does."""
    made_by = world.cluster.api("GET", world.path("cronjobs", cron_job["metadata"]["name"], BATCH))
    owner = {"apiVersion": BATCH, "kind": "CronJob", "name": made_by["metadata"]["name"]}
    owner |= {"uid": made_by["metadata"]["uid"], "controller": True}
    metadata = {"name": name, "ownerReferences": [owner]}
    spec = cron_job["spec"]["jobTemplate"]["spec"]
    job = {"apiVersion": BATCH, "kind": "Job", "metadata": metadata, "spec": spec}
    world.cluster.api("POST", world.path("jobs", api=BATCH), job)


def test_the_next_run_of_a_cron_job_starts_as_a_whole_when_the_first_has_ended(world):
    """2 of its 4 pods started beside the first run, where there was room for 6."""
    world.nodes(1, allocatable={"cpu": "6"})
    group, cron_job = case("03-cron-job.yaml", "nightly")
    world.apply(group, cron_job)
    run_of(world, cron_job, "first")
    wait_for(lambda: len(running(world, "first")) == 4, "the first run has started")
    run_of(world, cron_job, "second")
    world.wait_condition("Job second is of CronJob nightly, and Job first", JOB.format("second"))
    world.stays_unbound(JOB.format("second"))
    found = world.why("nightly")
    assert (found["state"], found["reason"]) == ("Started", "EarlierRunGoesOn")
    for one in running(world, "first"):
        end(world, one, "Succeeded")
    wait_for(lambda: len(running(world, "second")) == 4, "the second run has started")


def test_a_driver_and_workers_that_join_it_later_are_one_gang(world):
    """Two Jobs that no CronJob made."""
    world.nodes(1, allocatable={"cpu": "6"})
    group, cron_job = case("03-cron-job.yaml", "nightly")
    spec = cron_job["spec"]["jobTemplate"]["spec"]
    world.apply(group)
    for name, pods in (("driver", 4), ("workers", 2)):
        job = {"apiVersion": BATCH, "kind": "Job", "metadata": {"name": name}, "spec": spec}
        job["spec"] = job["spec"] | {"parallelism": pods, "completions": pods}
        world.apply(job)
        wait_for(lambda name=name, pods=pods: len(running(world, name)) == pods, f"{name} runs")
