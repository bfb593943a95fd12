"""What a dialect is: a value that says all that the others need of one way of naming gangs.

In: the labels of a pod, or the JSON of an object of the API server. Out: ``Membership``,
``GangSpec`` and the patch of a status. Each file of this room makes one ``Dialect``;
``table.DIALECTS`` lists them. Read by ``resolve``, ``shell.watch`` (decode), ``shell.report``
(status), ``shell.apis`` (words) and ``lint``, none of which names a dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from quorate.core.model import GangSpec, Membership
from quorate.core.model.reasons import GangView

INT32_MAX = 2**31 - 1
LIKE, UNLIKE = 2, 0
"""What ``Dialect.likeness`` returns of a key; 1 is the answer of a dialect that takes the rest."""


class Resource(NamedTuple):
    """One kind of object that the API server serves. The core group is ``""``."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """``group/version``, as manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version


class PodFacts(NamedTuple):
    """All that a dialect reads of a pod. ``scheduling_group`` is ``""`` when the pod has none."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scheduling_group: str = ""


class PodKey(NamedTuple):
    """Where a pod says something of its gang; as text it is what warnings call that place.

    ``key`` is the key of a label or an annotation, or the dotted path of a field.
    """

    place: Literal["label", "annotation", "field"]
    key: str

    def __str__(self) -> str:
        return f"{self.place} {self.key}"

    @property
    def path(self) -> tuple[str, ...]:
        """The place as a path into a pod or a pod template."""
        if self.place == "field":
            return tuple(self.key.split("."))
        return "metadata", f"{self.place}s", self.key

    def value(self, facts: PodFacts) -> str | None:
        """Return what the pod says there; None when it says nothing, or for a field."""
        if self.place == "label":
            return facts.labels.get(self.key)
        return facts.annotations.get(self.key) if self.place == "annotation" else None


class StatusPatch(msgspec.Struct, frozen=True):
    """A JSON merge patch that brings an object's status up to date.

    ``subresource`` says to send it to ``/status``; ``fallback_to_main`` that a 404 there means to
    send the same body to the object itself, because its CRD has no subresource.
    """

    body: bytes
    subresource: bool
    fallback_to_main: bool = False


class Malformed(ValueError):  # noqa: N818 - a finding about an object, not about our code
    """An object that cannot be read at all; what is known of its identity is kept."""

    def __init__(self, message: str, *, namespace: str = "", name: str = "", uid: str = "") -> None:
        self.message = message
        self.namespace = namespace
        self.name = name
        self.uid = uid
        where = "/".join(part for part in (namespace, name) if part) or "unknown object"
        super().__init__(f"{where}: {message}")


class Gathering(NamedTuple):
    """How controllers of an API give a gang to an owner's pods: they write its name to each.

    ``annotation`` of the owner says how many have to start together, ``by`` is what people call the
    controllers.
    """

    annotation: str
    by: str


@dataclass(frozen=True, kw_only=True, eq=False)
class GangObject:
    """The object that says min, in the dialects that have one.

    ``decode`` returns what the JSON of the object says; an unusable object has ``defect`` set. It
    raises ``Malformed``: not JSON, or its namespace and name cannot be read.
    ``status`` takes what we know of the gang, the JSON of the object and the time (epoch seconds),
    and returns the patch that makes the status true, or None when it is true already.

    The rest is for ``lint``: ``fields`` of the object's spec, ``min_path`` of the field that says
    min, the least min that its definition asks for, whether an object may say that its pods are no
    gang (then a min of 0 is no mistake), former versions of the API that nobody serves any more,
    and whether Kubernetes' own scheduler places such gangs as gangs.
    ``awaited_under`` is the scheduler name under which clients wait for the status of an object
    before they make its first pod; ``""`` where none do. ``gathering`` says
    how pods under it come to their gang once they exist. ``has_queues`` says that gangs of the API
    go through Queue objects, two of which its own scheduler has to make.
    """

    resource: Resource
    decode: Callable[[bytes], GangSpec]
    status: Callable[[GangView, bytes, float], StatusPatch | None]
    fields: tuple[str, ...]
    min_path: tuple[str, ...]
    min_least: int = 0
    may_be_no_gang: bool = False
    former_versions: tuple[str, ...] = ()
    kubernetes_places_it: bool = False
    awaited_under: str = ""
    gathering: Gathering | None = None
    has_queues: bool = False


def no_warning(facts: PodFacts) -> str:
    """Return ``""``: there is nothing to say of a pod that names no gang."""
    del facts
    return ""


def resembles_none(key: str) -> int:
    """Return that an unknown key was not meant for this dialect."""
    del key
    return UNLIKE


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """One way of naming gangs.

    ``name`` stands in gangs' keys, in the column API of ``quorate gangs`` and in what the Lease
    and bound pods remember of a gang: changing it loses the gangs that are being started.
    ``member_key`` is where a pod names its gang, ``membership`` reads it there: None when the
    pod names no gang in this dialect. ``other_keys`` are further spellings of ``member_key``
    that ``membership`` reads where that one is absent. ``min_key`` is where each pod says min;
    None where an ``object`` does. ``task_key`` is where a pod names its task, if the dialect
    has tasks. ``warning`` says why a pod that has some of the keys is scheduled on its own,
    where that may surprise; ``""``: it may not. ``mistaken_keys`` are keys that people write
    instead of ``member_key``. ``likeness`` tells how much an unknown key, in lower case and
    without signs, looks like this dialect's; the greatest counts, and of equal ones the first
    dialect's.
    """

    name: str
    member_key: PodKey
    membership: Callable[[PodFacts], Membership | None]
    other_keys: tuple[PodKey, ...] = ()
    min_key: PodKey | None = None
    task_key: PodKey | None = None
    warning: Callable[[PodFacts], str] = no_warning
    mistaken_keys: tuple[PodKey, ...] = ()
    likeness: Callable[[str], int] = resembles_none
    object: GangObject | None = None

    @property
    def resource(self) -> Resource | None:
        """The object's resource; None where pods say everything themselves."""
        return self.object.resource if self.object is not None else None

    @property
    def keys(self) -> tuple[PodKey, ...]:
        """The places in which pods say who they are with, and min."""
        of_min = (self.min_key,) if self.min_key else ()
        return (self.member_key, *self.other_keys, *of_min)

    def spelling_note(self, facts: PodFacts) -> str:
        """Return what to say of a pod that uses one of ``other_keys``; ``""`` if it uses none."""
        current = self.member_key.value(facts)
        for key in self.other_keys:
            written = key.value(facts)
            if written and not current:
                return f"{key} is read as {self.member_key}, which is the current key; use that one"
            if written and written != current:
                return f"{key} does not count beside {self.member_key}; remove it"
        return ""
