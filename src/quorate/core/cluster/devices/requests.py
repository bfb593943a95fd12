"""The device needs of pods: the requests of their claims, with device classes looked up.

In: pods and ``Devices``. Out: ``DeviceNeeds``, a part of the pod's class: pods whose claims request
the same have the same needs, whatever the claims' names. Called when a gang is planned.
Source: PreFilter of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorate.core.cluster.devices.counts import ClaimKey
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.devices.special_claims import SpecialRequest, requests_of
from quorate.core.model import DeviceClass, Pod, SelectorTerm, policy
from quorate.core.model.devices import (
    Allocation,
    ContainerDevices,
    DeviceChoice,
    DeviceConfig,
    DeviceConstraint,
    DeviceRequest,
)
from quorate.core.model.quantity import may_be_devices

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
    constraints: tuple[DeviceConstraint, ...]
    config: tuple[DeviceConfig, ...]
    shared: ClaimKey | None = None

    @property
    def weight(self) -> int:
        """Its size: the number of choices, selectors and configurations (each at most 10 KiB)."""
        choices = [choice for request in self.requests for choice in request.choices]
        return len(self.config) + sum(1 + len(one.wanted.selectors) for one in choices)


class AllocatedClaim(NamedTuple):
    """A claim with devices: the nodes that reach them (None: all nodes), and its score.

    ``unusable`` says that preparing one of its devices has failed.
    """

    nodes: tuple[SelectorTerm, ...] | None
    score: int = 0
    unusable: bool = False


class ExtendedResources(NamedTuple):
    """A pod's extended resources, of which device classes back some.

    ``unbacked`` are those that a node must list. ``is_left_over`` says that an earlier attempt made
    a special claim for the pod, which has to be deleted first.
    """

    containers: tuple[ContainerDevices, ...]
    classes: tuple[DeviceClass, ...]
    backed: tuple[str, ...]
    unbacked: tuple[str, ...]
    is_left_over: bool

    def claim(self, place: int, resources: frozenset[str]) -> UnallocatedClaim:
        """Return the special claim for these backed resources, the last of the pod's claims."""
        class_of = dict(zip(self.backed, self.classes, strict=True))
        wanted, _ = requests_of(self.containers, resources)
        return UnallocatedClaim(
            place=place,
            requests=tuple(
                Request(one.name, False, (_exactly(one, class_of[one.resource]),)) for one in wanted
            ),
            constraints=(),
            config=(),
        )


def _exactly(one: SpecialRequest, device_class: DeviceClass) -> Choice:
    wanted = DeviceChoice(one.name, device_class.name, count=one.devices)
    return Choice(wanted, device_class)


class _Open(NamedTuple):
    place: int
    spec: int
    shared: ClaimKey | None


_Part = AllocatedClaim | _Open


class DeviceNeeds:
    """The device needs of a pod: all its claims. Equal needs are one object.

    ``problem`` says why the claims cannot be satisfied on any node now. ``unallocated`` are claims
    without devices, ``allocated`` claims with devices. ``extended`` are extended resources that
    devices may satisfy: the needs on a node depend on which of them it lists itself. ``lacking``
    returns the needs for a node that lacks some; their ``lacks`` are these resources.
    """

    __slots__ = (
        "_claims",
        "_lacking",
        "allocated",
        "extended",
        "id",
        "lacks",
        "problem",
        "unallocated",
        "weight",
    )

    def __init__(
        self,
        number: int,
        claims: tuple[UnallocatedClaim | AllocatedClaim, ...] = (),
        problem: str = "",
        extended: ExtendedResources | None = None,
        lacks: frozenset[str] = frozenset(),
    ) -> None:
        self.id = number
        self.lacks = lacks
        self.unallocated = tuple(one for one in claims if isinstance(one, UnallocatedClaim))
        self.allocated = tuple(one for one in claims if isinstance(one, AllocatedClaim))
        self.problem = problem
        self.weight = 1 + len(self.allocated) + sum(one.weight for one in self.unallocated)
        self.extended = extended
        self._claims = claims
        self._lacking: dict[frozenset[str], DeviceNeeds] = {}

    def lacking(self, resources: frozenset[str]) -> DeviceNeeds:
        """Return the needs on nodes that lack these of the ``extended`` resources."""
        if self.extended is None:
            return self
        known = self._lacking.get(resources)
        if known is None:
            place = len(self._claims)
            special = (self.extended.claim(place, resources),) if resources else ()
            known = self._lacking[resources] = DeviceNeeds(
                self.id, (*self._claims, *special), lacks=resources
            )
        return known

    @property
    def at_most(self) -> DeviceNeeds:
        """The needs on a node that lists none of the backed extended resources."""
        return self.lacking(frozenset(self.extended.backed) if self.extended else frozenset())


