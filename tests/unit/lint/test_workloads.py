"""Goal: lint knows which gangs operators make of their objects, and which pods are in no gang.

Method: objects as people write them; what becomes of each is told by its operator's source.
"""

import pytest

from tests.unit.lint.operators import (
    GPU,
    gathered,
    job_set,
    mpi,
    ray,
    runtime,
    train_job,
    training,
    volcano,
    worker_set,
)
from tests.unit.lint.world import (
    ANNOTATION,
    X_LABEL,
    group,
    job,
    labelled,
    lint,
    node,
    one,
    pod,
    rules,
)


def seen(*objects, **options):
    """Return the one gang of the objects, in which nothing is wrong."""
    report = lint(*objects, **options)
    assert rules(report) == set()
    (gang,) = report.gangs
    return gang


# What operators make


@pytest.mark.parametrize(
    ("made", "api", "name", "gangs", "numbers"),
    [
        (training(policy={}), "x-k8s", "w", 1, (4, 4, 32)),
        (training(policy={"minAvailable": 3}), "x-k8s", "w", 1, (3, 4, 32)),
        (training(scheduler="quorate"), "x-k8s", "w", 1, (4, 4, 32)),
        (training(scheduler="volcano"), "volcano", "w", 1, (4, 4, 32)),
        (
            training("TFJob", {}, field="tfReplicaSpecs", Chief=1, PS=2, Worker=4),
            "x-k8s",
            "w",
            1,
            (7, 7, 56),
        ),
        (
            training("XGBoostJob", {}, field="xgbReplicaSpecs", Master=1, Worker=2),
            "x-k8s",
            "w",
            1,
            (3, 3, 24),
        ),
        (mpi({}), "x-k8s", "w", 1, (5, 5, 32)),
        (mpi({"minAvailable": 4}), "x-k8s", "w", 1, (4, 5, 32)),
        (volcano(None, 1, 3), "volcano", "w", 1, (4, 4, 32)),
        (volcano(0, 4, minAvailable=2), "volcano", "w", 1, (2, 4, 32)),
        (volcano(3, 4, scheduler="quorate"), "volcano", "w", 1, (3, 4, 32)),
        (gathered(), "volcano", "w", 1, (3, 4, 32)),
        (
            gathered(kind="StatefulSet", replicas=3, podManagementPolicy="Parallel"),
            "volcano",
            "w",
            1,
            (3, 3, 24),
        ),
        (gathered(kind="Job", parallelism=5, completions=5), "volcano", "w", 1, (3, 5, 40)),
        (
            ray(labels={"ray.io/gang-scheduling-enabled": ""}, groups=[{"replicas": 2}]),
            "x-k8s",
            "w",
            1,
            (3, 3, 16),
        ),
        (
            ray(
                "RayJob",
                {"volcano.sh/queue-name": "q"},
                groups=[{"replicas": 4, "minReplicas": 1, "numOfHosts": 2}],
                enableInTreeAutoscaling=True,
            ),
            "volcano",
            "ray-w-pg",
            1,
            (3, 3, 16),
        ),
        (
            ray(
                scheduler="volcano",
                groups=[{"minReplicas": 2}, {"replicas": 9, "suspend": True}, {"replicas": 1}],
            ),
            "volcano",
            "ray-w-pg",
            1,
            (4, 4, 24),
        ),
        (worker_set(), "volcano", "w", 2, (4, 4, 24)),
        (worker_set(leader=False), "volcano", "w", 2, (4, 4, 32)),
        (worker_set(startupPolicy="LeaderReady"), "volcano", "w", 2, (1, 4, 24)),
    ],
)
def test_operators_gangs_are_understood(made, api, name, gangs, numbers):
    """Objects of Kubeflow, MPI, Volcano, Ray and LeaderWorkerSet are gangs without labels."""
    gang = seen(made)
    assert (gang.api, gang.name, gang.gangs) == (api, name, gangs)
    assert (gang.min, gang.pods, gang.gpus) == numbers
    assert str(gang.object) == f"{made['kind']} w"
    assert gang.operator


