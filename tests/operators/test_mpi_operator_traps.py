"""Goal: what happens to MPIJobs besides starting and ending breaks no promise.

Method: the released operator; crashes and lost races at moments that a proxy holds still.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.harness.recording_proxy import Recording, is_bind
from tests.operators.jobs import ONE_POD, Job, uids
from tools.harness.faults import clear_lease
from tools.harness.scheduler import Quorate
from tools.harness.world import World
from tools.objects import VOLCANO, X_K8S
from tools.testing import wait_for

FLAG = "--gang-scheduling=scheduler-plugins-scheduler"
FLAGS = {X_K8S: FLAG, VOLCANO: "--gang-scheduling=volcano"}
OWN = "quorate-system"


@pytest.fixture(params=FLAGS, ids=["x-k8s", "volcano"])
def api(request, mpi_operator) -> str:
    """Return the API of the PodGroups that the operator makes."""
    mpi_operator.start(FLAGS[request.param])
    return request.param


@pytest.fixture
def operator(mpi_operator):
    mpi_operator.start(FLAG)
    return mpi_operator


class Route:
    """How quorate reaches the API server: where that changes it is killed and started anew."""

    def __init__(self, world: World, quorate: Quorate) -> None:
        self._world = world
        self._quorate = quorate
        self._direct = quorate.kubeconfig.read_text()
        self.is_direct = True

    def through(self, proxy: Recording) -> None:
        self._quorate.kill()
        self._quorate.go_through(proxy.url)
        self.is_direct = False
        self.restart()

    def directly(self) -> None:
        self._quorate.kill()
        self._quorate.kubeconfig.write_text(self._direct)
        self.is_direct = True
        self.restart()

    def restart(self) -> None:
        """Start it again after it was killed."""
        clear_lease(self._world, OWN)
        self._quorate.start()
        wait_for(self._quorate.leads, "it leads")


@pytest.fixture
def route(quorate, world) -> Iterator[Route]:
    made = Route(world, quorate)
    yield made
    if not made.is_direct:
        made.directly()


@pytest.mark.parametrize(
    ("launcher", "fits"),
    [("AtStartup", True), ("AtStartup", False), ("WaitForWorkersReady", True)],
)
def test_quorate_and_the_operator_are_killed_after_the_first_bind_of_several(
    world, quorate, route, operator, launcher, fits
):
    """Of three, or of two where the launcher is made when the workers are ready."""
    nodes = world.nodes(3, allocatable=ONE_POD)

    def holds(method: str, path: str) -> bool:
        return is_bind(method, path) and "/pi-worker-0/" not in path

    with Recording(world.cluster.server, str(world.cluster.ca), holds=holds) as proxy:
        route.through(proxy)
        job = Job(world, "pi.yaml")
        job.manifest["spec"]["launcherCreationPolicy"] = launcher
        job.create()
        wait_for(lambda: world.bound() == 1 and proxy.held, "the next one is held up")
        quorate.kill()
        operator.kill()
    assert list(world.where()) == ["pi-worker-0"]
    free = set(nodes) - set(world.where().values())
    if not fits:
        world.cordon(*free)
    route.directly()
    operator.start(FLAG)
    if not fits:
        wait_for(lambda: world.bound() == 0, "what was started is undone")
        wait_for(lambda: len(job.pods()) == job.size, "it has all of its pods")
        world.stays_unbound()
        world.uncordon(*free)
    job.wait_running()
    job.complete()


def test_quorate_and_the_operator_are_killed_before_all_pods_are_made(
    world, quorate, route, operator
):
    job = Job(world, "pi.yaml")
    world.nodes(job.size, allocatable=ONE_POD)
    job.create()
    wait_for(job.pods, "there is a pod")
    operator.kill()
    quorate.kill()
    route.restart()
    world.settle()
    assert world.bound() in (0, job.size)
    operator.start(FLAG)
    job.wait_running()
    job.complete()


def test_a_job_that_is_suspended_leaves_nothing_and_starts_whole_when_it_is_resumed(world, api):
    job = Job(world, "pi.yaml")
    nodes = world.nodes(job.size, allocatable=ONE_POD)
    job.create()
    job.wait_running()
    job.change(runPolicy={"suspend": True})
    wait_for(lambda: not job.pods(), "its pods are gone")
    wait_for(
        lambda: not world.cluster.exists(world.path("podgroups", job.name, api)),
        "its PodGroup is gone",
    )
    wait_for(lambda: job.is_("Suspended"), "its status says so")
    world.cordon(*nodes[1:])
    job.change(runPolicy={"suspend": False})
    wait_for(lambda: len(job.pods()) == job.size, "it has all of its pods")
    world.stays_unbound()
    world.uncordon(*nodes[1:])
    job.wait_running()
    job.complete()


def test_a_job_that_waits_is_deleted_and_the_other_one_starts(world, quorate, operator):
    nodes = world.nodes(3, allocatable=ONE_POD)
    world.cordon(*nodes[1:])
    jobs = [Job(world, "pi.yaml", name).create() for name in ("deleted", "stays")]
    for job in jobs:
        wait_for(lambda job=job: len(job.pods()) == job.size, f"{job.name} has all of its pods")
    world.stays_unbound()
    deleted, stays = jobs
    deleted.delete()
    wait_for(lambda: not deleted.pods(), "its pods are gone")
    group = world.path("podgroups", deleted.name, X_K8S)
    wait_for(lambda: not world.cluster.exists(group), "its PodGroup is gone")
    wait_for(lambda: quorate.metric("quorate_gangs", state="Waiting") == 1, "one gang waits")
    world.stays_unbound()
    world.uncordon(*nodes[1:])
    stays.wait_running()
    stays.complete()


def test_a_job_of_the_same_name_comes_after_one_that_ran(world, api):
    job = Job(world, "pi.yaml")
    nodes = world.nodes(job.size, allocatable=ONE_POD)
    job.create()
    job.wait_running()
    first = uids(job.pods())
    world.cordon(*nodes[1:])
    job.delete()
    job.create()
    wait_for(
        lambda: first.isdisjoint(uids(job.pods())) and len(job.pods()) == job.size,
        "the second one has all of its pods",
    )
    world.stays_unbound()
    world.uncordon(*nodes[1:])
    job.wait_running()
    job.complete()


def said(status: dict) -> dict:
    """Return a status as Volcano's clients put it back: without zeros."""
    return {key: it for key, it in status.items() if it}


