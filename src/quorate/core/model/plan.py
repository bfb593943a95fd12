"""A plan: what to do, as data. Made by ``decide``, carried out by ``shell.commit``."""

from __future__ import annotations

import msgspec

from quorate.core.model import Allocation, GangKey
from quorate.core.model.storage import ClaimKey


def attempt_id(identity: str, number: int) -> str:
    """Return how an attempt is called on pods and in the journal."""
    return f"{identity}-{number}"


class Give(msgspec.Struct, frozen=True, omit_defaults=True):
    """Have a claim hold these devices and reserve it for the pod, before its bind.

    The claim may have them already, or none yet.
    """

    namespace: str
    claim: str
    uid: str
    allocation: Allocation


class Prepare(msgspec.Struct, frozen=True, omit_defaults=True):
    """Have a claim bound, for a pod that goes to ``node``, before any pod of its gang is bound.

    With ``volume`` that volume is kept for the claim (``version`` is the volume's, and ``marks``
    says that the keeping is ours, not a user's); without it the claim's provisioner is told the
    node. ``written`` means that it is so already: only the binding has to be awaited.
    """

    namespace: str
    claim: str
    uid: str
    node: str
    volume: str = ""
    version: str = ""
    marks: bool = True
    written: bool = False

    @property
    def key(self) -> ClaimKey:
        """The claim."""
        return ClaimKey(self.namespace, self.claim)


class Bind(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bind this pod (with this uid) to this node.

    ``prepare`` comes first: volumes of the whole gang; then ``gives``: its devices.
    """

    uid: str
    namespace: str
    name: str
    node: str
    prepare: tuple[Prepare, ...] = ()
    gives: tuple[Give, ...] = ()


class GangBinds(msgspec.Struct, frozen=True, kw_only=True):
    """The binds of one attempt of one gang: all are sent, and none may be left out.

    ``attempt`` and ``size`` go into the Bindings' annotations; ``deadline_s`` is when retries end.
    The ``first`` binds are sent at once. The rest make the gang quorate, so they wait until all
    earlier ones have succeeded, and mark their pods as started: so another leader can tell.
    Of a gang that has ``started`` every bind is sent at once, and marks its pod.
    """

    key: GangKey
    attempt: str
    size: int
    deadline_s: float
    binds: tuple[Bind, ...]
    first: int = 0
    started: bool = False


class Eviction(msgspec.Struct, frozen=True):
    """Evict this bound pod: its gang did not come together within the attempt's time."""

    uid: str
    namespace: str
    name: str
    key: GangKey
    message: str


class Victim(msgspec.Struct, frozen=True):
    """A pod to delete, so that one of higher priority fits. ``gang_hit`` names its gang, if any."""

    uid: str
    namespace: str
    name: str
    gang_hit: str = ""


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """Promise a waiting pod room on ``node`` and delete the victims there.

    ``node`` "" takes an earlier promise back. ``displaced`` are pods of lower priority that were
    promised room on the node, and are not any more: ``(namespace, name)``.
    """

    key: GangKey
    uid: str
    namespace: str
    name: str
    scheduler: str
    node: str
    victims: tuple[Victim, ...] = ()
    displaced: tuple[tuple[str, str], ...] = ()


class Undo(msgspec.Struct, frozen=True):
    """Take back what was prepared, where claims are still unbound; the gang waits for it."""

    key: GangKey
    prepared: tuple[Prepare, ...]


class TakeBack(msgspec.Struct, frozen=True):
    """Take a claim's devices back: the pod that it is reserved for waits, and cannot use them.

    It is done only while the claim is as it was in ``version``.
    """

    namespace: str
    claim: str
    uid: str
    version: str
    pod_uid: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one cycle decided.

    ``preparing`` are gangs whose claims must be bound first: no bind of theirs is sent yet. They
    come again in ``gangs`` once all claims are bound, or in ``undo``.

    ``touched`` are the gangs whose explanation or status may differ from before; the reporter asks
    for them when it gets to it. ``wake_at_s`` is the next instant at which time alone changes
    something (an attempt's end, a back-off's end); None when only news can.
    """

    gangs: tuple[GangBinds, ...] = ()
    preparing: tuple[GangBinds, ...] = ()
    undo: tuple[Undo, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    take_backs: tuple[TakeBack, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    touched: tuple[GangKey, ...] = ()
    wake_at_s: float | None = None