@pytest.mark.parametrize(
    "made",
    [training(), mpi(), worker_set(None), worker_set("default-scheduler"), ray(groups=[{}])],
    ids=lambda made: made["kind"],
)
def test_objects_that_ask_for_no_gang_are_none(made):
    """Jobs of other people's schedulers are told nothing."""
    report = lint(made)
    assert (report.findings, report.gangs) == ((), ())
    assert [str(other.object) for other in report.others] == [f"{made['kind']} w"]


def test_a_training_job_whose_scheduler_nobody_knows_is_told_so_before_it_waits():
    """Lint saw no gang there, and said nothing."""
    made = training(scheduler="nobodys")
    assert rules(lint(made)) == {"scheduler-unknown"}
    assert seen(made, scheduler_names=("nobodys",)).min == 4


def test_a_train_job_is_a_gang_if_its_runtime_says_so():
    """Numbers are the job's, the policy and the templates are the runtime's."""
    resources = {"resourcesPerNode": {"limits": {GPU: "4"}}}
    job_of_three = train_job(trainer={"numNodes": 3, **resources})
    gang = seen(runtime({"coscheduling": {}}), job_of_three)
    assert (gang.api, gang.min, gang.pods, gang.gpus) == ("x-k8s", 4, 4, 12)
    assert gang.scheduler_names == ("quorate",)
    gang = seen(runtime({"volcano": {}}), train_job())
    assert (gang.api, gang.min, gang.pods, gang.gpus) == ("volcano", 3, 3, 0)


def test_a_train_job_whose_runtime_is_elsewhere_is_not_known():
    """Lint says that it does not know, and guesses nothing."""
    report = lint(train_job("torch-distributed"))
    assert (report.findings, report.gangs, report.others) == ((), (), ())
    (unknown,) = report.not_seen
    assert str(unknown.object) == "TrainJob w"
    assert "torch-distributed is in none of the files" in unknown.why


def test_a_podgroup_in_the_files_counts_for_an_operators_gang():
    """As kubectl get -o yaml shows both, the object counts and no pod is missing."""
    gang = seen(training(policy={}), group(3, "w"))
    assert (gang.min, gang.operator, str(gang.object)) == (3, "", "PodGroup w")


def test_labels_of_the_author_count_before_what_an_operator_makes():
    """A template that names a gang is in that one."""
    made = training(policy={})
    for spec in made["spec"]["pytorchReplicaSpecs"].values():
        spec["template"]["metadata"] = {"labels": {X_LABEL: "g"}}
        spec["template"]["spec"]["schedulerName"] = "quorate"
    gang = seen(group(4), made)
    assert (gang.name, gang.min, gang.pods) == ("g", 4, 4)


# Too few pods


@pytest.mark.parametrize(
    ("made", "path", "words"),
    [
        (
            mpi({"minAvailable": 9}),
            "spec.runPolicy.schedulingPolicy.minAvailable",
            "MPIJob w needs 9 members (spec.runPolicy.schedulingPolicy.minAvailable), and MPIJob w "
            "(Launcher) makes 1 and MPIJob w (Worker) makes 4, 5 in all",
        ),
        (
            training(policy={"minAvailable": 5}),
            "spec.runPolicy.schedulingPolicy.minAvailable",
            "PyTorchJob w (Master) makes 1 and PyTorchJob w (Worker) makes 3, 4 in all",
        ),
        (
            volcano(5, 4),
            "spec.minAvailable",
            "Job w needs 5 members (spec.minAvailable), and Job w (t0) makes 4",
        ),
    ],
    ids=["MPIJob", "PyTorchJob", "Volcano"],
)
def test_min_available_above_the_pods(made, path, words):
    """9 of 5 pods, 5 of 4: such gangs never start."""
    found = one(made, rule="min-above-replicas")
    assert (found.path, str(found.severity)) == (path, "error")
    assert found.message.endswith(words)
    assert "lower minAvailable to" in found.hint


