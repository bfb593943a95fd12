"""Encodes names as integers: resources as columns, pod specs as classes.

In: the resources that nodes list, the specs and profiles of pods. Out: columns, and pod classes
with their requests by column, so that planning works on integer arrays. Called by ``cluster``.
Numbers follow the order of arrival: the same changes give the same numbers. Only resources that a
node lists have a column, so no pod's request can make an array larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING

from msgspec import structs

from quorate.core.cluster.devices.requests import DeviceNeeds
from quorate.core.model import PodSpec, SpreadConstraint, policy
from quorate.core.model.profile import GANGS, Profile
from quorate.core.model.selectors import Toleration

if TYPE_CHECKING:
    from quorate.core.cluster.storage.needs import VolumeNeeds

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
_Variant = tuple[
    int, frozenset[int], tuple[SpreadConstraint, ...], "VolumeNeeds | None", DeviceNeeds | None, int
]
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
Demands = tuple[tuple[int, int], ...]
"""Column and amount, amounts > 0."""


class Resources:
    """Resource names and their columns: ``FIRST_RESOURCES``, and those that a node lists.

    When no node lists a resource any longer, its column is free: ``names`` has "" there, and the
    next new name takes it.
    """

    def __init__(self) -> None:
        self.names: list[str] = list(FIRST_RESOURCES)
        self.columns: dict[str, int] = {name: index for index, name in enumerate(self.names)}
        self.version = 0
        """Grows whenever pod classes have to be encoded again."""
        self._nodes: Counter[str] = Counter()

    def add(self, names: Iterable[str]) -> list[str]:
        """Count one more node that lists each of the names; return the new names."""
        new = []
        for name in names:
            self._nodes[name] += 1
            if name in self.columns:
                continue
            if len(self.columns) < len(self.names):
                column = self.names.index("")
                self.names[column] = name
            else:
                column = len(self.names)
                self.names.append(name)
            self.columns[name] = column
            new.append(name)
        self.version += bool(new)
        return new

    def drop(self, names: Iterable[str]) -> list[tuple[str, int]]:
        """Count one node fewer for each of the names; return the dropped names with their columns.

        These columns are free: the caller has to set them to zero.
        """
        gone = []
        for name in names:
            self._nodes[name] -= 1
            if self._nodes[name]:
                continue
            del self._nodes[name]
            if name not in FIRST_RESOURCES:
                column = self.columns.pop(name)
                self.names[column] = ""
                gone.append((name, column))
        while not self.names[-1]:
            self.names.pop()
        self.version += bool(gone)
        return gone

    def renumber(self) -> list[int] | None:
        """Remove free columns if there are many; return the old columns in their new order.

        None: nothing was removed.
        """
        unused = len(self.names) - len(self.columns)
        if unused <= len(self.columns) + policy.COLUMNS_UNUSED_MAX:
            return None
        kept = [column for column, name in enumerate(self.names) if name]
        self.names = [self.names[column] for column in kept]
        self.columns = {name: index for index, name in enumerate(self.names)}
        self.version += 1
        return kept


class PodClass:
    """Pods that the scheduler treats alike.

    ``base`` is the number of the spec and profile. ``matched`` are the numbers of the selectors
    that match the pods; classes of one spec may differ in them. ``spread`` are the pods' own
    constraints, or else those of ``labels.alike``, for which nodes need no label. ``attributes`` is
    all that rules of kind NODE read: classes with equal attributes pass them on the same nodes.
    ``volume_needs`` and ``device_needs`` are what the pods' volumes and device claims need of a
    node; None: they have none. ``task`` is the number of their task in a gang with a minimum for
    each task, else 0. Demands are encoded at their first use after ``Resources.version`` has
    changed.
    """

    __slots__ = (
        "_columns",
        "_demands",
        "_missing",
        "_resources",
        "_version",
        "attributes",
        "base",
        "device_needs",
        "id",
        "matched",
        "profile",
        "spec",
        "spread",
        "task",
        "volume_needs",
    )

    def __init__(
        self, class_id: int, spec: PodSpec, profile: Profile, resources: Resources
    ) -> None:
        self.volume_needs: VolumeNeeds | None = None
        self.id = class_id
        self.base = class_id
        self.spec = spec
        self.profile = profile
        self.attributes = _attributes(spec)
        self.matched: frozenset[int] = frozenset()
        self.spread = spec.spread
        self.device_needs: DeviceNeeds | None = None
        self.task = 0
        self._resources = resources
        self._encode()

    @property
    def demands(self) -> Demands:
        """Column and amount of each resource that one pod requests and that has a column."""
        if self._version != self._resources.version:
            self._encode()
        return self._demands

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of ``demands``."""
        if self._version != self._resources.version:
            self._encode()
        return self._columns

    @property
    def missing(self) -> tuple[tuple[str, int], ...]:
        """Name and amount of requests that no node lists: if there are any, the pod fits nowhere.

        Resources that device classes back are left out: devices can satisfy them.
        """
        if self._version != self._resources.version:
            self._encode()
        return self._missing

    @property
    def asked(self) -> tuple[tuple[str, int], ...]:
        """Name and amount of all that one pod requests, with or without a column; amounts > 0."""
        return (*(one for one in self.spec.requests if one[1] > 0), ("pods", 1))

    def _encode(self) -> None:
        columns, asked = self._resources.columns, self.asked
        self._version = self._resources.version
        self._demands = tuple((columns[name], n) for name, n in asked if name in columns)
        self._columns = tuple(column for column, _ in self._demands)
        self._missing = tuple(n for n in asked if n[0] not in columns)

    def variant(
        self,
        class_id: int,
        matched: frozenset[int],
        alike: tuple[SpreadConstraint, ...],
    ) -> PodClass:
        """Return a class with this spec for pods that the selectors ``matched`` match.

        ``alike`` spreads pods without constraints of their own (``labels.alike``).
        """
        found = PodClass(class_id, self.spec, self.profile, self._resources)
        found.base, found.matched, found.attributes = self.base, matched, self.attributes
        found.spread = self.spread or alike
        return found

    def tolerating(self, toleration: Toleration) -> PodClass:
        """Return the class as it would be with one toleration more, with a number of its own."""
        tolerations = (*self.spec.tolerations, toleration)
        return self.with_attributes(structs.replace(self.spec, tolerations=tolerations))

    def with_attributes(self, spec: PodSpec) -> PodClass:
        """Return the class as it would be with what ``spec`` asks of nodes, likewise."""
        found = copy(self)
        found.id = found.base = -1 - self.id
        found.spec, found.attributes = spec, _attributes(spec)
        return found