class DeviceNeedsTable:
    """A cache of device needs by claims' contents; the least recently used are evicted."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._known: dict[tuple[object, ...], DeviceNeeds] = {}
        """In order of their last use, the oldest first."""
        self._weight = 0
        self._made = 0
        """The number of needs made so far; a number is never reused."""

    def of(self, pod: Pod) -> DeviceNeeds | None:
        """Return the pod's device needs; None if it has no claims and no backed resources."""
        most = policy.DEVICE_CLAIMS_PER_POD_MAX
        if len(pod.device_claims) > most:
            words = f"spec.resourceClaims has {len(pod.device_claims)} entries, and at most {most}"
            return self._named("too many claims", f"{words} are looked at")
        key: list[_Part] = []
        for entry in pod.device_claims:
            if entry.claim == "":
                continue
            problem = self._problem(pod, entry.claim, own=entry.own)
            if problem is not None:
                return self._named(*problem)
            assert entry.claim is not None, "a claim that is not made is a problem"
            name = pod.namespace, entry.claim
            allocation = self._devices.allocation(name)
            claim = self._devices.claims[name]
            if allocation is not None:
                key.append(
                    allocated_claim(
                        claim.spec.requests, allocation, unusable=bool(claim.binding_failed)
                    )
                )
            else:
                number = self._devices.spec_number(name)
                key.append(_Open(len(key), number, None if entry.own else name))
        backed = self._backed(pod) if pod.spec.extended else ()
        if backed:
            found = self._of_claims(tuple(key))
            return found if found.problem else self._with_extended(found, pod, backed)
        return self._of_claims(tuple(key)) if key else None

    def _backed(self, pod: Pod) -> tuple[str, ...]:
        """Return the pod's extended resources that device classes back."""
        backing = self._devices.backed
        asked = (name for name, amount in pod.spec.requests if amount)
        return tuple(name for name in asked if name in backing and may_be_devices(name))

    def _with_extended(self, found: DeviceNeeds, pod: Pod, backed: tuple[str, ...]) -> DeviceNeeds:
        devices = self._devices
        is_left_over = pod.uid in devices.special
        asked = tuple(name for name, amount in pod.spec.requests if amount)
        key = devices.classes_version, found.id, pod.spec.extended, asked, is_left_over
        known = self._lookup(key)
        if known is not None:
            return known
        containers = tuple(
            one._replace(requests=tuple(r for r in one.requests if r[0] in backed))
            for one in pod.spec.extended
        )
        if problem := _too_much_extended(backed, containers):
            return self._named("too much extended", problem)
        extended = ExtendedResources(
            containers=containers,
            classes=tuple(devices.backed[name] for name in backed),
            backed=backed,
            unbacked=tuple(n for n in asked if n not in backed and may_be_devices(n)),
            is_left_over=is_left_over,
        )
        return self._keep(key, (*found.unallocated, *found.allocated), extended=extended)

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
        if claim.spec.defect and claim.allocation is None:
            return "defect", claim.spec.defect
        return None

    def _named(self, kind: str, text: str) -> DeviceNeeds:
        """Return the needs that all pods with this kind of problem share; ``text`` names one."""
        key = self._devices.classes_version, kind
        device_needs = self._lookup(key) or self._keep(key)
        device_needs.problem = text
        return device_needs

    def _of_claims(self, parts: tuple[_Part, ...]) -> DeviceNeeds:
        key = self._devices.classes_version, *parts
        known = self._lookup(key)
        if known is not None:
            return known
        claims: list[UnallocatedClaim | AllocatedClaim] = []
        for one in parts:
            if isinstance(one, AllocatedClaim):
                claims.append(one)
                continue
            found = self._claim(one)
            if isinstance(found, str):
                return self._keep(key, problem=found)
            claims.append(found)
        opened = [one for one in claims if isinstance(one, UnallocatedClaim)]
        if problem := _too_much(opened):
            return self._keep(key, problem=problem)
        return self._keep(key, tuple(claims))

    def _claim(self, part: _Open) -> UnallocatedClaim | str:
        """Return an open claim with its classes looked up, or a message that one is missing."""
        spec = self._devices.spec(part.spec)
        requests = []
        for request in spec.requests:
            choices = []
            for wanted in request.choices:
                found = self._devices.classes.get(wanted.device_class)
                if found is None:
                    label = f"{request.name}/{wanted.name}" if request.is_list else request.name
                    words = f"device class {wanted.device_class} does not exist"
                    return f"request {label}: {words}"
                choices.append(Choice(wanted, found))
            requests.append(Request(request.name, request.is_list, tuple(choices)))
        return UnallocatedClaim(
            part.place, tuple(requests), spec.constraints, spec.config, part.shared
        )

    def _lookup(self, key: tuple[object, ...]) -> DeviceNeeds | None:
        found = self._known.pop(key, None)
        if found is not None:
            self._known[key] = found
        return found

    def _keep(
        self,
        key: tuple[object, ...],
        claims: tuple[UnallocatedClaim | AllocatedClaim, ...] = (),
        problem: str = "",
        extended: ExtendedResources | None = None,
    ) -> DeviceNeeds:
        made = DeviceNeeds(self._made, claims, problem, extended)
        self._made += 1
        self._weight += made.weight
        while self._known and self._weight > policy.DEVICE_ASKS_MAX:
            self._weight -= self._known.pop(next(iter(self._known))).weight
        self._known[key] = made
        return made


def _too_much(claims: list[UnallocatedClaim]) -> str:
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


def _too_much_extended(backed: tuple[str, ...], containers: tuple[ContainerDevices, ...]) -> str:
    """Return a message if the pod exceeds the bounds on extended resources, else ""."""
    most = policy.DEVICE_RESOURCES_PER_POD_MAX
    if len(backed) > most:
        words = f"spec.containers ask for {len(backed)} extended resources that device classes back"
        return f"{words}, and at most {most} are looked at"
    count = sum(bool(one.requests) for one in containers)
    most = policy.DEVICE_CONTAINERS_PER_POD_MAX
    if count > most:
        words = f"{count} of spec.containers ask for extended resources that device classes back"
        return f"{words}, and at most {most} are looked at"
    return ""


def allocated_claim(
    requests: Sequence[Request | DeviceRequest],
    allocation: Allocation,
    *,
    unusable: bool = False,
) -> AllocatedClaim:
    """Return a claim with these requests and allocated devices; ``unusable`` as in HeldClaim."""
    given = {one.request for one in allocation.devices}
    score = 0
    for request in requests:
        labels = [f"{request.name}/{one.name}" for one in request.choices if request.is_list]
        score += sum(SCORE_OF_FIRST - at for at, label in enumerate(labels) if label in given)
    return AllocatedClaim(allocation.nodes, score, unusable)
