"""All that the files say, put together: pods, PodGroups, and which belong to which gang.

In: objects and the options of the call. Out: ``Manifests``, which the rules read. A gang's key is
the dialects' own, so lint and scheduler agree on who belongs together.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from quorate.core.model import GangKey, GangSpec
from quorate.core.model.policy import DEFAULT_SCHEDULER_NAMES
from quorate.dialects import DIALECTS, Dialect, GangObject, Malformed, by_name
from quorate.lint.objects import KubeObject, mapping
from quorate.lint.pod_sources import PodSource, pod_sources
from quorate.lint.pod_values import with_overhead
from quorate.lint.workloads.promise import Promise
from quorate.lint.workloads.table import promises_of

Json = dict[str, Any]

GANG_SCHEDULERS = (
    *DEFAULT_SCHEDULER_NAMES,
    "scheduler-plugins-scheduler",
    "scheduler-plugins",
    "volcano",
)
"""Scheduler names that people run gang schedulers under."""
_BY_API_VERSION = {one.resource.api_version: one for one in DIALECTS if one.resource}


class Options(NamedTuple):
    """The options of a call. ``nodes`` are the shape's nodes as JSON; None without ``--shape``.

    ``namespace`` is that of objects that name none; ``namespace_given`` says whether the caller
    chose it. ``scheduler_names`` are those that place gangs; empty means the well-known ones.
    """

    namespace: str = "default"
    namespace_given: bool = False
    scheduler_names: tuple[str, ...] = ()
    nodes: Sequence[Json] | None = None
    shape_name: str = ""

    @property
    def gang_schedulers(self) -> tuple[str, ...]:
        """The names under which a gang is placed as a gang."""
        return self.scheduler_names or GANG_SCHEDULERS


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A PodGroup of a known API, with what its dialect made of it."""

    object: KubeObject
    dialect: Dialect
    api: GangObject
    spec: GangSpec

    @property
    def title(self) -> str:
        """The object as a sentence names it."""
        return self.object.subject.short


@dataclass(slots=True, eq=False)
class Gang:
    """Pods that name one gang, and the PodGroup that they mean.

    ``group`` is the one that they name rightly; ``near`` is one of that name in another API or
    another namespace, which they miss. ``promise`` is set where an operator will make the PodGroup
    and write its name into the pods.
    """

    key: GangKey
    sources: list[PodSource] = field(default_factory=list)
    group: Group | None = None
    near: Group | None = None
    promise: Promise | None = None

    @property
    def min_count(self) -> int | None:
        """How many members must start together; None when the files do not say (rightly)."""
        if self.group is not None:
            return None if self.group.spec.defect else self.group.spec.min_count
        if self.promise is not None:
            return self.promise.min_count
        named = (one.resolution.membership for one in self.sources)
        counts = {one.min_count for one in named if one is not None}
        return counts.pop() if len(counts) == 1 else None

    @property
    def count(self) -> int | None:
        """How many pods the files make; None when one of them does not say."""
        total = 0
        for source in self.sources:
            if source.count is None:
                return None
            total += source.count
        return total

    @property
    def title(self) -> str:
        """The gang as a sentence names it."""
        if self.group is not None:
            return self.group.title
        return self.promise.object.subject.short if self.promise else f"gang {self.key.name}"


class Manifests:
    """What rules look at. All lists are in the order of the files."""

    def __init__(self, objects: Iterable[KubeObject], options: Options) -> None:
        self.objects = _admitted(list(objects))
        self.options = options
        self.sources: list[PodSource] = []
        self.groups: list[Group] = []
        self.strange_groups: list[KubeObject] = []
        """PodGroups of APIs that no dialect knows."""
        for one in self.objects:
            self.sources += pod_sources(one, options.namespace)
            if one.kind == "PodGroup":
                self._take_group(one)
        self.promises = promises_of(
            self.objects, self.sources, options.namespace, options.gang_schedulers
        )
        self.gangs = self._gangs()

    def where(self, one: KubeObject) -> str:
        """Return the namespace that an object will be in."""
        return one.namespace or self.options.namespace

    def groups_without_pods(self) -> list[Group]:
        """Return the PodGroups that no pod of the files names, not even wrongly."""
        meant = [gang.group or gang.near for gang in self.gangs]
        return [group for group in self.groups if group not in meant]

    def _take_group(self, one: KubeObject) -> None:
        dialect = dialect_of(one.api_version)
        if dialect is None or dialect.object is None:
            self.strange_groups.append(one)
        else:
            key = GangKey(self.where(one), dialect.name, one.name)
            spec = _decoded(dialect.object.decode, one, key)
            self.groups.append(Group(one, dialect, dialect.object, spec))

    def _gangs(self) -> list[Gang]:
        gangs: dict[GangKey, Gang] = {}
        by_key = {group.spec.key: group for group in reversed(self.groups)}
        for source in self.sources:
            membership = source.resolution.membership
            if membership is not None:
                gang = gangs.setdefault(membership.key, Gang(membership.key))
                gang.sources.append(source)
                gang.group = by_key.get(membership.key)
        for promise in self.promises:
            dialect = _BY_API_VERSION[promise.api_version].name
            key = GangKey(self.where(promise.object), dialect, promise.name)
            gang = gangs.setdefault(key, Gang(key))
            gang.sources += promise.sources
            gang.group, gang.promise = by_key.get(key), promise
        for gang in gangs.values():
            if gang.group is None and gang.promise is None:
                gang.near = self._near(gang.key)
        return list(gangs.values())

    def _near(self, key: GangKey) -> Group | None:
        """Return the PodGroup that was likely meant: another API, another namespace, or a typo."""
        named = [group for group in self.groups if group.spec.key.name == key.name]
        for group in named:
            if group.spec.key.namespace == key.namespace:
                return group
        dialect = by_name(key.dialect)
        if dialect is not None and dialect.object is None:
            return None
        for group in named:
            if group.spec.key.dialect == key.dialect:
                return group
        there = {
            group.spec.key.name: group
            for group in self.groups
            if group.spec.key[:2] == key[:2] and group.spec.key.name != key.name
        }
        close = difflib.get_close_matches(key.name, there, n=1, cutoff=0.8)
        return there[close[0]] if close else None


def _admitted(objects: list[KubeObject]) -> list[KubeObject]:
    """Return the objects with what RuntimeClasses among them add to pods."""
    overheads = {
        one.name: mapping(mapping(one.value.get("overhead")).get("podFixed"))
        for one in objects
        if one.kind == "RuntimeClass" and one.group == "node.k8s.io"
    }
    if not overheads:
        return objects
    return [replace(one, value=with_overhead(one.value, overheads)) for one in objects]


def dialect_of(api_version: str) -> Dialect | None:
    """Return the dialect whose PodGroup has this apiVersion."""
    return _BY_API_VERSION.get(api_version)


def _decoded(decode: Callable[[bytes], GangSpec], one: KubeObject, key: GangKey) -> GangSpec:
    """Return what the scheduler would read, with its defect if it cannot be used."""
    metadata = {"name": one.name, "namespace": key.namespace}
    spec = one.value.get("spec")
    try:
        return decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))
    except Malformed as error:
        return GangSpec(key=key, min_count=1, defect=error.message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return GangSpec(key=key, min_count=1, defect=f"spec: {error}")


def dialect_of_gang(gang: Gang) -> Dialect | None:
    """Return the dialect in which the gang's pods name it."""
    return by_name(gang.key.dialect)


def spec_of(group: Group) -> Json:
    """Return a PodGroup's spec; empty when it is not an object."""
    return mapping(group.object.value.get("spec"))
