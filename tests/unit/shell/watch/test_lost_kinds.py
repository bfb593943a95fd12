"""From an API server that refuses some kinds to the pods that wait for them, and back."""

import asyncio
import json

import pytest
from aiohttp import web

from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.kube.client import KubeClient
from quorate.shell.process.clock import SystemClock
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.objects import watched_kinds
from tests.unit.shell.scripted_server import ScriptedServer, credentials_for, no_defect, serving
from tools import objects
from tools.testing import HANGS_S


def pod(name, **more):
    where = {"namespace": "n", "uid": f"uid-{name}"}
    return objects.pod(name, metadata=where, requests=None, **more)


VOLUME = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
PODS = [
    pod("plain"),
    pod("stores", volumes=[VOLUME]),
    pod("ganged", labels={"scheduling.x-k8s.io/pod-group": "g"}),
]
GROUP = objects.pod_group("g", 1, metadata={"namespace": "n", "uid": "u"})
OBJECTS = {"pods": PODS, "nodes": [objects.node("n0")], "podgroups": [GROUP]}


class Refusing(ScriptedServer):
    """Lists what there is, and refuses some kinds with a status and a body."""

    def __init__(self, status, body, *refused):
        super().__init__()
        self.refused, self.refusal = set(refused), (status, body)

    async def answer(self, request):
        kind = request.path.rpartition("/")[2]
        if kind in self.refused:
            status, body = self.refusal
            return web.Response(status=status, body=body)
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
        is_other = kind == "podgroups" and "scheduling.x-k8s.io" not in request.path
        items = [] if is_other else OBJECTS.get(kind, [])
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


FORBIDDEN = json.dumps({"reason": "Forbidden", "message": "no"}).encode()


@pytest.mark.parametrize(
    ("status", "body"),
    [(401, b""), (403, FORBIDDEN), (500, b"conversion webhook"), (200, b"<html>")],
    ids=["401", "403", "500", "garbage"],
)
async def test_who_needs_what_is_refused_waits_and_goes_on_when_it_is_not(status, body):
    server = Refusing(status, body, "persistentvolumeclaims", "podgroups")
    scheduler = Scheduler(Policy(), api_words())
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        feed = Feed(
            client,
            watched_kinds(frozenset({"quorate"})),
            on_change=lambda change: scheduler.observe([change]),
            on_object=lambda key: None,
            clock=SystemClock(),
            chance=lambda: 0.0,
            note=no_defect,
            fair_try_s=0.1,
        )

        async def synced(lost):
            async with asyncio.timeout(HANGS_S):
                while not feed.is_synced or len(feed.unavailable) != lost:
                    await asyncio.sleep(0.01)

        def bound():
            plan = scheduler.decide(1.0)
            return {bind.name for gang in plan.gangs for bind in gang.binds}

        def why(name):
            key = scheduler.cluster.pods[f"uid-{name}"].gang.key
            return scheduler.explainer(1.0).explain(key)

        running = asyncio.create_task(feed.run())
        await synced(lost=5)  # claims, and the objects of four dialects
        assert bound() == {"plain"}
        for name, kind in (
            ("stores", "persistentvolumeclaims"),
            ("ganged", "podgroups.scheduling.x-k8s.io"),
        ):
            said = why(name)
            assert said.reason is Reason.API_NOT_AVAILABLE
            assert kind in said.message
        server.refused.clear()
        await synced(lost=0)
        assert bound() == {"ganged"}
        assert why("stores").reason is Reason.CLAIM_NOT_USABLE  # there is none
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class OldDevices(Refusing):
    """Serves claims of devices in versions of the past only."""

    def __init__(self, versions):
        super().__init__(404, b"", "deviceclasses", "resourceslices", "resourceclaims")
        self.versions = versions

    async def answer(self, request):
        if request.path == "/apis/resource.k8s.io":
            if self.versions is None:
                return web.Response(status=404)
            return web.json_response({"versions": [{"version": v} for v in self.versions]})
        return await super().answer(request)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (None, "of resource.k8s.io/v1"),
        (["v1beta1", "v1alpha3"], "of resource.k8s.io/v1, only v1beta1, v1alpha3, which"),
        (["v9\x1b[2J" * 99] * 99, "only v9\\x1b[2Jv9"),
    ],
    ids=["none", "old", "hostile"],
)
async def test_a_cluster_with_older_device_apis_is_told_which(versions, said):
    scheduler = Scheduler(Policy(), api_words())
    server = OldDevices(versions)
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        feed = Feed(
            client,
            watched_kinds(frozenset({"quorate"})),
            on_change=lambda change: scheduler.observe([change]),
            on_object=lambda key: None,
            clock=SystemClock(),
            chance=lambda: 0.0,
            note=no_defect,
        )
        watching = asyncio.create_task(feed.run())
        async with asyncio.timeout(HANGS_S):
            while not {"ResourceClaim", "DeviceClass"} <= scheduler.cluster.unserved.keys():
                await asyncio.sleep(0.01)
        watching.cancel()
    lack = scheduler.cluster.unserved["ResourceClaim"]
    assert said in lack.problem
    assert lack.problem.isprintable()
    assert len(lack.problem) < 400
    assert "resource.k8s.io/v1" in lack.hint
