"""Everything that can enter the core. A change is news, already true; the core never asks for more.

Made by ``shell.watch`` (objects), ``shell.commit`` (outcomes of binds and evictions),
``shell.report`` (facts about owners) and ``shell.app`` (the journal of the leader before us).
Tagged structs, so that a recording of them can be replayed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from quorate.core.model import (
    DeviceClass,
    GangKey,
    GangSpec,
    Meant,
    Namespace,
    Node,
    Owner,
    Pod,
    PriorityClass,
    Queue,
    ResourceClaim,
    ResourceSlice,
)
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.journal import Journal
from quorate.core.model.storage import AnyStorage

AnyDevices = ResourceSlice | DeviceClass | ResourceClaim
AnyObject = Namespace | Queue | PriorityClass | PodDisruptionBudget | AnyStorage | AnyDevices
"""What is looked up besides pods, nodes and gangs: a tagged union, one struct for each kind."""


class Change(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of all changes."""


class NodeChanged(Change, frozen=True):
    """A node appeared or is different."""

    node: Node


class NodeGone(Change, frozen=True):
    """A node was deleted, or (``defect``: which field, and what is wrong) cannot be read."""

    name: str
    defect: str = ""


class PodChanged(Change, frozen=True):
    """A pod appeared or is different."""

    pod: Pod


class PodGone(Change, frozen=True):
    """A pod was deleted."""

    uid: str


class GangChanged(Change, frozen=True):
    """The object that describes a gang appeared or is different."""

    spec: GangSpec


class GangGone(Change, frozen=True):
    """The object that describes a gang was deleted."""

    key: GangKey


class DialectServed(Change, frozen=True):
    """Whether the API server serves a dialect's objects (its CRD is installed).

    ``problem`` says that they are not to be had though they may exist, as in ``KindServed``.
    """

    dialect: str
    served: bool
    problem: str = ""
    hint: str = ""


class KindProblem(NamedTuple):
    """Why a kind is not to be had, and what a person can do about it."""

    problem: str
    hint: str


class KindServed(Change, frozen=True):
    """Whether a kind of objects is to be had; ``kind`` is as in ``ObjectGone``.

    ``problem`` says why it is not, "" that it is; ``hint`` what a person can do.
    """

    kind: str
    problem: str = ""
    hint: str = ""


class Brake(StrEnum):
    """A field by which an owner makes fewer pods at a time than it is told to."""

    NONE = ""
    SUSPENDED = "suspended"
    """``suspend`` of a Job: it makes none."""
    IN_ORDER = "in order"
    """``podManagementPolicy: OrderedReady`` of a StatefulSet: it makes a pod when those before it
    are ready."""


class OwnerChanged(Change, frozen=True):
    """How many pods an owner makes; None when it does not exist or cannot say.

    ``cron_job`` is the name of the CronJob that made it, "" if none did; None: that is not known.
    ``meant`` is the gang that it names where its pods' template should, ``remedy`` what to write.
    ``completions`` are a Job's, more than which it never makes. ``refused`` are the API server's
    words when it has refused a pod of this owner, "" if none is missing or it has said nothing.
    ``first`` is how many pods it makes where one more of their gang is made when these are ready,
    as an MPIJob's launcher may be, else 0; None: it may not be read. ``gathered`` says how somebody
    else gathers its pods in a gang, "" if nobody does: see ``Pod.gathered_by``.
    """

    namespace: str
    owner: Owner
    replicas: int | None
    cron_job: str | None = ""
    meant: Meant | None = None
    remedy: str = ""
    brake: Brake = Brake.NONE
    completions: int | None = None
    refused: str = ""
    first: int | None = 0
    gathered: str = ""


class ObjectChanged(Change, frozen=True):
    """An object that rules look up appeared or is different."""

    object: AnyObject


class ObjectGone(Change, frozen=True):
    """An object that rules look up was deleted; ``kind`` is the name of its struct.

    ``defect`` says that it is there and cannot be read: the field, and what is wrong with it.
    """

    kind: str
    namespace: str
    name: str
    defect: str = ""


class BindFailure(StrEnum):
    """Why a bind did not happen, as far as the core acts differently on it."""

    GONE = "gone"
    """The pod, or the pod with this uid, does not exist any more."""
    ELSEWHERE = "elsewhere"
    """The pod is bound to another node already: the change's ``node`` is that one."""
    REFUSED = "refused"
    """The API server said no (admission, RBAC, gates, terminating)."""
    TIMEOUT = "timeout"
    """No answer within the attempt's time, and the pod is not bound."""
    NOT_SENT = "not sent"
    """It would have made the gang quorate, and another member failed or went: it was held back."""
    UNPREPARED = "unprepared"
    """A claim of the gang could not be bound, so that no bind of it was sent."""
    UNVERIFIED = "unverified"
    """The plan did not pass verification against the newest state: nothing was sent."""


class PodBound(Change, frozen=True):
    """The API server accepted our Binding."""

    uid: str
    node: str


class BindFailed(Change, frozen=True):
    """Our Binding did not happen; ``message`` is the API server's."""

    uid: str
    node: str
    failure: BindFailure
    message: str = ""


class PreemptionFailed(Change, frozen=True):
    """Victims of a preemption could not be deleted; ``uid`` is the pod that they make room for."""

    uid: str
    victims: tuple[str, ...]
    message: str = ""


class PrepareFailed(Change, frozen=True):
    """A write that had to come before a gang's binds was refused; ``message`` is the server's."""

    key: GangKey
    attempt: str
    node: str
    message: str


class Undone(Change, frozen=True):
    """What was written for a gang's attempt has been taken back, as far as that was possible."""

    key: GangKey


class ClaimWritten(Change, frozen=True):
    """We wrote devices into a claim, and this is how it is now: the watch tells of it later."""

    claim: ResourceClaim


class JournalFound(Change, frozen=True):
    """We lead now: what the leader before us wrote down of its attempts."""

    journal: Journal


AnyChange = (
    NodeChanged
    | NodeGone
    | PodChanged
    | PodGone
    | GangChanged
    | GangGone
    | DialectServed
    | KindServed
    | OwnerChanged
    | ObjectChanged
    | ObjectGone
    | PodBound
    | BindFailed
    | PreemptionFailed
    | PrepareFailed
    | Undone
    | ClaimWritten
    | JournalFound
)
