"""What the claims of a pod ask for, with their device classes looked up.

An ``Ask`` is the part of a pod class's identity that claims make up: pods whose claims are alike
have the same ask, however their claims are called. In: pods and ``Devices``. Called by
``plan.cycle`` when a gang is planned. Source: PreFilter of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.model import DeviceClass, Pod, SelectorTerm
from quorate.core.model.devices import (
    Allocation,
    ClaimSpec,
    ContainerDevices,
    DeviceChoice,
    DeviceConfig,
    DeviceConstraint,
)
from quorate.core.quantity import may_be_devices
from quorate.core.state.devices import ClaimKey, Devices
from quorate.core.state.special_claims import Wanted, requests_of

SCORE_OF_FIRST = 8
"""FirstAvailableDeviceRequestMaxSize: the score of a list's first choice."""
_ASKS_MAX = 16384


class Choice(NamedTuple):
    """One choice of a request and its class."""

    wanted: DeviceChoice
    device_class: DeviceClass

    def label(self, request: Request) -> str:
        """Return how an allocation names it."""
        return f"{request.name}/{self.wanted.name}" if request.is_list else request.name


class Request(NamedTuple):
    """A request: one choice, or a list of them."""

    name: str
    is_list: bool
    choices: tuple[Choice, ...]


class ClaimAsk(NamedTuple):
    """A claim that has no devices yet; ``place`` is that among the pod's claims.

    ``shared`` is the claim's name when other pods may use it too, else empty.
    """

    place: int
    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]
    config: tuple[DeviceConfig, ...]
    shared: ClaimKey | None = None


class HeldClaim(NamedTuple):
    """A claim that has devices: on which nodes they are (None: all), and what it scores.

    ``unusable`` says that one of its devices cannot be bound to.
    """

    nodes: tuple[SelectorTerm, ...] | None
    score: int = 0
    unusable: bool = False


class Extended(NamedTuple):
    """The extended resources of a pod of which classes back some.

    ``unbacked`` are those that a node must list. ``is_left_over`` says that a claim was made for
    the pod in an earlier attempt, and has to be deleted first.
    """

    containers: tuple[ContainerDevices, ...]
    classes: tuple[DeviceClass, ...]
    backed: tuple[str, ...]
    unbacked: tuple[str, ...]
    is_left_over: bool

    def claim(self, place: int, resources: frozenset[str]) -> ClaimAsk:
        """Return the special claim, the last of the pod's, for these of the backed resources."""
        class_of = dict(zip(self.backed, self.classes, strict=True))
        wanted, _ = requests_of(self.containers, resources)
        return ClaimAsk(
            place=place,
            requests=tuple(
                Request(one.name, False, (_exactly(one, class_of[one.resource]),)) for one in wanted
            ),
            constraints=(),
            config=(),
        )


def _exactly(one: Wanted, device_class: DeviceClass) -> Choice:
    wanted = DeviceChoice(one.name, device_class.name, count=one.devices)
    return Choice(wanted, device_class)


class _Open(NamedTuple):
    place: int
    spec: int
    shared: ClaimKey | None


_Part = HeldClaim | _Open


class Ask:
    """What all claims of a pod ask for; asks that are alike are one object.

    ``problem`` says why none of them can be looked at. ``open`` have no devices yet. ``extended``
    are extended resources that devices may stand in for: what is asked of a node depends on which
    of them it has itself (``lacking``).
    """

    __slots__ = ("_claims", "_lacking", "extended", "held", "id", "open", "problem")

    def __init__(
        self,
        number: int,
        claims: tuple[ClaimAsk | HeldClaim, ...] = (),
        problem: str = "",
        extended: Extended | None = None,
    ) -> None:
        self.id = number
        self.open = tuple(one for one in claims if isinstance(one, ClaimAsk))
        self.held = tuple(one for one in claims if isinstance(one, HeldClaim))
        self.problem = problem
        self.extended = extended
        self._claims = claims
        self._lacking: dict[frozenset[str], Ask] = {}

    def lacking(self, resources: frozenset[str]) -> Ask:
        """Return what is asked of nodes that lack these of the ``extended`` resources."""
        if self.extended is None:
            return self
        known = self._lacking.get(resources)
        if known is None:
            place = len(self._claims)
            special = (self.extended.claim(place, resources),) if resources else ()
            known = self._lacking[resources] = Ask(self.id, (*self._claims, *special))
        return known

    @property
    def at_most(self) -> Ask:
        """What is asked of a node that has none of the extended resources itself."""
        return self.lacking(frozenset(self.extended.backed) if self.extended else frozenset())

    @property
    def is_shared(self) -> bool:
        """Whether one of the claims without devices may be used by other pods too."""
        return any(one.shared for one in self.open)