def test_a_gang_that_volcanos_controllers_would_gather_of_more_pods_than_there_are():
    found = one(gathered("5"), rule="min-above-replicas")
    assert found.path == "metadata.annotations[scheduling.volcano.sh/group-min-member]"


@pytest.mark.parametrize("made", [gathered("1"), gathered("x"), gathered(scheduler="quorate")])
def test_what_nobody_gathers_is_no_gang(made):
    """Of other schedulerNames Volcano's controllers know nothing."""
    assert lint(made).gangs == ()


@pytest.mark.parametrize("written", [-1, "4", 1.5, True])
@pytest.mark.parametrize(
    "make", [lambda least: mpi({"minAvailable": least}), lambda least: volcano(least, 4)]
)
def test_a_min_available_that_is_no_number_of_pods(make, written):
    """No operator can make a PodGroup of it."""
    assert one(make(written), rule="workload-min-invalid").severity == "error"


def test_a_task_of_volcano_with_a_min_above_its_replicas():
    """Volcano's admission refuses it."""
    found = one(volcano(3, 3, minAvailable=4), rule="workload-min-invalid")
    assert found.path == "spec.tasks[0].minAvailable"
    assert 'task "t0" needs 4 pods (minAvailable), and makes 3' in found.message


@pytest.mark.parametrize("policy", [{}, {"minAvailable": 4}, {"minAvailable": 5}])
def test_workers_do_not_wait_for_a_launcher_that_waits_for_them(policy):
    """The scheduler reads of it, and starts the 4 workers: nothing is wrong."""
    assert rules(lint(mpi(policy, launcherCreationPolicy="WaitForWorkersReady"))) == set()


