"""An API server in a thread that answers by path: enough of one for ``why`` and ``gangs``."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from aiohttp import web

from quorate.shell.kube.paths import resource_path
from quorate.shell.watch.lookups import LOOKUPS
from tests import servers
from tools import objects
from tools.objects import GANG_LABEL, pod_group
from tools.testing import HANGS_S

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
X_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
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
        code, body = self.answers.get(request.path, self.all_others)
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=code, text=text)


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
            LEASE: (200, {"spec": {"holderIdentity": "quorate-0"}}),
        }
    )
