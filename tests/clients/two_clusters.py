"""Two API servers that note who asks them for pods, and a folder of kubeconfigs."""

import json
import os
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import KubeConfigError, load_credentials
from quorate.shell.process.clock import SystemClock
from tests.unit.shell.authority import Authority
from tools.controlplane.versions import binary
from tools.testing import HANGS_S

PODS = {"name": "pods", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]}
ANSWERS = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "v1",
        "resources": [PODS],
    },
}


class Server:
    """An API server that has no pods, and notes who asked for those of which namespace."""

    def __init__(self, name, authority):
        self.seen = seen = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                if path.endswith("/pods"):
                    serial = (self.connection.getpeercert() or {}).get("serialNumber")
                    who = [
                        (key.lower(), value)
                        for key, value in self.headers.items()
                        if key.lower() == "authorization" or key.lower().startswith("impersonate-")
                    ]
                    seen.append((name, path, serial, sorted(who)))
                found = ANSWERS.get("/" + path.removeprefix("/clusters/x").lstrip("/"))
                empty = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}
                body = json.dumps(found or empty).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request, client_address):  # clients that do not trust us
                pass

        context = authority.server(names=("127.0.0.1", "api.example"))
        context.load_verify_locations(authority.file)
        context.verify_mode = ssl.CERT_OPTIONAL
        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


class World:
    """Two clusters, and a folder of kubeconfigs."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority(folder, "ca")
        self.certificate, self.key = self.authority.client(77)
        (folder / "user.crt").write_bytes(self.certificate)
        (folder / "user.key").write_bytes(self.key)
        (folder / "token").write_text("of-a-file\n")
        self.servers = [Server(name, self.authority) for name in ("a", "b")]
        self.kubectl = binary("kubectl")

    def cluster(self, number, **more):
        known = {"server": self.servers[number].url, "certificate-authority": "ca.crt", **more}
        return {name: value for name, value in known.items() if value is not None}

    def write(self, name, *, clusters=(), users=(), contexts=(), current=None, **more):
        """Write a kubeconfig; its entries are pairs of a name and what it has."""
        whole = {"apiVersion": "v1", "kind": "Config", **more}
        for kind, entries in (("cluster", clusters), ("user", users), ("context", contexts)):
            whole[f"{kind}s"] = [{"name": n, kind: entry} for n, entry in entries]
        if current is not None:
            whole["current-context"] = current
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(whole))  # Go's YAML takes a bare y for true
        return path

    def simple(self, user, cluster=None, **context):
        self.write(
            "config",
            clusters=[("c", cluster or self.cluster(0))],
            users=[("u", user)],
            contexts=[("main", {"cluster": "c", "user": "u", **context})],
            current="main",
        )

    def asked(self):
        found = [seen for server in self.servers for seen in server.seen]
        for server in self.servers:
            server.seen.clear()
        return found

    def by_kubectl(self, *flags):
        ran = subprocess.run(
            [self.kubectl, "get", "pods", f"--request-timeout={HANGS_S:.0f}s", *flags],
            check=False,
            env={**os.environ, "HOME": str(self.folder)},
            cwd=self.folder.parent,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=2 * HANGS_S,  # after kubectl itself has given up
        )
        return self.asked() if ran.returncode == 0 else ran.stderr

    async def by_quorate(self, file=None, context=None):
        try:
            credentials = await load_credentials(file, context, clock=SystemClock())
        except KubeConfigError as error:
            return str(error)
        async with KubeClient(credentials) as client:
            await client.get(f"/api/v1/namespaces/{credentials.namespace}/pods")
        return self.asked()

    async def agree(self, *, file=None, context=None):
        """Return what both asked for; "" if both refuse."""
        flags = [f"--kubeconfig={file}"] if file else []
        flags += [f"--context={context}"] if context else []
        theirs, ours = self.by_kubectl(*flags), await self.by_quorate(file, context)
        if isinstance(theirs, str) and isinstance(ours, str):
            print(f"kubectl: {theirs}\nquorate: {ours}")
            return ""
        assert ours == theirs, theirs
        [once] = ours
        return once
