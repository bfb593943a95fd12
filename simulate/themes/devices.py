"""Pods with a claim of a device, their own or shared, which is allocated before they are bound.

The API server that runs here has no controller of claims: this theme makes a claim for each pod, as
one is made from a template, publishes what nodes have, and frees claims that no pod reserves any
more. Claims, and all claims and pods of a namespace, are deleted while they are written, slowly.
"""

from __future__ import annotations

import contextlib
from collections import Counter

from pocketkube.api.writing import Deleting
from pocketkube.errors import ApiError
from pocketkube.objects import Object
from quorate.core.model.plan import Plan
from simulate.checkers.records import NEVER, RULED_LABEL, PodTruth
from simulate.cluster.network import Link
from simulate.cluster.theme import Harm, Theme
from simulate.faults import Profile
from simulate.workload import Job

_API = "resource.k8s.io/v1"
_CLAIMS = "resourceclaims.resource.k8s.io"
_SLICES = "resourceslices.resource.k8s.io"
_DRIVER = "gpu.example.com"
_CLASS = "gpus"
_SHARED = "shared"
_PATH = "/resourceclaims/"


class Devices(Theme):
    """Gives the pods of some jobs a device each."""

    name = "devices"
    must_meet = (
        "pods bound with a device",
        "pods bound with a shared device",
        "devices taken back",
        "claims deleted that were being written",
        "claims that another pod waits for are freed",
        "users of a claim gone while others relied on it",
    )

    def jobs(self, jobs: list[Job]) -> None:
        """Draw whose pods have a device."""
        chance = self.chance
        self._with = {job.name for job in jobs if chance.random() < 0.7}
        self._sharing = {name for name in sorted(self._with) if chance.random() < 0.5}
        self._relying: set[str] = set()
        self._devices = chance.choice((1, 1, 2))
        for job in jobs:
            job.apart &= job.name not in self._with
        if _keeps_its_leader(self.world.faults.profile):
            self.world.faults.slow_paths[_PATH] = chance.choice((0.0, 2.0, 5.0))
        self.world.history.on_bound += [self._on_bound, self._all_leave]
        self.world.store.watch(_CLAIMS, lambda _: self._check_once())

    def harms(self) -> list[Harm]:
        """Every few seconds claims are deleted: one, or all of a namespace and their pods too."""
        return [("delete claim", 3.0, self._lose_claim), ("empty namespace", 8.0, self._lose_all)]

    def build(self) -> None:
        """Make the class."""
        expression = f'device.driver == "{_DRIVER}"'
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        self.world.create(_API, "deviceclasses", {"metadata": {"name": _CLASS}, "spec": spec})

    def pod(self, job: Job, metadata: Object, spec: Object) -> None:
        """Make a claim of the pod's own, or let it share one."""
        if job.name not in self._with:
            return
        own = f"{metadata['name']}-gpu-{job.made}"
        name = _SHARED if job.name in self._sharing else own
        metadata["labels"][RULED_LABEL] = "device"
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        self._make_claim(job.namespace, name)

    def _make_claim(self, namespace: str, name: str) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": _CLASS}}
        claim = {"devices": {"requests": [request]}}
        meta = {"name": name, "namespace": namespace}
        with contextlib.suppress(ApiError):  # it is there
            self.world.create(_API, "resourceclaims", {"metadata": meta, "spec": claim})

    def step(self) -> None:
        """Publish what new nodes have; make claims that pods lack; free those of pods that left."""
        nodes = {entry.name for entry in self.world.store.entries("nodes")}
        slices = {entry.name for entry in self.world.store.entries(_SLICES)}
        for name in sorted(nodes - slices):
            self.world.create(_API, "resourceslices", _slice_of(name, self._devices))
        for name in sorted(slices - nodes):
            self._delete("resourceslices", "", name)
        living = [pod for pod in self.world.history.pods.values() if _lives(pod)]
        used = {(pod.namespace, name): pod for pod in living for name in self._claims_of(pod)}
        uids = {pod.uid for pod in living}
        for namespace, name in used:
            self._make_claim(namespace, name)
        for entry in list(self.world.store.entries(_CLAIMS)):
            key = entry.namespace, entry.name
            self._tidy(entry.object, uids)
            if key not in used:
                self._delete("resourceclaims", *key)

    def _tidy(self, claim: Object, living: set[str]) -> None:
        """Free a claim that only pods reserve that are gone, as kube-controller-manager does."""
        status, metadata = claim.get("status") or {}, claim["metadata"]
        before = status.get("reservedFor") or []
        left = [one for one in before if one["uid"] in living]
        is_free = not left and (before or metadata.get("deletionTimestamp"))
        if left == before and not is_free:
            return

        def change(obj: Object) -> None:
            obj["status"]["reservedFor"] = left
            if is_free:
                obj["metadata"].pop("finalizers", None)
                for name in ("allocation", "reservedFor"):
                    obj["status"].pop(name, None)

        if is_free and status.get("allocation"):
            self.met(self.must_meet[2])
            self.met(self.must_meet[4], any(self._wait_for(claim)))
        self.world.api.amend(_CLAIMS, metadata["namespace"], metadata["name"], change)

    def _wait_for(self, claim: Object) -> list[PodTruth]:
        """Return the pods that use a claim and have no node."""
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        return [
            pod
            for pod in self.world.history.pods.values()
            if _lives(pod) and not pod.node and pod.namespace == namespace
            if name in self._claims_of(pod)
        ]

    def _lose_claim(self) -> None:
        """Somebody deletes a claim, mostly one that is being written."""
        claims = self.world.api.find_all(_CLAIMS)
        written = [
            one for one in claims if one["metadata"].get("finalizers") and any(self._wait_for(one))
        ]
        if chosen := written or claims:
            one = self.chance.choice(chosen)
            self.met(self.must_meet[3], bool(written))
            self._delete("resourceclaims", one["metadata"]["namespace"], one["metadata"]["name"])

    def _lose_all(self) -> None:
        """Somebody deletes all claims of a namespace, and perhaps all pods that use them."""
        claims = self.world.api.find_all(_CLAIMS)
        if not claims:
            return
        namespace = self.chance.choice(claims)["metadata"]["namespace"]
        for one in claims:
            if one["metadata"]["namespace"] == namespace:
                self._delete("resourceclaims", namespace, one["metadata"]["name"])
        if self.chance.random() < 0.5:
            for pod in list(self.world.history.pods.values()):
                if _lives(pod) and pod.namespace == namespace and self._claims_of(pod):
                    self._delete("pods", namespace, pod.name)

    def on_plan(self, link: Link, plan: Plan) -> None:
        """Note which pods rely on the shared claim while their binds are under way."""
        for gang in (*plan.gangs, *plan.preparing):
            for bind in gang.binds:
                if any(give.claim == _SHARED for give in bind.gives):
                    self._relying.add(bind.uid)

    def _all_leave(self, pod: PodTruth) -> None:
        """All bound users of a shared claim are deleted while others rely on what it has."""
        pods = self.world.history.pods
        users = [
            one
            for one in pods.values()
            if one.gang in self._sharing and one.namespace == pod.namespace
        ]
        is_relied_on = any(one.uid in self._relying and not one.node for one in users)
        if pod.gang not in self._sharing or not is_relied_on or not self.world.faults.on:
            return
        if self.chance.random() < 0.7:
            self.met(self.must_meet[5])
            for one in users:
                if one.node:
                    self.world.loop.call_later(0.0, self._delete, "pods", one.namespace, one.name)

    def _claims_of(self, pod: PodTruth) -> list[str]:
        found = self.world.api.find("pods", pod.namespace, pod.name)
        entries = (found or {}).get("spec", {}).get("resourceClaims") or ()
        return [entry["resourceClaimName"] for entry in entries]

    def _delete(self, plural: str, namespace: str, name: str) -> None:
        resource = self.world.resource("v1" if plural == "pods" else _API, plural)
        with contextlib.suppress(ApiError):
            self.world.api.delete(resource, namespace, name, Deleting(grace_period_s=0))

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
        self.met(self.must_meet[names[0] == _SHARED])
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


def _keeps_its_leader(profile: Profile) -> bool:
    """Whether one replica leads throughout: a write that outlasts its leader is not judged yet."""
    ends = profile.crash_s, profile.crash_at_request, profile.restart_s, profile.partition_s
    return not any((*ends, profile.outage_s, profile.ambush_kills))


def _lives(pod: PodTruth) -> bool:
    return pod.gone == NEVER and pod.finished == NEVER


def _slice_of(node: str, devices: int) -> Object:
    spec = {
        "driver": _DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
    }
    return {"metadata": {"name": node}, "spec": spec}
