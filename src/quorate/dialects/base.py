"""What every dialect is: a small pure module that knows one way of naming gangs.

In: the labels of a pod, or the JSON of an object of the API server. Out: ``Membership``,
``GangSpec`` and the patch of a status. Called by ``shell.watch`` (decode) and ``shell.report``
(status); found through ``dialects.DIALECTS`` and ``dialects.resolve``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from quorate.core.model import GangSpec, Membership
from quorate.core.model.reasons import GangView

INT32_MAX = 2**31 - 1


class Resource(NamedTuple):
    """One kind of object that the API server serves. The core group is ``""``."""

    group: str
    version: str
    plural: str
    kind: str


class PodFacts(NamedTuple):
    """All that a dialect reads of a pod. ``scheduling_group`` is ``""`` when the pod has none."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scheduling_group: str = ""


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


class Dialect(Protocol):
    """The functions of a dialect's module."""

    NAME: str
    RESOURCE: Resource | None
    NAMED_BY: str
    """How a person would name the place that a pod names its gang in, for warnings."""

    def membership(self, facts: PodFacts) -> Membership | None:
        """Return the gang that the pod names, or None when it names none in this dialect."""

    def decode(self, raw: bytes) -> GangSpec:
        """Return what the object says; an unusable one has ``defect`` set.

        Raises ``Malformed``: not JSON, or its namespace and name cannot be read.
        """

    def status(self, view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
        """Return the patch that makes the object's status true, or None when it is already."""