class PodClasses:
    """The classes of pod specs in use, and their variants by selectors, needs and task."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._by_spec: dict[tuple[PodSpec, Profile], PodClass] = {}
        self._by_selectors: dict[_Variant, PodClass] = {}
        """Once it is half full: in the order of last use, the oldest first."""
        self._variants_of: dict[int, dict[_Variant, None]] = {}
        self._held: Counter[int] = Counter()
        self._asking: Counter[str] = Counter()
        """The number of classes that request a resource, by name; without ``FIRST_RESOURCES``."""
        self._having: Counter[tuple[object, ...]] = Counter()
        """The number of classes with the same attributes."""
        self.given_back = 0
        """How many times the last class with some attributes was forgotten."""
        self._made = 0
        self.by_id: dict[int, PodClass] = {}
        """The classes of specs and profiles, without variants."""

    def of(self, spec: PodSpec, profile: Profile = GANGS) -> PodClass:
        """Return the class of ``spec`` under a profile; a new spec gets a new class.

        The class is forgotten when each ``take`` and ``acquire`` of it was released.
        """
        found = self._by_spec.get((spec, profile))
        if found is None:
            found = PodClass(self._made, spec, profile, self._resources)
            self._made += 1  # a number is never reused
            self._by_spec[spec, profile] = self.by_id[found.id] = found
            self._asking.update(_extended(found))
            self._having[found.attributes] += 1
        return found

    def take(self, spec: PodSpec, profile: Profile = GANGS) -> PodClass:
        """Return the class of one more pod, and count one use of it until ``release``."""
        found = self.of(spec, profile)
        self._held[found.base] += 1
        return found

    def acquire(self, pod_class: PodClass) -> None:
        """Count one more use of a class that is in use."""
        self._held[pod_class.base] += 1

    def release(self, pod_class: PodClass) -> None:
        """Take back one use; the last one forgets the class and its variants."""
        base = pod_class.base
        self._held[base] -= 1
        if self._held[base] > 0:
            return
        del self._held[base]
        for variant in self._variants_of.pop(base, ()):
            del self._by_selectors[variant]
        found = self.by_id.pop(base)
        del self._by_spec[found.spec, found.profile]
        self._having[found.attributes] -= 1
        if not self._having[found.attributes]:
            del self._having[found.attributes]
            self.given_back += 1
        self._asking.subtract(names := _extended(found))
        for name in names:
            if not self._asking[name]:
                del self._asking[name]

    def has_attributes(self, attributes: object) -> bool:
        """Whether a class with these attributes is in use."""
        return attributes in self._having

    def is_asked_for(self, name: str) -> bool:
        """Whether a class in use requests a resource; ``name`` is none of ``FIRST_RESOURCES``."""
        return name in self._asking

    def variant(
        self,
        base: PodClass,
        matched: frozenset[int],
        alike: tuple[SpreadConstraint, ...] = (),
        volume_needs: VolumeNeeds | None = None,
        device_needs: DeviceNeeds | None = None,
        task: int = 0,
    ) -> PodClass:
        """Return the variant of a class for these selectors, needs and task; ``base`` if all empty.

        ``matched`` and ``alike`` as in ``PodClass.variant``; the others as in ``PodClass``.
        When there are too many variants, the least recently used one is forgotten.
        """
        if not (matched or alike or volume_needs is not None or device_needs is not None or task):
            return base
        variant = base.id, matched, alike, volume_needs, device_needs, task
        known = self._by_selectors
        found = known.get(variant)
        if found is None:
            found = base.variant(self._made, matched, alike)
            found.volume_needs, found.device_needs, found.task = volume_needs, device_needs, task
            self._made += 1
            known[variant] = found
            self._variants_of.setdefault(base.id, {})[variant] = None
            while len(known) > policy.CLASS_VARIANTS_KEPT_MAX:
                self._forget_oldest()
        elif 2 * len(known) > policy.CLASS_VARIANTS_KEPT_MAX:
            known[variant] = known.pop(variant)
        return found

    def _forget_oldest(self) -> None:
        variant = next(iter(self._by_selectors))
        del self._by_selectors[variant]
        others = self._variants_of[variant[0]]
        del others[variant]
        if not others:
            del self._variants_of[variant[0]]


def _extended(pod_class: PodClass) -> list[str]:
    return [name for name, _ in pod_class.asked if name not in FIRST_RESOURCES]


def _attributes(spec: PodSpec) -> tuple[object, ...]:
    return (
        spec.node_selector,
        spec.required_terms,
        spec.tolerations,
        spec.node_features,
    )