def test_jobs_of_a_jobset_that_are_made_one_after_the_other():
    """The driver's 3 pods wait for a gang of 9, and the workers are made when it runs."""
    in_order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    found = one(job_set(labelled("9", "w"), **in_order), rule="members-made-later")
    assert found.path == "spec.startupPolicy.startupPolicyOrder"
    assert "makes 3 of its gang's pods first" in found.message
    assert rules(lint(job_set(labelled("3", "w"), **in_order))) == set()
    made = job_set(labelled("9", "w"))
    made["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "driver", "status": "Ready"}]
    assert one(made, rule="members-made-later").path == "spec.replicatedJobs[1].dependsOn"
    driver = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    workers = made["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]
    workers["metadata"] = {"labels": labelled("6", "w")}
    driver["metadata"] = {}
    report = lint(made)
    assert rules(report) == set(), "the workers are made together when the driver runs"
    assert [other.pods for other in report.others] == [3]


# Pods of no gang


@pytest.mark.parametrize(
    ("made", "pods", "hint"),
    [
        (job(4, labels={}), "4 pods,", 'min-available: "4" to the template'),
        (job_set(), "9 pods,", 'min-available: "9" to each template'),
        (ray(scheduler="quorate", groups=[{"replicas": 3}]), "4 pods,", "gang-scheduling-enabled"),
        (ray("RayService", scheduler="quorate", groups=[{}]), "its pods have", "ray.io/"),
        (runtime(), "its pods have", "spec.podGroupPolicy.coscheduling"),
    ],
    ids=["Job", "JobSet", "RayCluster", "RayService", "runtime"],
)
def test_pods_of_no_gang(made, pods, hint):
    """Pods for a scheduler of gangs, in none: lint said nothing."""
    found = one(made, rule="pods-without-gang")
    name = made["metadata"]["name"]
    assert found.message == f"{made['kind']} {name}: {pods} no gang: each starts alone"
    assert hint in found.hint
    assert found.severity == "warning"


def test_what_the_hint_says_makes_a_gang():
    """With the two labels, all is well."""
    gang = seen(job_set(labelled("9", "w")))
    assert (gang.name, gang.min, gang.pods, gang.gpus) == ("w", 9, 9, 72)
    assert seen(job(4, labels=labelled("4", "j"))).min == 4


@pytest.mark.parametrize(
    "made",
    [
        job(1, labels={}),
        pod(labels={}),
        job(4, labels={}, schedulerName="default-scheduler"),
        job(4, labels={}, schedulerName="kai-scheduler"),
        runtime({"coscheduling": {}}),
    ],
)
def test_pods_that_start_alone_rightly(made):
    """One pod, or pods of others, are no gang and need none."""
    assert rules(lint(made)) == set()


def test_any_scheduler_that_quorate_serves_counts():
    """Also one that only the caller knows."""
    made = job(4, labels={}, schedulerName="mine")
    assert rules(lint(made)) == set()
    assert rules(lint(made, scheduler_names=("mine",))) == {"pods-without-gang"}
    ordinary = job(4, labels={}, schedulerName="default-scheduler")
    assert rules(lint(ordinary, scheduler_names=("default-scheduler",))) == set()


def test_pods_that_say_no_gang_or_say_it_wrongly_are_told_so_once():
    """Other rules speak of labels."""
    assert rules(lint(job(4, labels=labelled("0")))) == {"min-available-invalid"}
    assert rules(lint(job(4, labels={X_LABEL + "s": "g"}))) == {"unknown-gang-label"}
    assert "pods-without-gang" not in rules(lint(job(4, labels={}, annotations={ANNOTATION: ""})))


# Schedulers and typos


def test_a_misspelt_scheduler_of_pods_without_a_gang():
    """The wrong scheduler is answered by name, gang or not."""
    found = one(job(4, labels={}, schedulerName="qourate"), rule="scheduler-unknown")
    assert 'did you mean "quorate"?' in found.message


def test_a_template_that_leaves_the_scheduler_to_the_operator():
    """A flag of the operator names it; a name that is written stays, except in an MPIJob."""
    assert rules(lint(training(policy={}))) == set()
    wrong = training(policy={}, scheduler="default-scheduler")
    assert rules(lint(wrong)) == {"default-scheduler"}
    overwritten = mpi({})
    for spec in overwritten["spec"]["mpiReplicaSpecs"].values():
        spec["template"]["spec"]["schedulerName"] = "default-scheduler"
    assert rules(lint(overwritten)) == set()
    one_only = worker_set()
    del one_only["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["schedulerName"]
    assert "scheduler-names-differ" in rules(lint(one_only))


def test_a_scheduler_that_an_operator_writes_has_to_be_ours():
    """KubeRay writes its own name into the pods."""
    made = ray(labels={"ray.io/gang-scheduling-enabled": ""}, groups=[{"replicas": 1}])
    found = one(made, rule="scheduler-unknown", scheduler_names=("quorate",))
    assert "scheduler-plugins-scheduler" in found.message


def test_a_podgroup_is_told_of_pods_with_its_name_under_a_misspelt_label():
    """A typo across objects is told where the PodGroup is, too."""
    made = [group(4, "typo"), job(4, labels={"scheduling.x-k8s.io/podgroup": "typo"})]
    found = one(*made, rule="podgroup-without-pods")
    assert found.message == (
        "no pod in these files names PodGroup typo; 4 pods of Job j are meant for it: label "
        "scheduling.x-k8s.io/podgroup is read by no scheduler"
    )


# With a shape


def test_operators_gangs_are_tried_on_a_shape():
    """A gang without a PodGroup in the files is one for the shape as well."""
    nodes = [node(f"n{number}", gpu="8") for number in range(3)]
    on_three = {"nodes": nodes, "shape_name": "s"}
    assert rules(lint(training(policy={"minAvailable": 3}), **on_three)) == set()
    assert rules(lint(training(policy={}), **on_three)) == {"gang-above-shape"}
    assert rules(lint(worker_set(size=4, replicas=9), **on_three)) == set()
    assert rules(lint(worker_set(size=5, replicas=1), **on_three)) == {"gang-above-shape"}
