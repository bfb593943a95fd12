"""A cluster without HTTP: the real API over the real store, controllers, and kubelets that obey.

Time is virtual: ``settle`` lets the controllers work until nothing is left to do, or for a while.
"""

import random

from pocketkube.api.api import Api
from pocketkube.api.writing import Deleting
from pocketkube.controllers.manager import Manager
from pocketkube.objects import parsed_time_s, rfc3339
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.store.store import Store

START_S = 1_800_000_000.0
STEPS_MAX = 20_000


class World:
    """One cluster; ``kubelets`` bind, run and remove pods whenever the controllers rest."""

    def __init__(self, *, nodes=2, kubelets=True, store=None):
        self.now_s = START_S
        self.kubelets = kubelets
        registry = Registry(Document.load().resources())
        chance = random.Random(7)
        store = store or Store()
        self.api = Api(store, registry, now_s=lambda: self.now_s, chance=chance)
        self.manager = Manager(self.api, lambda: self.now_s)
        if store.count("namespaces") == 0:
            self.namespace("default")
            for index in range(nodes):
                self.node(f"node-{index}")
        self.settle()

    # Objects

    def create(self, api_version, plural, obj, namespace="default"):
        kind = self.api.registry.named(api_version, plural).kind
        obj = {"apiVersion": api_version, "kind": kind, **obj}
        resource = self.api.registry.named(api_version, plural)
        return self.api.create(resource, namespace if resource.namespaced else "", obj)

    def namespace(self, name):
        return self.create("v1", "namespaces", {"metadata": {"name": name}})

    def node(self, name, *, labels=None, **spec):
        labels = {"kubernetes.io/hostname": name, **(labels or {})}
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        body["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
        made = self.create("v1", "nodes", body)
        self.set_ready(name, "True")
        return made

    def set_ready(self, node, status):
        def change(found):
            condition = {"type": "Ready", "status": status, "lastTransitionTime": self.time()}
            found.setdefault("status", {})["conditions"] = [condition]

        self.api.amend("nodes", "", node, change, subresource="status")

    def find(self, bucket, name, namespace="default"):
        return self.api.find(bucket, namespace, name)

    def status(self, bucket, name):
        return self.find(bucket, name)["status"]

    def patch(self, bucket, name, change, namespace="default"):
        return self.api.amend(bucket, namespace, name, change)

    def delete(self, bucket, name, namespace="default", **deleting):
        resource = self.api.registry.preferred(bucket)
        return self.api.delete(resource, namespace, name, Deleting(**deleting))

    def names(self, bucket, namespace="default"):
        return [entry.name for entry in self.api.store.entries(bucket, namespace)]

    def pods(self, namespace="default", **labels):
        found = self.api.find_all("pods", namespace)
        return [p for p in found if labels.items() <= (p["metadata"].get("labels") or {}).items()]

    def reasons(self, name):
        events = self.api.find_all("events")
        return [e["reason"] for e in events if e["involvedObject"]["name"] == name]

    # Time

    def time(self):
        return rfc3339(self.now_s)

    def settle(self, for_s=0.5):
        """Let everybody work for some seconds of virtual time."""
        until_s = self.now_s + for_s
        for _ in range(STEPS_MAX):
            delay_s = self.manager.step()
            if delay_s == 0:
                continue
            if self.kubelets and self._obey():
                continue
            if delay_s is None or self.now_s + delay_s > until_s:
                self.now_s = until_s
                return
            self.now_s += delay_s + 1e-6
        raise AssertionError("the controllers never rest")

    # Kubelets

    def _obey(self):
        nodes = self.names("nodes", "")
        worked = False
        for pod in self.api.find_all("pods"):
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                if not pod["metadata"].get("finalizers"):
                    self.delete("pods", name, namespace, grace_period_s=0)
                    worked = True
            elif pod.get("status", {}).get("phase", "Pending") == "Pending" and nodes:
                node = pod["spec"].get("nodeName") or _wanted_node(pod) or nodes[0]
                self.run(name, node=node, namespace=namespace)
                worked = True
        return worked

    def run(self, name, *, node="node-0", namespace="default"):
        def bind(pod):
            pod["spec"].setdefault("nodeName", node)

        self.patch("pods", name, bind, namespace)
        self.set_phase(name, "Running", namespace=namespace)

    def set_phase(self, name, phase, *, exit_code=None, namespace="default"):
        def change(pod):
            ready = "True" if phase == "Running" else "False"
            status = pod.setdefault("status", {})
            status["phase"] = phase
            condition = {"type": "Ready", "status": ready, "lastTransitionTime": self.time()}
            status["conditions"] = [condition]
            if exit_code is not None:
                ended = {"terminated": {"exitCode": exit_code}}
                status["containerStatuses"] = [{"name": "c", "state": ended}]

        self.api.amend("pods", namespace, name, change, subresource="status")

    def seconds_since_start(self, time):
        return parsed_time_s(time) - START_S


def _wanted_node(pod):
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms", ()):
        for field in term.get("matchFields", ()):
            return field["values"][0]
    return None


def template(app, **spec):
    """Return a pod template whose pods have the label ``app``."""
    containers = [{"name": "c", "image": "x"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def workload(name, **spec):
    """Return the body of a ReplicaSet, Deployment, StatefulSet or DaemonSet."""
    wanted = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return {"metadata": {"name": name}, "spec": wanted}


def job(name, **spec):
    """Return the body of a Job whose pods are not restarted."""
    return {
        "metadata": {"name": name},
        "spec": {"template": template(name, restartPolicy="Never"), **spec},
    }
