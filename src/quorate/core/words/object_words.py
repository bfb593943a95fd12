"""Messages about the object that describes a gang, and what it names. Called by ``explain``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, PriorityClass
from quorate.core.model.reasons import Reason
from quorate.core.queue.gate import namesake
from quorate.core.words.pod_words import shown_name


class ApiWords(NamedTuple):
    """The names that a person uses: a dialect's object, and the pods' keys for gang and min.

    ``kind`` and ``api_version`` are ``""`` in a dialect without objects, where pods have min in
    ``min_key``; ``min_key`` is ``""`` in the others. ``awaited_under`` is the scheduler name under
    which clients make no pod before we have admitted the object; ``""``: they wait for nobody.
    """

    kind: str
    api_version: str
    member_key: str
    min_key: str = ""
    awaited_under: str = ""


def object_words(
    gang: GangEntry, reason: Reason, cluster: Cluster, api_of: Callable[[str], ApiWords]
) -> tuple[str, str] | None:
    """Return message and hint of a reason that is about the gang's object; None of another one."""
    key = gang.key
    match reason:
        case Reason.GANG_OBJECT_MISSING if not key.is_single:
            return _missing(key, api_of(key.dialect))
        case Reason.GANG_OBJECT_IN_OTHER_API:
            other = namesake(key, cluster) or key
            return _other_api(key.name, api_of(key.dialect), api_of(other.dialect))
        case Reason.GANG_API_NOT_INSTALLED | Reason.GANG_OBJECT_INVALID:
            return _unusable(gang, reason, api_of(key.dialect))
        case Reason.QUEUE_MISSING | Reason.QUEUE_CLOSED:
            return _queue(gang, reason)
        case _:
            return None


def _missing(key: GangKey, api: ApiWords) -> tuple[str, str]:
    where = f"does not exist in namespace {key.namespace}"
    return (
        f"{api.kind} {key.name} ({api.api_version}) {where}",
        f"create it, or remove {api.member_key} from the pods",
    )


def _unusable(gang: GangEntry, reason: Reason, api: ApiWords) -> tuple[str, str]:
    name = gang.key.name
    if reason is Reason.GANG_API_NOT_INSTALLED:
        return (
            f"{api.kind} {name} cannot exist: this cluster does not serve {api.api_version}",
            "install its CRD: quorate manifests --only crds | kubectl apply -f -",
        )
    defect = gang.spec.defect if gang.spec else ""
    return f"{api.kind} {name} cannot be used: {defect}", "fix that field"


def _other_api(name: str, mine: ApiWords, theirs: ApiWords) -> tuple[str, str]:
    return (
        f"the pods' {mine.member_key} names a {mine.kind} of {mine.api_version}, and "
        f"{name} is one of {theirs.api_version}",
        f"use {theirs.member_key}: {name} on the pods, or create the {mine.kind} in "
        f"{mine.api_version}",
    )


def missing_class(gang: GangEntry, cluster: Cluster) -> str:
    """Return the priority class that the object names and that does not exist; "" if there is none.

    While no class is known, as while none can be listed, none is missing.
    """
    wanted = gang.spec.priority_class if gang.spec is not None else ""
    is_known = gang.class_priority is not None or not cluster.priority_classes
    if not wanted or is_known or PriorityClass.__name__ in cluster.unserved:
        return ""
    return wanted


def class_words(name: str) -> str:
    """Warn of a priority class that does not exist. Volcano's scheduler goes on without it, too."""
    return (
        f'spec.priorityClassName is "{shown_name(name)}", and there is no PriorityClass of that '
        "name: the priority of the pods counts; create it, or name another one"
    )


def _queue(gang: GangEntry, reason: Reason) -> tuple[str, str]:
    name = shown_name(gang.spec.queue) if gang.spec is not None else ""
    owner = gang.spec.owner if gang.spec is not None else None
    other = f"name another queue in {owner.title if owner is not None else 'spec.queue'}"
    if reason is Reason.QUEUE_MISSING:
        return f"queue {name} (spec.queue) does not exist", f"create Queue {name}, or {other}"
    return f"queue {name} (spec.queue) is closed", f"open Queue {name}, or {other}"
