"""Goal: Volcano's own jobs run on quorate, in a cluster without Volcano's scheduler.

Method: its controllers and its admission as they are released. Nodes take one pod each, so that
room is a number of pods.
"""

import pytest

from tests.operators.jobs import ONE_POD, VolcanoJob, admits, command
from tools.harness.faults import clear_lease
from tools.objects import named
from tools.testing import wait_for

QUEUE = "scheduling.volcano.sh/v1beta1"
pytestmark = pytest.mark.usefixtures("volcano")


def condition(job: VolcanoJob, kind: str) -> dict:
    """Return a condition of its PodGroup."""
    found = job.group().get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


def path_of(queue: str) -> str:
    return f"/apis/{QUEUE}/queues/{queue}"


def state_of(world, queue: str) -> str:
    return world.cluster.api("GET", path_of(queue)).get("status", {}).get("state", "")


def test_a_job_waits_whole_without_pods_starts_whole_and_completes(world):
    job = VolcanoJob(world, "vcjob.yaml")
    world.nodes(job.size - 2, prefix="first-", allocatable=ONE_POD)
    job.create()
    words = "3/3 tasks in gang unschedulable: minResources ask for 3 pods (2 free)"
    wait_for(lambda: condition(job, "Unschedulable").get("message") == words, "its group says so")
    world.wait_event("PodGroupPending", words)
    assert (job.phase(), job.is_("Pending"), job.pods()) == ("Pending", True, [])
    world.nodes(2, prefix="second-", allocatable=ONE_POD)
    job.wait_running()
    wait_for(lambda: job.is_("Running"), "its status says so")
    wait_for(lambda: job.phase() == "Running", "its group's phase says so")
    assert condition(job, "Scheduled")["status"] == "True"
    assert condition(job, "Unschedulable")["status"] == "False"
    assert not world.events("GangLabels")
    job.finish(*job.pods())
    wait_for(lambda: job.is_("Completed"), "its status says so")


def test_the_job_is_over_when_the_master_of_mpi_is(world):
    """It names no queue and no scheduler, and tasks say what they need: admission adds all that."""
    world.nodes(2, prefix="first-", allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob-mpi.yaml").create()
    wait_for(lambda: job.phase() == "Pending", "it waits")
    world.nodes(1, prefix="second-", allocatable=ONE_POD)
    job.wait_running()
    assert job.group()["spec"]["minTaskMember"] == {"mpimaster": 1, "mpiworker": 2}
    job.finish(*job.pods("mpimaster"))
    wait_for(lambda: job.is_("Completed"), "its status says so")
    wait_for(lambda: not job.pods("mpiworker"), "its workers are gone")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, "spec.networkTopology"),
        ({"partitionPolicy": {"partitionSize": 2, "totalPartitions": 2}}, "spec.subGroupPolicy"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_the_group_and_on_its_pods(world, said, words):
    world.nodes(8, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml")
    spec = job.manifest["spec"]
    (spec if "networkTopology" in said else spec["tasks"][0]).update(said)
    job.create()
    wait_for(lambda: words in condition(job, "Unschedulable").get("message", ""), "it says so")
    world.wait_condition(words, job.selector)
    world.settle()
    assert not job.running()
    VolcanoJob(world, "vcjob.yaml", "other").create().wait_running()


def test_what_is_not_looked_at_is_said(world):
    world.nodes(4, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml")
    job.manifest["metadata"]["annotations"] = {"volcano.sh/sla-waiting-time": "1h"}
    job.manifest["spec"]["networkTopology"] = {"mode": "soft"}
    job.create().wait_running()
    world.wait_event(
        "GangLabels",
        "spec.networkTopology is soft and not looked at: members go to any nodes that have room; "
        "annotation volcano.sh/sla-waiting-time is not looked at",
    )


def test_the_queues_are_there_and_their_controller_closes_and_opens_one(world):
    assert (state_of(world, "root"), state_of(world, "default")) == ("Open", "Open")
    for action, state in (("CloseQueue", "Closed"), ("OpenQueue", "Open")):
        command(world, path_of("default"), action)
        wait_for(lambda state=state: state_of(world, "default") == state, f"it is {state}")


def test_no_job_starts_from_a_queue_that_closes_and_what_has_started_goes_on(world):
    """Nor may another queue be put below one of which a job takes something."""
    queue = f"{world.namespace}-research"
    below = named("Queue", QUEUE, f"{queue}-below", spec={"weight": 1, "parent": queue})
    world.apply(named("Queue", QUEUE, queue, spec={"weight": 1}))
    jobs = [VolcanoJob(world, "vcjob.yaml", name) for name in ("one", "two")]
    for job in jobs:
        job.manifest["spec"]["queue"] = queue
    wait_for(lambda: admits(world.cluster, jobs[0].manifest), "it is open")
    assert admits(world.cluster, below)
    world.nodes(jobs[0].size, prefix="first-", allocatable=ONE_POD)
    jobs[0].create().wait_running()
    wait_for(lambda: not admits(world.cluster, below), "it is known what is taken of the queue")
    jobs[1].create()
    wait_for(jobs[1].phase, "its group is seen")
    command(world, path_of(queue), "CloseQueue")
    words = f"queue {queue} (spec.queue) is closed"
    world.wait_event("FailedScheduling", words)
    world.nodes(jobs[1].size, prefix="second-", allocatable=ONE_POD)
    world.settle()
    assert len(jobs[0].running()) == jobs[0].size
    assert (jobs[1].pods(), state_of(world, queue)) == ([], "Closing")
    command(world, path_of(queue), "OpenQueue")
    jobs[1].wait_running()


def test_tasks_of_one_job_may_differ_in_priority(world):
    """A master that matters more than its workers held its whole job for ever."""
    world.nodes(3, allocatable=ONE_POD)
    name = f"{world.namespace}-master"
    world.apply(named("PriorityClass", "scheduling.k8s.io/v1", name, value=10))
    job = VolcanoJob(world, "vcjob-mpi.yaml")
    job.manifest["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = name
    job.create().wait_running()
    assert {one["spec"]["priority"] for one in job.pods()} == {0, 10}


def test_kill_9_of_both_in_the_middle_of_a_start_loses_nothing(world, quorate, volcano):
    world.nodes(4, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml").create()
    wait_for(lambda: world.bound() or job.running(), "a pod has a node")
    quorate.kill()
    volcano.kill()
    clear_lease(world, "quorate-system")
    quorate.start()
    volcano.restart()
    job.wait_running()
    assert quorate.violations() == 0
    job.finish(*job.pods())
    wait_for(lambda: job.is_("Completed"), "its status says so")
