"""Goal: whatever jobs of the training-operator do in their lives, no gang runs in part or is lost.

Method: the released operator, with gangs of either kind. Nodes take one pod each.
"""

import pytest

from tests.operators.jobs import ONE_POD, Job, groups, uids
from tools.objects import VOLCANO, X_K8S
from tools.testing import wait_for

FLAGS = {"scheduler-plugins-scheduler": X_K8S, "volcano": VOLCANO}


@pytest.fixture(scope="module", params=FLAGS)
def api(request, training_operator, quorate) -> str:
    training_operator.start(f"--gang-scheduler-name={request.param}")
    return FLAGS[request.param]


def test_a_suspended_job_frees_its_room_and_starts_whole_when_it_is_resumed(world, api):
    world.nodes(4, allocatable=ONE_POD)
    job = Job(world, "pytorch.yaml").create()
    job.wait_running()
    job.change(runPolicy={"suspend": True})
    wait_for(lambda: job.is_("Suspended") and not job.pods(), "it is suspended")
    wait_for(lambda: not groups(world, api), "its group is gone")
    other = Job(world, "xgboost.yaml").create()
    other.wait_running()
    job.change(runPolicy={"suspend": False})
    wait_for(lambda: job.pods() or groups(world, api), "it is made again")
    world.settle()
    assert not job.running()
    other.finish(*other.followers(), other.leader())
    job.wait_running()


def test_a_job_that_is_deleted_while_it_waits_leaves_nothing_and_the_next_starts(world, api):
    world.nodes(3, allocatable=ONE_POD)
    job = Job(world, "pytorch.yaml").create()
    wait_for(lambda: job.pods() or groups(world, api), "it waits")
    other = Job(world, "xgboost.yaml").create()
    other.wait_running()
    job.delete()
    wait_for(lambda: not job.pods(), "its pods are gone")
    wait_for(
        lambda: [one["metadata"]["name"] for one in groups(world, api)] == ["xgboost"],
        "its group is gone, and no other",
    )


def test_the_same_name_used_again_is_another_gang_though_pods_of_the_first_are_left(world, api):
    """By cleanPodPolicy None, what has ended stays until the job goes."""
    world.nodes(2, allocatable=ONE_POD)
    job = Job(world, "xgboost.yaml").with_policy(cleanPodPolicy="None")
    job.create()
    wait_for(lambda: job.pods() or groups(world, api), "it waits")
    world.stays_unbound()
    world.nodes(1, prefix="third-", allocatable=ONE_POD)
    job.wait_running()
    job.finish(*job.followers(), job.leader())
    wait_for(lambda: job.is_("Succeeded") and not groups(world, api), "it is over")
    ended = uids(job.pods())
    assert len(ended) == job.size
    world.cordon("third-0")
    job.delete()
    job.create()
    wait_for(lambda: not ended & uids(world.pods()), "the first is gone")
    wait_for(lambda: job.pods() or groups(world, api), "the second waits")
    world.settle()
    assert not job.running()
    world.nodes(1, prefix="fourth-", allocatable=ONE_POD)
    job.wait_running()


def test_a_job_that_grows_while_it_runs_keeps_what_runs_and_starts_what_fits(world, api):
    """The operator raises minMember with the replicas: what has started is not stopped for it."""
    world.nodes(3, allocatable=ONE_POD)
    job = Job(world, "pytorch.yaml").with_workers(2)
    job.create().wait_running()
    before = uids(job.running())
    job.change(pytorchReplicaSpecs={"Worker": {"replicas": 4}})
    wait_for(lambda: len(job.pods()) == 5, "the operator has made the others")
    world.settle()
    assert uids(job.running()) == before
    world.nodes(1, prefix="more-", allocatable=ONE_POD)
    wait_for(lambda: len(job.running()) == 4, "one more runs: the job has started long ago")
    job.change(pytorchReplicaSpecs={"Worker": {"replicas": 1}})
    wait_for(lambda: len(job.pods()) == 2, "the operator has deleted three")
    assert len(job.running()) == 2
    job.finish(*job.followers(), job.leader())
    wait_for(lambda: job.is_("Succeeded") and not groups(world, api), "it is over")


def test_a_job_that_is_cleaned_up_by_its_ttl_leaves_nothing(world, api):
    world.nodes(3, allocatable=ONE_POD)
    job = Job(world, "xgboost.yaml").with_policy(ttlSecondsAfterFinished=1)
    job.create().wait_running()
    job.finish(*job.followers(), job.leader())
    wait_for(lambda: not job.exists() and not job.pods(), "the operator has deleted it")
    assert not groups(world, api)
    after = Job(world, "xgboost.yaml").create()
    after.wait_running()


def test_an_operator_that_writes_the_whole_group_at_each_look_loses_none_of_our_status(world, api):
    world.nodes(3, allocatable=ONE_POD)
    job = Job(world, "xgboost.yaml").create()
    for number in range(20):
        job.annotate(f"look-{number}")
    job.wait_running()
    for number in range(20):
        job.annotate(f"again-{number}")
    world.wait_status(job.name, api, phase="Running", running=job.size)
    assert world.group(job.name, api)["spec"]["minMember"] == job.size
