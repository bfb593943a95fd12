"""Pods with a claim of a device, which the scheduler allocates before it binds them.

The API server that runs here has no controller of claims: this theme makes a claim for each pod, as
one is made from a template, publishes what nodes have, and takes claims back when pods have gone.
"""

from __future__ import annotations

import contextlib
from collections import Counter

from pocketkube.errors import ApiError
from pocketkube.objects import Object
from quorate.simulate.checkers.records import NEVER, RULED_LABEL, PodTruth
from quorate.simulate.cluster.theme import Theme
from quorate.simulate.workload import Job

_API = "resource.k8s.io/v1"
_CLAIMS = "resourceclaims.resource.k8s.io"
_SLICES = "resourceslices.resource.k8s.io"
_DRIVER = "gpu.example.com"
_CLASS = "gpus"
_DEVICES = 2


class Devices(Theme):
    """Gives the pods of some jobs a device each."""

    name = "devices"
    must_meet = ("pods bound with a device", "devices taken back")

    def jobs(self, jobs: list[Job]) -> None:
        """Draw whose pods have a device."""
        self._with = {job.name for job in jobs if self.chance.random() < 0.5}
        self._claim_of: dict[str, str] = {}
        for job in jobs:
            job.apart &= job.name not in self._with
        self.world.history.on_bound.append(self._on_bound)

    def build(self) -> None:
        """Make the class."""
        expression = f'device.driver == "{_DRIVER}"'
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        self.world.create(_API, "deviceclasses", {"metadata": {"name": _CLASS}, "spec": spec})

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Make a claim of the pod's own."""
        if job.name not in self._with:
            return
        name = f"{metadata['name']}-gpu-{job.made}"
        metadata["labels"][RULED_LABEL] = "device"
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        request = {"name": "gpu", "exactly": {"deviceClassName": _CLASS}}
        claim = {"devices": {"requests": [request]}}
        meta = {"name": name, "namespace": job.namespace}
        with contextlib.suppress(ApiError):
            self.world.create(_API, "resourceclaims", {"metadata": meta, "spec": claim})

    def step(self) -> None:
        """Publish what new nodes have, and take back the claims of pods that are gone."""
        nodes = {entry.name for entry in self.world.store.entries("nodes")}
        slices = {entry.name for entry in self.world.store.entries(_SLICES)}
        for name in sorted(nodes - slices):
            self.world.create(_API, "resourceslices", _slice_of(name))
        for name in sorted(slices - nodes):
            self._delete("resourceslices", "", name)
        used = {
            (pod.namespace, name)
            for pod in self.world.history.pods.values()
            if pod.gone == NEVER and pod.finished == NEVER
            for name in self._claims_of(pod)
        }
        for entry in list(self.world.store.entries(_CLAIMS)):
            if (entry.namespace, entry.name) not in used:
                self.met(
                    self.must_meet[1], bool((entry.object.get("status") or {}).get("allocation"))
                )
                self.world.api.amend(_CLAIMS, entry.namespace, entry.name, _taken_back)
                self._delete("resourceclaims", entry.namespace, entry.name)
        self._check_once()

    def _claims_of(self, pod: PodTruth) -> list[str]:
        found = self.world.api.find("pods", pod.namespace, pod.name)
        entries = (found or {}).get("spec", {}).get("resourceClaims") or ()
        return [entry["resourceClaimName"] for entry in entries]

    def _delete(self, plural: str, namespace: str, name: str) -> None:
        with contextlib.suppress(ApiError):
            self.world.api.delete(self.world.resource(_API, plural), namespace, name)

    def _check_once(self) -> None:
        """No device is in two claims."""
        taken: Counter[tuple[str, str]] = Counter()
        for entry in self.world.store.entries(_CLAIMS):
            taken.update(_devices_of(entry.object))
        twice = [device for device, times in taken.items() if times > 1]
        self.world.check("no device is given twice", not twice, lambda: f"{twice}")

    def _on_bound(self, pod: PodTruth) -> None:
        """A pod is bound where its device is, when that is allocated and reserved for it."""
        names = self._claims_of(pod) if pod.bound_by.startswith("replica") else []
        if not names or pod.bound_late or pod.terminating != NEVER:
            return
        claim = self.world.api.find(_CLAIMS, pod.namespace, names[0])
        if claim is None:
            return
        self.met(self.must_meet[0])
        status = claim.get("status") or {}
        reserved = {one["uid"] for one in status.get("reservedFor") or ()}
        pools = {pool for pool, _ in _devices_of(claim)}
        self.world.check(
            "a pod is bound where its device is",
            pod.uid in reserved and pools == {pod.node},
            lambda: f"{pod.name} is bound to {pod.node}, and its claim says {status}",
        )


def _devices_of(claim: Object) -> list[tuple[str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return [(one["pool"], one["device"]) for one in results]


def _taken_back(claim: Object) -> None:
    claim["metadata"].pop("finalizers", None)
    for name in ("allocation", "reservedFor"):
        (claim.get("status") or {}).pop(name, None)


def _slice_of(node: str) -> Object:
    spec = {
        "driver": _DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(_DEVICES)],
    }
    return {"metadata": {"name": node}, "spec": spec}
