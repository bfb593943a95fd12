"""Goal: whatever happens to jobs and pods of Volcano, no gang runs in part or is lost.

Method: its controllers and its admission as they are released. Nodes take one pod each.
"""

import pytest

from tests.operators.jobs import ONE_POD, VolcanoJob, groups, role, uids
from tools.objects import VOLCANO, pod, workload
from tools.testing import wait_for

MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
pytestmark = pytest.mark.usefixtures("volcano")


def test_a_task_waits_for_the_one_that_it_depends_on(world):
    """The gang is the workers: their min is the job's, and the master comes when they run."""
    world.nodes(3, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob-mpi.yaml")
    job.manifest["spec"]["minAvailable"] = 2
    job.manifest["spec"]["tasks"][0]["dependsOn"] = {"name": ["mpiworker"]}
    job.create().wait_running()
    started = {role(one): one["status"]["startTime"] for one in job.pods()}
    assert started["mpiworker"] <= started["mpimaster"]


def test_the_whole_job_starts_anew_when_a_pod_fails(world):
    world.nodes(4, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml")
    job.manifest["spec"]["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    job.create().wait_running()
    before = uids(job.pods())
    job.fail(job.leader(), code=1)
    wait_for(lambda: not before & uids(world.pods()), "none of its pods is left")
    job.wait_running()
    wait_for(lambda: job.is_("Running"), "its status says so")


def test_the_whole_job_starts_anew_when_a_lost_member_finds_no_room(world):
    """Its group's phase is Unknown then, on which its policy acts."""
    nodes = world.nodes(3, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml").with_workers(3)
    job.manifest["spec"]["policies"] = [{"event": "Unknown", "action": "RestartJob"}]
    job.create().wait_running()
    before = uids(job.pods())
    lost = job.leader()
    world.cordon(lost["spec"]["nodeName"])
    world.delete_pod(lost["metadata"]["name"])
    wait_for(lambda: not before & uids(world.pods()), "none of its pods is left")
    world.settle()
    assert not job.running()
    world.uncordon(*nodes)
    job.wait_running()


def test_an_aborted_job_frees_its_room_and_starts_whole_when_it_is_resumed(world):
    world.nodes(3, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml").with_workers(3)
    job.create().wait_running()
    job.command("AbortJob")
    wait_for(lambda: job.is_("Aborted") and not job.pods(), "it is aborted")
    other = VolcanoJob(world, "vcjob-mpi.yaml").create()
    other.wait_running()
    job.command("ResumeJob")
    wait_for(lambda: job.phase() == "Pending" or job.pods(), "it waits")
    world.settle()
    assert not job.running()
    other.finish(*other.pods("mpimaster"))
    job.wait_running()


def test_a_job_that_grows_while_it_runs_keeps_what_runs_and_starts_what_fits(world):
    """Its controller raises minMember in the group: what has started is not stopped for it."""
    world.nodes(3, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml").with_workers(3)
    job.create().wait_running()
    before = uids(job.pods())
    job.grow(5)
    wait_for(lambda: len(job.pods()) == 5, "its controller has made the others")
    world.settle()
    assert uids(job.running()) == before
    world.nodes(2, prefix="more-", allocatable=ONE_POD)
    job.wait_running()
    assert uids(job.running()) > before


def test_a_job_that_is_deleted_while_it_waits_leaves_nothing(world):
    world.nodes(2, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml").create()
    wait_for(lambda: job.phase() == "Pending", "it waits")
    job.delete()
    wait_for(lambda: not groups(world, VOLCANO), "its group is gone")
    world.nodes(1, prefix="third-", allocatable=ONE_POD)
    again = VolcanoJob(world, "vcjob.yaml").create()
    again.wait_runs(3)


def test_a_job_that_is_cleaned_up_by_its_ttl_leaves_nothing(world):
    world.nodes(4, allocatable=ONE_POD)
    job = VolcanoJob(world, "vcjob.yaml")
    job.manifest["spec"]["ttlSecondsAfterFinished"] = 1
    job.create().wait_running()
    job.finish(*job.pods())
    wait_for(lambda: not job.exists() and not job.pods(), "its controller has deleted it")
    wait_for(lambda: not groups(world, VOLCANO), "its group is gone")


def test_pods_of_a_deployment_start_each_by_itself(world):
    """Volcano's controllers make a group of one for each ReplicaSet."""
    world.nodes(2, allocatable=ONE_POD)
    one = pod("web", scheduler="volcano", labels={"app": "web"})
    world.apply(workload("Deployment", "web", one, replicas=3))
    wait_for(lambda: world.running("app=web") == 2, "as many run as have room")
    wait_for(lambda: len(groups(world, VOLCANO)) == 1, "they have a group")
    world.create_pod(pod("bare", scheduler="volcano", labels={"app": "bare"}))
    world.nodes(2, prefix="more-", allocatable=ONE_POD)
    wait_for(lambda: world.running() == 4, "all run")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_of_a_workload_that_asks_for_a_gang_start_together(world, kind):
    """Its annotation says how many; Volcano's controllers name their gang to the pods later."""
    world.nodes(2, prefix="first-", allocatable=ONE_POD)
    one = pod("web", scheduler="volcano", labels={"app": "web"})
    web = workload(kind, "web", one, replicas=3)
    web["metadata"]["annotations"] = {MIN_MEMBER: "3"}
    if kind == "StatefulSet":
        web["spec"] |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
    world.apply(web)
    wait_for(lambda: len(world.pods("app=web")) == 3, "its pods exist")
    world.stays_unbound("app=web")
    world.nodes(1, prefix="second-", allocatable=ONE_POD)
    wait_for(lambda: world.running("app=web") == 3, "all run")