def test_a_group_that_has_ended_stays_as_it_is_when_its_pods_are_cleaned_up(world, api):
    """Its launcher's Job goes after its time; the operator keeps the rest, for cleanPodPolicy.

    The time is over when the operator has seen the end: it would run a job anew that goes before.
    """
    job = Job(world, "pi.yaml")
    job.with_policy(cleanPodPolicy="None", ttlSecondsAfterFinished=900)
    world.nodes(job.size, allocatable=ONE_POD)
    job.create()
    job.wait_running()
    job.finish(*job.pods("worker"))
    job.finish(*job.pods("launcher"))
    ended = world.wait_status("pi", api, phase={X_K8S: "Finished", VOLCANO: "Completed"}[api])
    wait_for(lambda: job.is_("Succeeded"), "its status says so")
    launcher = world.path("jobs", "pi-launcher", "batch/v1")
    world.patch(launcher, {"spec": {"ttlSecondsAfterFinished": 0}})
    wait_for(lambda: not job.pods("launcher"), "its launcher is gone")
    world.settle()
    assert said(world.group("pi", api)["status"]) == said(ended)
    for one in job.pods():
        world.delete_pod(one["metadata"]["name"], wait=True)
    world.settle()
    assert said(world.group("pi", api)["status"]) == said(ended)


