"""The device needs of pods: the requests of their claims, with device classes looked up.

In: pods and ``Devices``. Out: ``DeviceNeeds``, a part of the pod's class: pods whose claims request
the same have the same needs, whatever the claims' names. Called when a gang is planned.
Source: PreFilter of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.core.cluster.devices.assumed import ClaimKey
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.model import DeviceClass, Pod, SelectorTerm, policy
from quorate.core.model.devices import (
    Allocation,
    ClaimSpec,
    DeviceChoice,
    DeviceConfig,
    DeviceRequest,
)

SCORE_OF_FIRST = 8
"""The score of a list's first choice: FirstAvailableDeviceRequestMaxSize."""


class Choice(NamedTuple):
    """One choice of a request, with its device class."""

    wanted: DeviceChoice
    device_class: DeviceClass

    @property
    def name(self) -> str:
        """The name of the choice in its list."""
        return self.wanted.name

    def label(self, request: Request) -> str:
        """Return the name by which an allocation refers to this choice of a request."""
        return f"{request.name}/{self.wanted.name}" if request.is_list else request.name


class Request(NamedTuple):
    """A request: one choice, or a list of them."""

    name: str
    is_list: bool
    choices: tuple[Choice, ...]


class UnallocatedClaim(NamedTuple):
    """A claim without devices yet; ``place`` is its index among the pod's claims.

    ``shared`` is the claim's key if other pods may use it too, else None.
    """

    place: int
    requests: tuple[Request, ...]
    config: tuple[DeviceConfig, ...]
    shared: ClaimKey | None = None

    @property
    def weight(self) -> int:
        """Its size: the number of choices, selectors and configurations (each at most 10 KiB)."""
        choices = [choice for request in self.requests for choice in request.choices]
        return len(self.config) + sum(1 + len(one.wanted.selectors) for one in choices)


class AllocatedClaim(NamedTuple):
    """A claim with devices: the nodes that reach them (None: all nodes), and its score."""

    nodes: tuple[SelectorTerm, ...] | None
    score: int = 0


class _Open(NamedTuple):
    place: int
    spec: ClaimSpec
    shared: ClaimKey | None


class DeviceNeeds:
    """The device needs of a pod: all its claims. Equal needs are one object.

    ``problem`` says why the claims cannot be satisfied on any node now. ``unallocated`` are claims
    without devices, ``allocated`` claims with devices.
    """

    __slots__ = ("allocated", "id", "problem", "unallocated", "weight")

    def __init__(
        self,
        number: int,
        claims: tuple[UnallocatedClaim | AllocatedClaim, ...] = (),
        problem: str = "",
    ) -> None:
        self.id = number
        self.unallocated = tuple(one for one in claims if isinstance(one, UnallocatedClaim))
        self.allocated = tuple(one for one in claims if isinstance(one, AllocatedClaim))
        self.problem = problem
        self.weight = 1 + len(self.allocated) + sum(one.weight for one in self.unallocated)


