"""What one test does to a cluster and looks at: a namespace, nodes, manifests, pods, reasons."""

import io
import itertools
import json
import subprocess
from collections.abc import Iterable
from contextlib import redirect_stdout
from itertools import chain, zip_longest

from tools.controlplane import Access, ApiError
from tools.objects import X_K8S, gang_pods, pod, pod_group
from tools.testing import call, command_line, wait_for

PROBES = "/api/v1/namespaces/default/pods"
NO_NODE = {"quorate.dev/no": "such"}
_probes = itertools.count()


def make_namespace(cluster: Access, name: str) -> None:
    """Create a namespace in which pods can be created at once."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.api("POST", "/api/v1/namespaces", body)
    # Pods need it, and a controller manager that lost the API server is slow to make it.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    try:
        cluster.api("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    except ApiError as error:
        if error.status != 409:
            raise


class World:
    """One test's part of the cluster."""

    def __init__(self, cluster, quorate, namespace: str, scheduler: str = "quorate") -> None:
        self.cluster = cluster
        self.quorate = quorate
        self.namespace = namespace
        self.scheduler = scheduler
        self._namespaces = []
        self.add_namespace(namespace)

    def add_namespace(self, name: str) -> str:
        make_namespace(self.cluster, name)
        self._namespaces.append(name)
        return name

    def nodes(self, count: int, prefix: str | None = None, **options) -> list[str]:
        """Create nodes; ``allocatable``, ``labels`` and ``taints`` as in Cluster.create_nodes."""
        return self.cluster.create_nodes(count, prefix=prefix or f"{self.namespace}-", **options)

    def kubectl(self, *args: str, manifest: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *args, input=manifest)

    def apply(self, *objects: dict | str) -> None:
        """Apply manifests, given as YAML text or as values, into this test's namespace."""
        self.cluster.apply(*objects, namespace=self.namespace)

    def path(self, plural: str, name: str = "", api: str = "v1") -> str:
        """Return the path of objects in this test's namespace, or of the one of that name."""
        base = f"/apis/{api}" if "/" in api else f"/api/{api}"
        return f"{base}/namespaces/{self.namespace}/{plural}{name and '/' + name}"

    def patch(self, path: str, patch: dict) -> None:
        self.cluster.api("PATCH", path, patch, content_type="application/merge-patch+json")

    def scale(self, deployment: str, replicas: int) -> None:
        path = self.path("deployments", deployment, "apps/v1")
        self.patch(f"{path}/scale", {"spec": {"replicas": replicas}})

    def cordon(self, *nodes: str) -> None:
        for node in nodes:
            self.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    def uncordon(self, *nodes: str) -> None:
        """Open nodes again, without waiting for a controller to take their taint away."""
        for node in nodes:
            open_again = {"spec": {"unschedulable": None, "taints": None}}
            self.patch(f"/api/v1/nodes/{node}", open_again)

    def create_pod(self, pod: dict) -> dict:
        path = f"/api/v1/namespaces/{pod['metadata'].get('namespace', self.namespace)}/pods"
        return self.cluster.api("POST", path, pod)

    def create_pods(self, *gangs: Iterable[dict]) -> None:
        """Create the pods of some gangs, interleaved: one of each, then the next of each."""
        for one in chain.from_iterable(zip_longest(*gangs)):
            if one is not None:
                self.create_pod(one)

    def bind(
        self,
        name: str,
        node: str,
        annotations: dict[str, str] | None = None,
        *,
        legacy: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Bind a pod as another scheduler would. Raises what the API server answers."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "annotations": annotations or {},
            },
            "target": {"kind": "Node", "name": node},
        }
        path = self.path("bindings") if legacy else self.path("pods", f"{name}/binding")
        self.cluster.api("POST", f"{path}{'?dryRun=All' if dry_run else ''}", body)

    def delete_pod(self, name: str, *, wait: bool = False) -> None:
        path = self.path("pods", name)
        self.cluster.api("DELETE", path)
        if wait:
            wait_for(lambda: not self.cluster.exists(path), f"pod {name} is gone")

    def pod(self, name: str) -> dict:
        return self.cluster.api("GET", self.path("pods", name))

    def delete_pods(self, selector: str = "") -> None:
        query = f"?labelSelector={selector}" if selector else ""
        self.cluster.api("DELETE", self.path("pods") + query)

    def delete_group(self, name: str, api: str = X_K8S) -> None:
        self.cluster.api("DELETE", self.path("podgroups", name, api))

    def remove_finalizers(self, name: str) -> None:
        self.patch_pod(name, {"metadata": {"finalizers": None}})

    def patch_pod(self, name: str, patch: dict) -> None:
        self.patch(self.path("pods", name), patch)

    def group(self, name: str, api: str = X_K8S) -> dict:
        """Return a PodGroup of any of the APIs."""
        return self.cluster.api("GET", self.path("podgroups", name, api))

    def patch_group(self, name: str, patch: dict, api: str = X_K8S) -> None:
        self.patch(self.path("podgroups", name, api), patch)

    def wait_status(self, name: str, api: str = X_K8S, **expected: object) -> dict:
        """Wait until the PodGroup's status has these values; return all of it."""
        seen: dict = {}

        def holds() -> bool:
            seen.clear()
            seen.update(self.group(name, api).get("status", {}))
            return all(seen.get(key) == value for key, value in expected.items())

        try:
            wait_for(holds, f"{name}'s status has {expected}")
        except AssertionError as error:
            raise AssertionError(f"{error}; status: {seen}") from None
        return seen

    def pods(self, selector: str = "", namespace: str | None = None) -> list[dict]:
        query = f"?labelSelector={selector}" if selector else ""
        path = f"/api/v1/namespaces/{namespace or self.namespace}/pods{query}"
        return self.cluster.api("GET", path)["items"]

    def bound(self, selector: str = "", namespace: str | None = None) -> int:
        return sum(bool(p["spec"].get("nodeName")) for p in self.pods(selector, namespace))

    def running(self, selector: str = "") -> int:
        return sum(pod["status"]["phase"] == "Running" for pod in self.pods(selector))

    def where(self, selector: str = "") -> dict[str, str]:
        """Return the node of each pod that has one."""
        pods = self.pods(selector)
        return {
            p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if "nodeName" in p["spec"]
        }

    def wait_bound(self, count: int, selector: str = "") -> None:
        wait_for(lambda: self.bound(selector) >= count, f"{count} pods bound ({selector})")

    def stays_unbound(self, selector: str = "") -> None:
        """Nothing may be bound, now and when all there is has been decided about."""
        self.stays_bound(0, selector)

    def stays_bound(self, count: int, selector: str = "") -> None:
        """Exactly so many may be bound, now and when all there is has been decided about."""
        assert self.bound(selector) == count
        self.settle()
        assert self.bound(selector) == count

    def settle(self) -> None:
        """Wait until the scheduler has decided, knowing all there is now, and its binds are over.

        A pod that fits nowhere shows it, as soon as it is told so. The second one is decided
        about in a later turn, when what the first turn found was sent. They are in the namespace
        ``default``, so that a test that counts its own pods does not count them.
        """
        for _ in range(2):
            probe = pod(f"probe-{next(_probes)}", scheduler=self.scheduler, nodeSelector=NO_NODE)
            path = f"{PROBES}/{self.cluster.api('POST', PROBES, probe)['metadata']['name']}"
            wait_for(lambda path=path: self._is_told(path), "a pod that fits nowhere is told so")
            self.cluster.api("DELETE", path)
        if self.quorate:
            binds = "quorate_binds_under_way"
            wait_for(lambda: self.quorate.metric(binds) == 0, "no bind is under way")

    def _is_told(self, path: str) -> bool:
        conditions = self.cluster.api("GET", path)["status"].get("conditions", [])
        return any(one["type"] == "PodScheduled" for one in conditions)

    def conditions(self, selector: str = "") -> list[tuple[str, str]]:
        """Return reason and message of PodScheduled=False of each pod that has it."""
        return [
            (condition.get("reason", ""), condition.get("message", ""))
            for pod in self.pods(selector)
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]

    def wait_condition(self, text: str, selector: str = "") -> str:
        """Wait until the condition of some pod contains ``text``; return the message."""

        def found() -> str:
            return next((m for _, m in self.conditions(selector) if text in m), "")

        try:
            return wait_for(found, f"a condition with {text!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}; conditions: {self.conditions(selector)}") from None

    def all_events(self) -> list[dict]:
        return self.cluster.api("GET", self.path("events", api="events.k8s.io/v1"))["items"]

    def events(self, reason: str) -> list[str]:
        return [event["note"] for event in self.all_events() if event["reason"] == reason]

    def wait_event(self, reason: str, text: str) -> str:

        def found() -> str:
            return next((note for note in self.events(reason) if text in note), "")

        try:
            return wait_for(found, f"an Event {reason} with {text!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}; notes: {self.events(reason)}") from None

    def gang(self, name: str, count: int, minimum: int | None = None, **options) -> list[dict]:
        """Create a PodGroup of the current API and return its pods, which are not created yet."""
        group = options.pop("group", {})
        self.apply(pod_group(name, count if minimum is None else minimum, **group))
        return gang_pods(name, count, scheduler=self.scheduler, **options)

    def quorate_cli(self, *args: str) -> subprocess.CompletedProcess:
        """Run the command line as a user would, with the administrator's kubeconfig."""
        command = command_line(*args, *self._options())
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def _options(self) -> list[str]:
        """Return which cluster and which configuration a command is about."""
        return [
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--config={self.quorate.config_file}",
        ]

    def why(self, name: str) -> dict:
        """Return what ``quorate why NAME -o json`` says, of namesakes the one with most pods.

        Where pods wait, it waits until the scheduler has said something of them.
        """
        return wait_for(lambda: self._said(name), f"something is said of {name}")

    def _said(self, name: str) -> dict | None:
        options = ("-n", self.namespace, "-o", "json", *self._options())
        with redirect_stdout(io.StringIO()) as out:
            assert call("why", name, *options) == 0
        said = json.loads(out.getvalue())
        gangs = said["items"] if said["kind"] == "GangList" else [said]
        found = max(gangs, key=lambda gang: gang["members"]["total"])
        is_said = found["state"] != "Waiting" or found["reason"]
        return found if is_said else None

    def remove(self) -> None:
        """Delete what the test made. Namespaces go by themselves; pods and nodes are waited for."""
        for name in self._namespaces:
            self.cluster.api("DELETE", f"/api/v1/namespaces/{name}")
        for name in self._namespaces:
            path = f"/api/v1/namespaces/{name}/pods"
            wait_for(lambda path=path: self._delete_pods(path), f"no pods are left in {path}")
        self.cluster.delete_all_nodes()

    def _delete_pods(self, path: str) -> bool:
        self.cluster.api("DELETE", f"{path}?gracePeriodSeconds=0", timeout_s=120)
        return not self.cluster.api("GET", path)["items"]
