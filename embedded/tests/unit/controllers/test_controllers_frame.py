"""The queue, the manager and the table of pods."""

import asyncio
import itertools

import pytest

from embedded.tests.unit.controllers.controllers_world import World, workload
from pocketkube.controllers.base import Controller
from pocketkube.controllers.manager import UNITS_PER_STEP, Manager
from pocketkube.store.store import Store


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
