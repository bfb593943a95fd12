"""Goal: the last members of a Job are replaced, though all that they started with have ended.

Method: real Jobs; their pods' ends are written into their status, as a kubelet would.
"""

from pathlib import Path

import pytest
import yaml

from tools.testing import wait_for

CASES = Path(__file__).parents[1] / "cases"
DIALECTS = ("tune", "tune-native")
"""The Jobs of case 01: by scheduler-plugins' label, and by the native API."""

pytestmark = pytest.mark.core


def straggler(name: str) -> list[dict]:
    """Return the gang's object and the Job of this name of case 01, without their namespace."""
    found = yaml.safe_load_all((CASES / "01-straggler.yaml").read_text())
    pair = [one for one in found if one["metadata"]["name"] == name]
    for one in pair:
        del one["metadata"]["namespace"]
    return pair


def pods_of(world, job: str) -> list[dict]:
    return world.pods(f"batch.kubernetes.io/job-name={job}")


def running(world, job: str) -> list[dict]:
    return [pod for pod in pods_of(world, job) if pod["status"]["phase"] == "Running"]


def end(world, pod: dict, phase: str) -> None:
    """Let a pod end."""
    path = f"{world.path('pods', pod['metadata']['name'])}/status"
    world.patch(path, {"status": {"phase": phase}})


def index_of(pod: dict) -> str:
    return pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]


def succeeded(world, job: str) -> int:
    return world.cluster.api("GET", world.path("jobs", job, "batch/v1"))["status"].get(
        "succeeded", 0
    )


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


def test_the_last_worker_that_is_evicted_is_replaced_alone(world):
    world.nodes(3, allocatable={"cpu": "4"})
    *others, last = start(world, *straggler("tune"), job="tune", members=3)
    for one in others:
        end(world, one, "Succeeded")
    wait_for(lambda: succeeded(world, "tune") == 2, "the Job has counted them")
    world.cordon(last["spec"]["nodeName"])
    name = last["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    world.cluster.api("POST", f"{world.path('pods', name)}/eviction", eviction)

    def replaced() -> bool:
        return name not in [one["metadata"]["name"] for one in running(world, "tune")]

    wait_for(lambda: running(world, "tune") and replaced(), "the replacement runs")
    [again] = running(world, "tune")
    assert again["spec"]["nodeName"] != last["spec"]["nodeName"]


def test_the_smaller_last_wave_of_a_job_starts(world):
    """Of 5 completions, 4 at a time."""
    world.nodes(3, allocatable={"cpu": "4"})
    group, job = straggler("tune")
    group["spec"]["minMember"] = 4
    job["spec"] |= {"completions": 5, "parallelism": 4}
    for one in start(world, group, job, job="tune", members=4):
        end(world, one, "Succeeded")
    wait_for(lambda: succeeded(world, "tune") == 4, "the Job has counted them")
    wait_for(lambda: len(running(world, "tune")) == 1, "the last one runs")
