"""Goal: MPIJobs run on quorate as they are documented, whichever gangs the operator makes.

Method: the released operator, started with each documented value of its flag.
"""

import pytest

from tests.operators.jobs import ONE_POD, Job, for_each_api, uids
from tools.objects import VOLCANO, X_K8S, pod
from tools.testing import wait_for

FLAGS = {
    "default-scheduler": X_K8S,
    "scheduler-plugins-scheduler": X_K8S,
    "volcano": VOLCANO,
}
"""Values of --gang-scheduling, and the API of the PodGroups that the operator then makes."""


@pytest.fixture(scope="module", params=FLAGS)
def api(request, mpi_operator, quorate) -> str:
    mpi_operator.start(f"--gang-scheduling={request.param}")
    return FLAGS[request.param]


def is_left_alone(world, api: str) -> bool:
    """Whether its PodGroup stays as it is until quorate has decided about all there is."""
    before = world.group("pi", api)
    world.settle()
    return world.group("pi", api) == before


def complete(job: Job, api: str) -> None:
    """End the launcher's pod, as the program's end would; all is cleaned up then."""
    job.complete()
    group = job.world.path("podgroups", job.name, api)
    wait_for(lambda: not job.world.cluster.exists(group), "its PodGroup is gone")
    wait_for(lambda: not job.pods("worker"), "its workers are gone, by cleanPodPolicy")


def test_a_job_waits_whole_starts_whole_and_completes(world, api):
    job = Job(world, "pi.yaml")
    world.nodes(job.size - 2, prefix="first-", allocatable=ONE_POD)
    job.create()
    wait_for(lambda: job.is_("Created"), "the operator has seen it")
    wait_for(lambda: len(job.pods()) == job.size, "it has all of its pods")
    world.settle()
    assert world.bound() == 0
    assert not job.is_("Running")
    world.nodes(2, prefix="second-", allocatable=ONE_POD)
    job.wait_running()
    wait_for(lambda: job.is_("Running"), "its status says so")
    wait_for(lambda: is_left_alone(world, api), "nobody writes its PodGroup any more")
    complete(job, api)


@for_each_api
def test_a_minimum_that_the_job_never_meets_is_said_until_it_is_lowered(world, api):
    world.nodes(4, allocatable=ONE_POD)
    job = Job(world, "pi.yaml").with_policy(schedulingPolicy={"minAvailable": 9}).create()
    job.wait_too_few("3 of 9 members exist")
    job.change(runPolicy={"schedulingPolicy": {"minAvailable": 3}})
    job.wait_running()


@for_each_api
def test_lost_members_are_replaced_alone_though_others_want_their_room(world, api):
    """A worker that is drained, then the launcher's pod, which fails."""
    world.nodes(5, allocatable=ONE_POD)
    job = Job(world, "pi.yaml").create()
    job.wait_running()
    world.create_pods(pod(f"other-{i}", requests=None) for i in range(3))
    world.wait_bound(5)
    wait_for(lambda: len(world.conditions()) == 1, "one of the others waits")

    drained, stays = job.pods("worker")
    launcher = job.pods("launcher")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
    about = {"name": drained["metadata"]["name"], "namespace": world.namespace}
    path = f"{world.path('pods', drained['metadata']['name'])}/eviction"
    world.cluster.api("POST", path, {**eviction, "metadata": about})
    wait_for(
        lambda: uids(job.running()).isdisjoint(uids([drained])) and len(job.running()) == 3,
        "the worker is replaced",
    )
    assert uids(job.running()) > uids([stays, *launcher])

    failed = f"{world.path('pods', launcher[0]['metadata']['name'])}/status"
    world.patch(failed, {"status": {"phase": "Failed"}})
    wait_for(
        lambda: uids(job.running()).isdisjoint(uids(launcher)) and len(job.running()) == 3,
        "the launcher is replaced",
    )
    assert len(world.conditions()) == 1, "the other one still waits"
    complete(job, api)
