"""Metrics: their labels are words of ours, and each is documented."""

import asyncio
import re

import pytest

from quorate.core.model import GangKey
from quorate.core.model.plan import Bind, GangBinds, Plan
from quorate.core.model.reasons import GangState, Reason
from quorate.core.telling.counted_gangs import CountedGangs
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import STATUSES, ApiError, status_class
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report.bind_times import BindTimes
from quorate.shell.report.metrics import Metrics
from tests.paths import ROOT
from tests.unit.core.world import World
from tests.unit.shell.scripted_server import (
    ManualClock,
    ScriptedServer,
    answer,
    credentials_for,
    refusal,
    serving,
)
from tools.testing import HANGS_S

DOC = ROOT / "docs" / "operators" / "metrics.md"


def plan(*uids, started=False):
    key = GangKey("n", "coscheduler", "g")
    binds = tuple(Bind(uid, "n", uid, "node") for uid in uids)
    size = len(uids)
    of_gang = GangBinds(
        key=key, attempt="a", binds=binds, size=size, deadline_s=60.0, started=started
    )
    return Plan(gangs=(of_gang,))


def test_the_time_of_a_bind_runs_from_the_plan_to_its_outcome():
    clock, metrics = ManualClock(), Metrics()
    times = BindTimes(metrics, SteadyClock(clock))
    value = metrics.registry.get_sample_value
    times.planned(plan("a", "b", "c"), {})
    assert value("quorate_binds_under_way") == 3
    clock.time_s += 0.2
    times.bound("a")
    times.over("b")
    times.bound("of-a-predecessor")
    assert value("quorate_binds_under_way") == 1
    assert value("quorate_bind_seconds_count") == 1
    assert value("quorate_bind_seconds_sum") == pytest.approx(0.2)
    times.over("c")
    assert value("quorate_binds_under_way") == 0


def test_a_gang_has_waited_from_its_first_pod_to_the_last_bind_of_its_start():
    """How long gangs wait was told by no metric."""
    clock, metrics, world = ManualClock(), Metrics(), World()
    for name, age_s in (("a", 30.0), ("b", 50.0), ("c", 5.0)):
        world.pod(name, created_s=clock.now_s() - age_s)
    times = BindTimes(metrics, SteadyClock(clock))
    value, pods = metrics.registry.get_sample_value, world.cluster.pods
    times.planned(plan("uid-a", "uid-b"), pods)
    times.bound("uid-b")
    assert value("quorate_gang_wait_seconds_count") == 0
    times.bound("uid-a")
    assert value("quorate_gang_wait_seconds_count") == 1
    assert value("quorate_gang_wait_seconds_sum") == pytest.approx(50.0)
    times.planned(plan("uid-c", started=True), pods)
    times.bound("uid-c")
    times.planned(plan("uid-a", "uid-c"), pods)
    times.bound("uid-a")
    times.over("uid-c")
    assert value("quorate_gang_wait_seconds_count") == 1, "neither a replacement nor a failure"


def test_gpus_that_no_node_lists_have_one_label_whatever_tenants_call_them():
    metrics, world = Metrics(), World()
    counted = CountedGangs()
    for name, resource in (("a", "nvidia.com/gpu"), ("b", "x.example/gpu"), ("c", "y.example/gpu")):
        world.pod(name, requests={resource: 2}, created_s=10.0)
        (gang,) = (one for one in world.cluster.gangs.values() if f"uid-{name}" in one.members)
        counted.put(gang, GangState.WAITING, Reason.NOT_ENOUGH_ROOM, list(gang.members.values()))
    metrics.show_gangs(counted)
    metrics.show_waiting({"nvidia.com/gpu": 7}, 25.0)
    value = metrics.registry.get_sample_value
    assert value("quorate_gpus_free", {"resource": "nvidia.com/gpu"}) == 7
    assert value("quorate_gpus_waiting", {"resource": "nvidia.com/gpu"}) == 2
    assert value("quorate_gpus_waiting", {"resource": "other"}) == 4
    reason = {"reason": str(Reason.NOT_ENOUGH_ROOM)}
    assert value("quorate_oldest_waiting_gang_seconds", reason) == 15
    metrics.show_waiting({}, 25.0)
    assert value("quorate_gpus_free", {"resource": "nvidia.com/gpu"}) == 0


def test_a_status_that_a_server_made_up_makes_no_label():
    assert {status_class(status) for status in range(-10, 100_000, 7)} <= set(STATUSES)
    assert [status_class(n) for n in (0, 403, 418, 500, 503, 999)] == [
        "unreachable",
        "403",
        "4xx",
        "5xx",
        "5xx",
        "other",
    ]


async def test_requests_that_fail_are_counted_by_status_reads_and_writes_alike():
    steps = [refusal(403, "Forbidden"), refusal(503, "Busy"), refusal(409, "Conflict"), answer(200)]
    server = ScriptedServer(*steps)
    counted = []
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        client.on_error = counted.append
        for ask in (client.get("/a"), client.get("/a"), client.post("/a", {}), client.get("/a")):
            try:
                await ask
            except ApiError:
                continue
    assert counted == ["403", "5xx", "409"]
    async with KubeClient(credentials_for("http://127.0.0.1:9")) as client:
        client.on_error = counted.append
        for ask in (client.get("/a"), client.post("/a", {})):
            with pytest.raises(ApiError):
                async with asyncio.timeout(HANGS_S):
                    await ask
    assert counted[3:] == ["unreachable", "unreachable"]


def test_every_metric_is_documented_and_no_other():
    families = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in Metrics().registry.collect()
    }
    documented = set(re.findall(r"^\| `(quorate_[a-z_]+)", DOC.read_text(), re.MULTILINE))
    assert documented == families
