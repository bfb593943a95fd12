"""An API server in a thread that answers by path: enough of one for ``why`` and ``gangs``."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from aiohttp import web

from quorate.cli.asking.told import is_leaders
from quorate.core.model import Pod, PodSpec
from quorate.core.model.changes import DialectServed
from quorate.core.model.policy import Policy
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.paths import resource_path
from quorate.shell.report import bodies
from quorate.shell.report.owners import found_out
from quorate.shell.watch.lookups import LOOKUPS
from quorate.shell.watch.objects import watched_kinds
from tests import servers
from tools import objects
from tools.objects import GANG_LABEL, pod_group
from tools.testing import HANGS_S

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
X_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
EVENTS = "/api/v1/events"
OF_A_NAMESPACE = re.compile(r"(/apis?/.*?)namespaces/([^/]+)/([^/]+)")
SAID_S = 1767225600.0
LEASE = "/apis/coordination.k8s.io/v1/namespaces/quorate-system/leases/quorate"


def listing(*items):
    return 200, {"metadata": {"resourceVersion": "7"}, "items": list(items)}


def status(code, reason, message):
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


class ApiServer:
    """``answers`` maps a path to a status and a body; other paths are unknown to it (404).

    ``all_others`` answers for every path instead. Watches stay open and say nothing.
    """

    def __init__(self, answers=None, all_others=None) -> None:
        self.answers = answers or {}
        self.all_others = all_others or status(404, "NotFound", "the server has no such resource")
        self.paths: list[str] = []
        self.url = ""
        self.asked = threading.Event()
        self.answer_never = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.paths.append(request.path)
        self.asked.set()
        if self.answer_never:
            await asyncio.sleep(60)
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.sleep(60)
            return response
        code, body = self.answer_at(request.path)
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=code, text=text)

    def answer_at(self, path):
        """Return what is answered; a list of one namespace is a part of the list of all."""
        of_one = OF_A_NAMESPACE.fullmatch(path)
        if path in self.answers or of_one is None:
            return self.answers.get(path, self.all_others)
        before, namespace, plural = of_one.groups()
        code, body = self.answers.get(f"{before}{plural}", self.all_others)
        if code != 200 or not isinstance(body, dict):
            return code, body
        items = [one for one in body["items"] if one["metadata"]["namespace"] == namespace]
        return code, {**body, "items": items}

    def tell(self):
        """Add the Events of a leader that knows all of this, and that has placed nothing."""
        scheduler = Scheduler(Policy(), api_words())
        for path, kind in watched_kinds(frozenset(Policy().scheduler_names)).items():
            code, body = self.answer_at(path)
            if kind.dialect:
                scheduler.observe([DialectServed(kind.dialect, served=code == 200)])
            items = body["items"] if code == 200 else []
            scheduler.observe([kind.changed(json.dumps(one).encode()) for one in items])
        explainer = scheduler.explainer(SAID_S)
        for key in scheduler.cluster.gangs:
            for owner in explainer.owners(key):
                change = asyncio.run(found_out(_Direct(self), key.namespace, owner))
                scheduler.observe([change])
        found = [explainer.explain(k) for k, g in scheduler.cluster.gangs.items() if is_leaders(g)]
        said = [one for one in found if one.reason is not Reason.STARTING]
        self.answers[EVENTS] = listing(*map(event, said))
        return self


class _Direct:
    """Reads what a server answers without asking it."""

    def __init__(self, server) -> None:
        self._server = server

    async def get(self, path, params=None):
        del params
        code, body = self._server.answer_at(path.partition("?")[0])
        if code != 200:
            raise ApiError(code, "", "")
        return json.dumps(body).encode()

    get_list = get


def event(explanation, at_s=SAID_S, uid=""):
    """Return an Event of the leader that carries an explanation; ``uid`` is whose it is."""
    namespace = explanation.key.namespace
    made = bodies.event(
        Pod("", namespace, explanation.key.bare_name, scheduler="quorate", spec=PodSpec()),
        kind="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=explanation.message,
        instance="x",
        now_s=at_s,
    )
    return {**bodies.explaining(made, explanation), "involvedObject": {"uid": uid}}


@contextmanager
def serving(server: ApiServer, tls=None) -> Iterator[ApiServer]:
    is_up, is_over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with servers.serving(server.answer, tls) as port:
            server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
            is_up.set()
            await is_over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    is_up.wait(HANGS_S)
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(is_over.set)
        thread.join()


def kubeconfig(folder, url, *, namespace=None, user=None, **cluster):
    """Write a kubeconfig whose one context is called main; return its path as a text."""
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": context}],
        "clusters": [{"name": "c", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "t0ken"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(whole))
    return str(path)


def pod(name, group="train", *, namespace="team", node="", cpu="1", **more):
    known = {
        "metadata": {"namespace": namespace, "uid": f"{namespace}-{name}"},
        "requests": {"cpu": cpu},
        "labels": {GANG_LABEL: group} if group else {},
        "status": {"phase": "Running" if node else "Pending"},
    }
    return objects.pod(name, nodeName=node, **(known | more))


def group(name="train", min_member=4, *, namespace="team"):
    return pod_group(name, min_member, metadata={"namespace": namespace, "uid": name})


def node(name, cpu="2"):
    return objects.node(name, allocatable={"cpu": cpu})


def small_cluster() -> ApiServer:
    """A gang of four that does not fit on two nodes, one of one pod that runs, and a lone pod."""
    pods = [pod(f"train-{number}", cpu="2") for number in range(4)]
    pods += [pod("done-0", "done", node="n2", cpu="500m"), pod("alone", None, cpu="99")]
    pods += [pod("far-0", "far", namespace="other")]
    return ApiServer(
        {
            NODES: listing(node("n1"), node("n2")),
            **{resource_path(*one.resource[:3]): listing() for one in LOOKUPS},
            PODS: listing(*pods),
            X_GROUPS: listing(group(), group("done", 1), group("far", 2, namespace="other")),
            LEASE: (200, lease("quorate-0")),
        }
    ).tell()


def lease(holder, names=""):
    annotations = {"quorate.dev/scheduler-names": names} if names else {}
    meta = {"resourceVersion": "1", "annotations": annotations}
    return {"metadata": meta, "spec": {"holderIdentity": holder}}
