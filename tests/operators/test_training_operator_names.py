"""Goal: what jobs name, a queue or a class, counts, or a reason says why it cannot.

Method: the released training-operator, with gangs of Volcano's kind. Nodes take one pod each.
"""

from collections.abc import Iterator

import pytest

from tests.operators.jobs import ONE_POD, Job, groups
from tools.objects import VOLCANO, named
from tools.testing import wait_for

QUEUES = "queues.scheduling.volcano.sh"


@pytest.fixture(scope="module", autouse=True)
def operator(training_operator, quorate) -> None:
    training_operator.start("--gang-scheduler-name=volcano")


@pytest.fixture
def queue(world) -> Iterator[str]:
    """A queue of the test's own, which is there or not when it ends."""
    name = f"{world.namespace}-research"
    yield name
    world.kubectl("delete", QUEUES, name, "--ignore-not-found")


def make(world, queue: str) -> None:
    world.apply(named("Queue", "scheduling.volcano.sh/v1beta1", queue, spec={"weight": 1}))


def with_policy(job: Job, **policy: object) -> Job:
    return job.with_policy(schedulingPolicy=policy)


def test_a_job_of_a_queue_that_does_not_exist_says_so_and_starts_when_it_does(world, queue):
    """The queue goes while the job waits: where Volcano's admission is, it lets none be made so."""
    make(world, queue)
    job = with_policy(Job(world, "pytorch.yaml"), queue=queue).create()
    world.wait_event("FailedScheduling", "minResources ask for 4 nvidia.com/gpu (0 free)")
    world.kubectl("delete", QUEUES, queue)
    words = f"queue {queue} (spec.queue) does not exist"
    hint = f"create Queue {queue}, or name another queue in PyTorchJob pytorch"
    world.wait_event("FailedScheduling", words)
    why = world.why("pytorch")
    assert (why["reason"], why["message"], why["hint"]) == ("QueueNotFound", words, hint)
    wait_for(lambda: words in str(groups(world, VOLCANO)[0]["status"]), "its group says so")
    assert groups(world, VOLCANO)[0]["status"]["phase"] == "Pending"
    world.nodes(8, allocatable=ONE_POD)
    Job(world, "xgboost.yaml").create().wait_running()
    assert not job.pods()
    make(world, queue)
    job.wait_running()
    job.finish(*job.followers(), job.leader())
    wait_for(lambda: job.is_("Succeeded"), "its status says so")


def test_pods_of_a_job_whose_queue_has_gone_before_they_were_placed_say_so(world, queue):
    """They are made when the group is admitted, and there is no room yet."""
    make(world, queue)
    nodes = world.nodes(4, allocatable=ONE_POD)
    world.cordon(*nodes)
    job = with_policy(Job(world, "pytorch.yaml"), queue=queue, minResources={}).create()
    wait_for(lambda: len(job.pods()) == job.size, "its pods are there")
    world.kubectl("delete", QUEUES, queue)
    world.wait_condition(f"queue {queue} (spec.queue) does not exist", job.selector)
    world.uncordon(*nodes)
    world.settle()
    assert not job.running()
    make(world, queue)
    job.wait_running()


def test_of_two_jobs_that_wait_the_one_of_the_higher_priority_class_goes_first(world):
    """Their pods have no class: the operator writes it into the group alone."""
    nodes = world.nodes(3, allocatable=ONE_POD)
    world.cordon(*nodes)
    jobs = {}
    for name, value in (("low", 10), ("high", 20)):
        world.apply(named("PriorityClass", "scheduling.k8s.io/v1", name, value=value))
        job = with_policy(Job(world, "xgboost.yaml", name), priorityClass=name, minResources={})
        jobs[name] = job.create()
    wait_for(lambda: len(world.pods()) == 6, "all pods wait for room")
    assert {one["spec"]["priority"] for one in world.pods()} == {0}
    assert world.why("high")["priority"] == 20
    world.uncordon(*nodes)
    jobs["high"].wait_running()
    assert not jobs["low"].running()


def test_a_priority_class_that_does_not_exist_is_warned_of_and_the_job_runs(world):
    world.nodes(4, allocatable=ONE_POD)
    with_policy(Job(world, "pytorch.yaml"), priorityClass="nobodys").create().wait_running()
    world.wait_event(
        "GangLabels",
        'spec.priorityClassName is "nobodys", and there is no PriorityClass of that name: the '
        "priority of the pods counts; create it, or name another one",
    )
