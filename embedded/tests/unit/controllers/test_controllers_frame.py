"""The queue, the manager and the table of pods."""

import asyncio
import itertools

import pytest

from embedded.tests.unit.controllers.controllers_world import World, job, workload
from pocketkube.controllers.base import Controller, WorkQueue
from pocketkube.controllers.manager import UNITS_PER_STEP, Manager
from pocketkube.controllers.pod_table import PodTable
from pocketkube.store.store import Store


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def queue(clock):
    return WorkQueue(lambda: clock[0])


def test_an_item_is_due_once_and_in_the_order_of_its_time(queue, clock):
    queue.add("late", 5)
    queue.add("soon", 1)
    queue.add("now")
    queue.add("now")
    assert [queue.pop(clock[0]), queue.pop(clock[0])] == ["now", None]
    assert queue.next_s() == 101
    assert [queue.pop(200), queue.pop(200), queue.pop(200)] == ["soon", "late", None]
    assert queue.next_s() is None


def test_the_earliest_time_of_an_item_counts(queue, clock):
    queue.add("a", 5)
    queue.add("a", 1)
    queue.add("a", 3)
    assert queue.next_s() == 101
    assert [queue.pop(110), queue.pop(110)] == ["a", None]


class _Scripted(Controller):
    """Fails some times, then works for some units."""

    buckets = ("configmaps",)

    def __init__(self, shared, failures=0, units=0):
        super().__init__(shared)
        self.failures, self.units, self.calls, self.open = failures, units, [], 0

    def reconcile(self, key):
        self.calls.append((key, self.api.now_s()))
        if self.failures:
            self.failures -= 1
            raise RuntimeError("scripted")
        return self._work() if self.units else None

    def _work(self):
        self.open += 1
        assert self.open == 1, "one key is never in two hands"
        for _ in range(self.units):
            yield
        self.open -= 1


def _with(world, **script):
    shared = world.manager.controllers[0].shared
    controller = _Scripted(shared, **script)
    world.api.store.watch("configmaps", controller.on_event)
    world.create("v1", "configmaps", {"metadata": {"name": "c"}})
    return controller


def test_what_fails_is_tried_again_later_and_later():
    world = World()
    controller = _with(world, failures=3)
    world.settle(10)
    times = [at for _, at in controller.calls]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) == 4
    assert gaps == sorted(gaps)
    assert gaps[-1] == pytest.approx(0.2, abs=0.01)


def test_a_failing_controller_does_not_stop_the_others():
    world = World()
    _with(world, failures=10**9)
    world.create("apps/v1", "replicasets", workload("rs", replicas=1))
    world.settle()
    assert len(world.pods()) == 1


def test_long_work_is_cut_into_steps_and_never_begun_twice():
    world = World(kubelets=False)
    controller = _with(world, units=3 * UNITS_PER_STEP)
    assert world.manager.step() == 0
    controller.enqueue(("default", "c"))
    for _ in range(20):
        world.manager.step()
    assert len(controller.calls) == 2
    assert controller.open == 0


def test_one_step_makes_a_bounded_number_of_pods():
    world = World(kubelets=False)
    world.create("batch/v1", "jobs", job("big", parallelism=500, completions=500))
    assert world.manager.step() == 0
    assert 0 < len(world.pods()) <= UNITS_PER_STEP
    world.settle()
    assert len(world.pods()) == 500


def test_the_counts_of_an_owner_follow_its_pods():
    world = World()
    made = world.create("apps/v1", "replicasets", workload("rs", replicas=4))
    world.settle()
    owned = world.manager.pods.owned(made["metadata"]["uid"])
    assert (owned.active, owned.ready, owned.terminating) == (4, 4, 0)
    world.kubelets = False
    names = [pod["metadata"]["name"] for pod in world.pods()]
    world.set_phase(names[0], "Failed")
    world.delete("pods", names[1])
    assert (owned.active, owned.ready, owned.failed, owned.terminating) == (2, 2, 1, 1)
    world.delete("pods", names[1], grace_period_s=0)
    assert owned.terminating == 0


def test_a_table_built_from_a_store_is_as_one_that_followed_it():
    world = World()
    world.create("apps/v1", "deployments", workload("web", replicas=3))
    world.create("v1", "pods", {"metadata": {"name": "alone"}, "spec": _SPEC})
    world.settle()
    again = World(store=world.api.store)
    assert _contents(again.manager.pods) == _contents(world.manager.pods)


_SPEC = {"containers": [{"name": "c", "image": "x"}]}


def _contents(table):
    assert isinstance(table, PodTable)
    nodes = {node: set(pods) for node, pods in table.by_node.items()}
    alone = {space: set(pods) for space, pods in table.uncontrolled.items()}
    return len(table), nodes, alone


def test_a_new_manager_goes_on_where_an_old_one_stopped():
    world = World(kubelets=False)
    world.create("apps/v1", "deployments", workload("web", replicas=200))
    world.manager.step()
    assert len(world.pods()) < 200
    again = World(store=world.api.store)
    again.settle()
    assert again.status("deployments.apps", "web")["readyReplicas"] == 200


async def test_run_wakes_up_for_what_happens():
    world = World(store=Store())
    manager = Manager(world.api, lambda: world.now_s)
    running = asyncio.create_task(manager.run())
    try:
        await asyncio.sleep(0)
        world.namespace("other")
        for _ in range(200):
            await asyncio.sleep(0)
            if world.names("serviceaccounts", "other"):
                break
        assert world.names("serviceaccounts", "other") == ["default"]
    finally:
        running.cancel()


def test_pods_that_finish_are_found_in_the_order_of_their_end():
    world = World()
    world.create("batch/v1", "jobs", job("j", parallelism=3, completions=3))
    world.settle()
    names = [pod["metadata"]["name"] for pod in world.pods()]
    for name in (names[2], names[0], names[1]):
        world.set_phase(name, "Succeeded")
    finished = [key[1] for key in world.manager.pods.finished]
    assert finished == [names[2], names[0], names[1]]


@pytest.mark.parametrize("turns", range(5))
async def test_run_ends_when_it_is_cancelled_as_something_happens(turns):
    """It went on, and the cluster never came to its end."""
    world = World()
    _with(world).enqueue("later", 60.0)  # it waits so long
    world.settle()
    running = asyncio.create_task(world.manager.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    world.namespace("other")
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert running.cancelled()