def test_a_whole_group_is_put_between_our_read_and_our_write(
    world, quorate, route, api, mpi_operator
):
    """The operator does so with the status that it read last, and a spec that may be another."""
    held_up = []

    def holds(method: str, path: str) -> bool:
        is_it = method == "PATCH" and "/podgroups/pi" in path
        return is_it and bool(held_up)

    world.nodes(3, allocatable=ONE_POD)
    with Recording(world.cluster.server, str(world.cluster.ca), holds=holds) as proxy:
        route.through(proxy)
        held_up.append(True)
        job = Job(world, "pi.yaml").create()
        wait_for(lambda: proxy.held, "our write is held up")
        mpi_operator.kill()
        old = world.group("pi", api)
        old["metadata"]["annotations"] = {"team": "a"}
        old["spec"]["minResources"] = {"cpu": "2"}
        group = world.path("podgroups", "pi", api)
        written = world.cluster.api("PUT", group, old)
        assert "phase" not in written.get("status", {})
        proxy.release()
        world.wait_status("pi", api, phase="Running")
        whole = world.group("pi", api)
        world.cluster.api("PUT", group, {**whole, "status": {"phase": "Pending"}})
        world.wait_status("pi", api, phase="Running", running=3)
        whole = world.group("pi", api)
        assert whole["metadata"]["annotations"] == {"team": "a"}
        assert whole["spec"] == old["spec"]
        mpi_operator.start(FLAGS[api])
        job.complete()
        route.directly()


def waits_for_workers(world) -> Job:
    job = Job(world, "pi.yaml")
    job.manifest["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    return job


def test_workers_start_whole_without_a_launcher_that_waits_for_them(world, quorate, route, api):
    """The PodGroup counts the launcher, which is made only when all workers are ready.

    Whoever leads when it comes starts it alone, and has the same to say of the gang.
    """
    world.nodes(1, prefix="first-", allocatable=ONE_POD)
    job = waits_for_workers(world).create()
    wait_for(lambda: len(job.pods()) == 2, "it has all of its workers")
    world.stays_unbound()
    assert world.group("pi", api)["spec"]["minMember"] == 3
    world.nodes(1, prefix="second-", allocatable=ONE_POD)
    wait_for(lambda: job.pods("launcher"), "its launcher is made")
    world.stays_bound(2)
    waits = {X_K8S: "Scheduling", VOLCANO: "Unknown"}[api]
    world.wait_status("pi", api, phase=waits, running=2)
    quorate.kill()
    route.restart()
    world.stays_bound(2)
    world.wait_status("pi", api, phase=waits, running=2)
    world.nodes(1, prefix="third-", allocatable=ONE_POD)
    job.wait_running()
    wait_for(lambda: job.is_("Running"), "its status says so")
    job.complete()


@pytest.fixture
def unreadable(cluster):
    """Take the right to read MPIJobs from quorate; what is yielded gives it back."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/quorate"
    rules = cluster.api("GET", path)["rules"]
    less = [one for one in rules if one["resources"] != ["mpijobs"]]
    assert len(less) == len(rules) - 1

    def grant(these: list[dict]) -> None:
        patch = {"rules": these}
        cluster.api("PATCH", path, patch, content_type="application/merge-patch+json")

    def is_allowed() -> bool:
        user = f"system:serviceaccount:{OWN}:quorate"
        asks = {"verb": "get", "group": "kubeflow.org", "resource": "mpijobs"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": {**asks, "namespace": "default"}},
        }
        reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return cluster.api("POST", reviews, review)["status"]["allowed"]

    grant(less)
    wait_for(lambda: not is_allowed(), "the API server knows of it")
    yield lambda: grant(rules)
    grant(rules)


def test_workers_of_a_job_that_may_not_be_read_say_so_and_start_when_it_may(
    world, operator, unreadable
):
    world.nodes(3, allocatable=ONE_POD)
    job = waits_for_workers(world).create()
    said = world.wait_condition("grant quorate get of mpijobs in kubeflow.org")
    assert "or set schedulingPolicy.minAvailable to the number of workers" in said
    world.stays_unbound()
    unreadable()
    job.wait_running()
    job.complete()
