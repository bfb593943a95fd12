"""Pods with a volume of their own, which a provisioner makes where the scheduler says.

The API server that runs here has no volume binder and no provisioner: this theme plays both, as far
as a claim that waits for its first consumer needs them. A volume stays where it was made.
"""

from __future__ import annotations

import contextlib

from pocketkube.errors import ApiError
from pocketkube.objects import Object
from simulate.checkers.records import NEVER, RULED_LABEL, PodTruth
from simulate.cluster.theme import Harm, Theme
from simulate.workload import Job

_CLASS = "first-consumer"
_SELECTED = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_HOSTNAME = "kubernetes.io/hostname"
_CLAIMS = "persistentvolumeclaims"
_SIZE = {"storage": "1Gi"}


class Volumes(Theme):
    """Gives the pods of some jobs a claim each; those with stable names keep it."""

    name = "volumes"
    must_meet = ("claims bound", "claims refused", "pods bound with a volume")

    def jobs(self, jobs: list[Job]) -> None:
        """Draw whose pods have a volume."""
        self._with = {job.name for job in jobs if self.chance.random() < 0.4}
        self._refuses = False
        for job in jobs:
            job.apart &= job.name not in self._with
        self.world.history.on_bound.append(self._on_bound)

    def build(self) -> None:
        """Make the class."""
        provisioner = {"provisioner": "simulation.example.com"}
        how = {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
        made = {"metadata": {"name": _CLASS}, **provisioner, **how}
        self.world.create("storage.k8s.io/v1", "storageclasses", made)

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Make a claim, unless it is there, and let the pod mount it."""
        if job.name not in self._with:
            return
        name = metadata["name"]
        metadata["labels"][RULED_LABEL] = "volume"
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": _CLASS,
            "resources": {"requests": dict(_SIZE)},
        }
        meta = {"name": name, "namespace": job.namespace}
        with contextlib.suppress(ApiError):  # it was kept
            self.world.create("v1", _CLAIMS, {"metadata": meta, "spec": claim})

    def harms(self) -> list[Harm]:
        """Now and then the provisioner has no room on the node that was chosen."""
        return [("volume refused", 4.0, self._refuse)]

    def _refuse(self) -> None:
        self._refuses = True

    def step(self) -> None:
        """Make the volumes that are asked for, and forget claims whose pods do not come again."""
        of = {job: job for job in self._with}
        for entry in list(self.world.store.entries(_CLAIMS)):
            claim = entry.object
            node = (claim["metadata"].get("annotations") or {}).get(_SELECTED)
            if node and not claim["spec"].get("volumeName"):
                self._provision(entry.namespace, entry.name, claim, node)
            job = of.get(entry.name.split("-")[0])
            if job is None or (entry.name.count("-") > 1 and not self._is_used(entry.name)):
                self._delete(entry.namespace, entry.name, claim)

    def _is_used(self, claim: str) -> bool:
        return claim in self.world.history.by_name

    def _delete(self, namespace: str, name: str, claim: Object) -> None:
        api = self.world.api
        api.amend(_CLAIMS, namespace, name, lambda obj: obj["metadata"].pop("finalizers", None))
        with contextlib.suppress(ApiError):
            api.delete(self.world.resource("v1", _CLAIMS), namespace, name)
        if volume := claim["spec"].get("volumeName"):
            plural = "persistentvolumes"
            api.amend(plural, "", volume, lambda obj: obj["metadata"].pop("finalizers", None))
            with contextlib.suppress(ApiError):
                api.delete(self.world.resource("v1", plural), "", volume)

    def _provision(self, namespace: str, name: str, claim: Object, node: str) -> None:
        world, refuses = self.world, self._refuses and self.world.faults.on
        if refuses or world.api.find("nodes", "", node) is None:
            self._refuses = False
            self.met(self.must_meet[1], refuses)
            world.api.amend(_CLAIMS, namespace, name, _without_node)
            return
        volume = f"pv-{claim['metadata']['uid']}"
        expression = {"key": _HOSTNAME, "operator": "In", "values": [node]}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": dict(_SIZE),
            "storageClassName": _CLASS,
            "csi": {"driver": "simulation.example.com", "volumeHandle": volume},
            "claimRef": {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        }
        world.create("v1", "persistentvolumes", {"metadata": {"name": volume}, "spec": spec})
        world.api.amend(
            "persistentvolumes", "", volume, lambda obj: obj.update(status={"phase": "Bound"})
        )

        def bound(obj: Object) -> None:
            obj["spec"]["volumeName"] = volume
            obj["metadata"].setdefault("annotations", {})[_BIND_COMPLETED] = "yes"
            obj["status"] = {"phase": "Bound"}

        world.api.amend(_CLAIMS, namespace, name, bound)
        self.met(self.must_meet[0])

    def _on_bound(self, pod: PodTruth) -> None:
        """A pod is bound only where its volume is, and when its claim is bound."""
        if pod.gang not in self._with or not pod.bound_by.startswith("replica"):
            return
        claim = self.world.api.find(_CLAIMS, pod.namespace, pod.name)
        if claim is None or pod.terminating != NEVER or pod.bound_late or pod.moved:
            return
        volume = self.world.api.find("persistentvolumes", "", claim["spec"].get("volumeName", ""))
        self.met(self.must_meet[2])
        self.world.check(
            "a pod is bound where its volume is",
            volume is not None and _node_of(volume) == pod.node,
            lambda: f"{pod.name} is bound to {pod.node}, its volume is {volume and volume['spec']}",
        )


def _node_of(volume: Object) -> str:
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return str(terms[0]["matchExpressions"][0]["values"][0])


def _without_node(claim: Object) -> None:
    claim["metadata"]["annotations"].pop(_SELECTED, None)