class Asks:
    """The asks of pods, by what their claims are."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._known: dict[tuple[object, ...], Ask] = {}
        self._made = 0

    def of(self, pod: Pod) -> Ask | None:
        """Return what the pod's claims ask for; None when it needs none."""
        key: list[_Part] = []
        for entry in pod.device_claims:
            if entry.claim == "":
                continue
            problem = self._problem(pod, entry.claim, own=entry.own)
            if problem is not None:
                # Pods with the same kind of problem are one class; its text names one of them.
                kind, text = problem
                ask = self._ask((kind,), (), text)
                ask.problem = text
                return ask
            assert entry.claim is not None, "a claim that is not made is a problem"
            name = pod.namespace, entry.claim
            allocation = self._devices.allocation(name)
            claim = self._devices.claims[name]
            if allocation is not None:
                key.append(_held(claim.spec, allocation, unusable=bool(claim.binding_failed)))
            else:
                number = self._devices.spec_number(claim.spec)
                key.append(_Open(len(key), number, None if entry.own else name))
        extended = self._extended(pod) if pod.shape.extended else None
        if extended is not None:
            found = self._of_claims(tuple(key))
            return found if found.problem else self._with(found, extended)
        return self._of_claims(tuple(key)) if key else None

    def _extended(self, pod: Pod) -> Extended | None:
        """Return the pod's extended resources; None when no class backs one of them."""
        backing = self._devices.backed
        asked = [name for name, amount in pod.shape.requests if amount and may_be_devices(name)]
        backed = tuple(name for name in asked if name in backing)
        if not backed:
            return None
        return Extended(
            containers=pod.shape.extended,
            classes=tuple(backing[name] for name in backed),
            backed=backed,
            unbacked=tuple(name for name in asked if name not in backing),
            is_left_over=pod.uid in self._devices.special,
        )

    def _with(self, found: Ask, extended: Extended) -> Ask:
        key = found.id, extended
        known = self._known.get(key)
        if known is None:
            claims: tuple[ClaimAsk | HeldClaim, ...] = (*found.open, *found.held)
            known = self._known[key] = Ask(self._made, claims, extended=extended)
            self._made += 1
        return known

    def _problem(self, pod: Pod, name: str | None, *, own: bool) -> tuple[str, str] | None:
        """Return the kind and the words of what keeps a claim from being looked at."""
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

    def _of_claims(self, key: tuple[_Part, ...]) -> Ask:
        known = self._known.get((self._devices.classes_version, *key))
        if known is not None:
            return known
        claims: list[ClaimAsk | HeldClaim] = []
        for one in key:
            if isinstance(one, HeldClaim):
                claims.append(one)
                continue
            place, number, shared = one
            spec = self._devices.specs[number]
            requests = []
            for request in spec.requests:
                choices = []
                for wanted in request.choices:
                    found = self._devices.classes.get(wanted.device_class)
                    if found is None:
                        label = f"{request.name}/{wanted.name}" if request.is_list else request.name
                        words = f"device class {wanted.device_class} does not exist"
                        return self._ask(key, (), f"request {label}: {words}")
                    choices.append(Choice(wanted, found))
                requests.append(Request(request.name, request.is_list, tuple(choices)))
            claims.append(ClaimAsk(place, tuple(requests), spec.constraints, spec.config, shared))
        return self._ask(key, tuple(claims), "")

    def _ask(
        self, key: tuple[object, ...], claims: tuple[ClaimAsk | HeldClaim, ...], problem: str
    ) -> Ask:
        key = self._devices.classes_version, *key
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _ASKS_MAX:
                self._known.clear()  # numbers are never given twice
            known = self._known[key] = Ask(self._made, claims, problem)
            self._made += 1
        return known


def _held(spec: ClaimSpec, allocation: Allocation, *, unusable: bool) -> HeldClaim:
    given = {one.request for one in allocation.devices}
    score = sum(
        SCORE_OF_FIRST - index
        for request in spec.requests
        if request.is_list
        for index, choice in enumerate(request.choices)
        if f"{request.name}/{choice.name}" in given
    )
    return HeldClaim(allocation.nodes, score, unusable)
