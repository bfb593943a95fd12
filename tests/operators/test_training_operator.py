"""Goal: Kubeflow's jobs run on quorate as they are documented, whichever gangs the operator makes.

Method: the released operator, started with each documented value of its flag. Nodes take one pod
each, so that room is a number of pods.
"""

from collections.abc import Iterator

import pytest

from tests.operators.jobs import ONE_POD, Job, for_each_api, groups
from tools.harness.faults import clear_lease
from tools.harness.world import World
from tools.objects import VOLCANO, X_K8S, pod
from tools.testing import wait_for

FLAGS = {
    "scheduler-plugins": X_K8S,
    "scheduler-plugins-scheduler": X_K8S,
    "volcano": VOLCANO,
}
"""Values of --gang-scheduler-name, and the API of the PodGroups that the operator then makes."""
JOBS = ("tfjob-simple", "tfjob-gang-scheduling", "pytorch", "xgboost")


@pytest.fixture(scope="module", params=FLAGS)
def api(request, training_operator, quorate) -> str:
    training_operator.start(f"--gang-scheduler-name={request.param}")
    return FLAGS[request.param]


@pytest.fixture(scope="module", autouse=True)
def job_of_nobody(cluster, quorate, training_operator) -> Iterator[Job]:
    """A job that waits from the first test on: only after a while is anything said."""
    training_operator.start(f"--gang-scheduler-name={next(iter(FLAGS))}")
    job = Job(World(cluster, quorate, "nobodys"), "pytorch.yaml")
    for one in job.manifest["spec"]["pytorchReplicaSpecs"].values():
        one["template"]["spec"]["schedulerName"] = "nobodys"
    job.create()
    wait_for(lambda: len(job.pods()) == job.size, "its pods are there")
    yield job
    job.world.remove()


def is_over(world, job: Job, api: str) -> bool:
    """Whether the job has succeeded, and its PodGroup is gone."""
    return job.is_("Succeeded") and not groups(world, api)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_waits_whole_starts_whole_and_completes(world, api, name):
    job = Job(world, f"{name}.yaml")
    world.nodes(job.size - 2, prefix="first-", allocatable=ONE_POD)
    job.create()
    wait_for(lambda: groups(world, api), "the operator has made its group")
    short = "NotEnoughRoom", "MinResourcesShort"
    wait_for(lambda: world.why(job.name)["reason"] in short, "quorate says what it waits for")
    world.stays_unbound()
    assert job.is_("Created")
    assert not job.is_("Running")
    world.nodes(2, prefix="second-", allocatable=ONE_POD)
    job.wait_running()
    wait_for(lambda: job.is_("Running"), "its status says so")
    job.finish(*job.followers())
    job.finish(job.leader())
    wait_for(lambda: is_over(world, job, api), "it has succeeded, and its group is gone")


@for_each_api
@pytest.mark.parametrize("name", JOBS)
def test_the_last_member_that_dies_comes_back_though_others_want_its_node(world, api, name):
    """The documentation warns of a deadlock: a pod dies, and others take what it had.

    A signal ends it, and the replicas have the restart policy ExitCode: by all others the operator
    takes the job for failed, or the kubelet starts the container again where it was.
    """
    job = Job(world, f"{name}.yaml").with_replicas(restartPolicy="ExitCode")
    world.nodes(job.size, allocatable=ONE_POD)
    job.create().wait_running()
    followers = job.followers()
    job.finish(*followers)
    rivals = [pod(f"rival-{i}", labels={"app": "rival"}) for i in range(len(followers) + 1)]
    world.create_pods(rivals)
    world.wait_bound(len(followers), "app=rival")
    last = job.leader()
    job.fail(last, code=137)
    job.wait_runs_anew(last)
    assert world.bound("app=rival") == len(followers)
    job.finish(job.leader())
    wait_for(lambda: is_over(world, job, api), "it has succeeded, and its group is gone")


@for_each_api
def test_a_minimum_that_the_job_never_meets_is_said_until_it_is_lowered(world, api):
    world.nodes(8, allocatable=ONE_POD)
    job = Job(world, "pytorch.yaml").with_policy(schedulingPolicy={"minAvailable": 6}).create()
    job.wait_too_few("4 of 6 members exist")
    assert world.why(job.name)["reason"] == "NotEnoughMembers"
    Job(world, "xgboost.yaml").create().wait_running()
    assert not job.running()
    job.change(runPolicy={"schedulingPolicy": {"minAvailable": 4}})
    job.wait_running()


@for_each_api
def test_kill_9_of_both_in_the_middle_of_a_start_loses_nothing(
    world, api, quorate, training_operator
):
    """Wherever in its start the job is then, it is whole afterwards."""
    job = Job(world, "pytorch.yaml")
    world.nodes(job.size, allocatable=ONE_POD)
    job.create()
    wait_for(lambda: world.bound() or job.running(), "a pod has a node")
    quorate.kill()
    training_operator.kill()
    clear_lease(world, "quorate-system")
    quorate.start()
    training_operator.restart()
    job.wait_running()
    assert quorate.violations() == 0
    job.finish(*job.followers(), job.leader())
    wait_for(lambda: is_over(world, job, api), "it has succeeded, and its group is gone")


@pytest.mark.parametrize("api", ["scheduler-plugins-scheduler"], indirect=True, scope="module")
def test_a_scheduler_name_that_nobody_owns_is_said_on_the_group_and_its_pods(job_of_nobody, api):
    """Nothing was said of such jobs, in no object, and they waited for ever."""
    job, world = job_of_nobody, job_of_nobody.world
    words = (
        "4 pods have schedulerName nobodys; quorate does not own that name, and no scheduler that "
        "does has said anything"
    )
    told = {("PodGroup", job.name), *(("Pod", one["metadata"]["name"]) for one in job.pods())}
    wait_for(lambda: about(world, words) == told, "its group and all of its pods say so")
    assert world.why(job.name)["reason"] == "OtherScheduler"
    assert not job.running()


def about(world, words: str) -> set[tuple[str, str]]:
    """Return kinds and names of the objects whose Events say this."""
    found = [one for one in world.all_events() if one["note"] == words]
    assert {one["reportingController"] for one in found} <= {"quorate"}
    return {(one["regarding"]["kind"], one["regarding"]["name"]) for one in found}