class DeviceNeedsTable:
    """A cache of device needs by claims' contents; the least recently used are evicted."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._known: LruCache[tuple[object, ...], DeviceNeeds] = LruCache()
        self._made = 0
        """The number of needs made so far; a number is never used again."""

    def of(self, pod: Pod) -> DeviceNeeds | None:
        """Return the pod's device needs; None if it has no claims."""
        if not pod.device_claims:
            return None
        most = policy.DEVICE_CLAIMS_PER_POD_MAX
        if len(pod.device_claims) > most:
            words = f"spec.resourceClaims has {len(pod.device_claims)} entries, and at most {most}"
            return self._named("too many claims", f"{words} are looked at")
        parts: list[AllocatedClaim | _Open] = []
        for place, (name, own) in enumerate(claims_of(pod).items()):
            problem = self._problem(pod, name, own=own)
            if problem is not None:
                return self._named(*problem)
            assert name is not None, "a claim that is not made is a problem"
            key = pod.namespace, name
            claim, allocation = self._devices.claims[key], self._devices.allocation(key)
            if allocation is not None:
                parts.append(allocated_claim(claim.spec.requests, allocation))
            else:
                parts.append(_Open(place, claim.spec, None if own else key))
        return self._of_claims(tuple(parts)) if parts else None

    def _problem(self, pod: Pod, name: str | None, *, own: bool) -> tuple[str, str] | None:
        """Return kind and message of a problem with a claim that rules out every node, or None."""
        full = f"{pod.namespace}/{pod.name}"
        if name is None:
            return "not made", f'pod "{full}": ResourceClaim not created yet'
        claim = self._devices.claims.get((pod.namespace, name))
        if claim is None:
            return "missing", f'could not find ResourceClaim "{pod.namespace}/{name}"'
        if claim.terminating:
            return "terminating", f'resourceclaim "{name}" is being deleted'
        if own and claim.owner_uid != pod.uid:
            words = f"was not created for Pod {full} (Pod is not owner)"
            return "foreign", f"ResourceClaim {pod.namespace}/{name} {words}"
        defect = claim.spec.defect if claim.allocation is None else claim.unusable
        if defect:
            return "defect", f"claim {pod.namespace}/{name}: {defect}"
        return None

    def _named(self, kind: str, text: str) -> DeviceNeeds:
        """Return the needs that all pods with this kind of problem share; ``text`` names one."""
        key = self._devices.classes_version, kind
        device_needs = self._known.get(key) or self._keep(key)
        device_needs.problem = text
        return device_needs

    def _of_claims(self, parts: tuple[AllocatedClaim | _Open, ...]) -> DeviceNeeds:
        key = self._devices.classes_version, *parts
        known = self._known.get(key)
        if known is not None:
            return known
        claims: list[UnallocatedClaim | AllocatedClaim] = []
        for part in parts:
            found = part if isinstance(part, AllocatedClaim) else self._claim(part)
            if isinstance(found, str):
                return self._keep(key, problem=found)
            claims.append(found)
        problem = _too_much(one for one in claims if isinstance(one, UnallocatedClaim))
        return self._keep(key, () if problem else tuple(claims), problem)

    def _claim(self, part: _Open) -> UnallocatedClaim | str:
        """Return an open claim with its classes looked up, or a message that one is missing."""
        requests = []
        for request in part.spec.requests:
            choices = []
            for wanted in request.choices:
                found = self._devices.classes.get(wanted.device_class)
                if found is None:
                    label = f"{request.name}/{wanted.name}" if request.is_list else request.name
                    words = f"device class {wanted.device_class} does not exist"
                    return f"request {label}: {words}"
                choices.append(Choice(wanted, found))
            requests.append(Request(request.name, request.is_list, tuple(choices)))
        return UnallocatedClaim(part.place, tuple(requests), part.spec.config, part.shared)

    def _keep(
        self,
        key: tuple[object, ...],
        claims: tuple[UnallocatedClaim | AllocatedClaim, ...] = (),
        problem: str = "",
    ) -> DeviceNeeds:
        made = DeviceNeeds(self._made, claims, problem)
        self._made += 1
        self._known.put(key, made, policy.DEVICE_ASKS_MAX, made.weight)
        return made


def claims_of(pod: Pod) -> dict[str | None, bool]:
    """Return the claims that the pod needs, each once, and whether it is the pod's own."""
    found: dict[str | None, bool] = {}
    for entry in pod.device_claims:
        if entry.claim != "":
            found[entry.claim] = entry.own or found.get(entry.claim, False)
    return found


def _too_much(claims: Iterable[UnallocatedClaim]) -> str:
    """Return a message if the claims exceed the bounds on choices and selectors, else ""."""
    choices = [
        choice for claim in claims for request in claim.requests for choice in request.choices
    ]
    of_all = "spec.devices.requests of all claims have"
    most = policy.DEVICE_CHOICES_PER_POD_MAX
    if len(choices) > most:
        return f"{of_all} {len(choices)} choices, and at most {most} are looked at"
    count = sum(len(one.wanted.selectors) + len(one.device_class.selectors) for one in choices)
    most = policy.DEVICE_SELECTORS_PER_POD_MAX
    if count > most:
        with_classes = f"{of_all} {count} selectors, with those of their device classes"
        return f"{with_classes}, and at most {most} are looked at"
    return ""


def allocated_claim(
    requests: Sequence[Request | DeviceRequest], allocation: Allocation
) -> AllocatedClaim:
    """Return a claim with these requests and allocated devices."""
    given = {one.request for one in allocation.devices}
    score = 0
    for request in requests:
        labels = [f"{request.name}/{one.name}" for one in request.choices if request.is_list]
        score += sum(SCORE_OF_FIRST - at for at, label in enumerate(labels) if label in given)
    return AllocatedClaim(allocation.nodes, score)
