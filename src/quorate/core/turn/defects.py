"""Sets aside the gangs and objects that meet a defect of ours, to try them again later.

In: exceptions, with the stage in which they were raised. Out: incidents to report, and stand-ins
for objects that cannot be taken in. Owned by ``scheduler``. Times are epoch seconds.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.cluster.objects import ObjectId
from quorate.core.model import GangKey, Pod, PodSpec, ResourceClaim, changes, policy
from quorate.core.model.changes import Change
from quorate.core.model.devices import ClaimSpec
from quorate.core.model.reasons import Reason

STAGES = (
    *("observe", "decide", "apply", "verify", "explain", "rebuild"),
    *("watch", "commit", "report"),
)
"""The stages in which a defect may be met: those of the core, then those of the shell."""


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """A defect of ours that was met and contained.

    ``id`` names it in the reason that users read, in the log and in the metric; ``stage`` is one of
    ``STAGES``; ``about`` names the gang or object.
    """

    id: str
    stage: str
    about: str
    error: str
    trace: str
    times: int = 1
    """If more than 1: it stands for that many incidents of its stage, of which this is the last."""


class _Object:
    """A change that could not be taken in, and when to try it again."""

    __slots__ = ("change", "due_s", "failures", "incident", "node", "weaker")

    def __init__(self, change: Change, incident: str) -> None:
        self.change = change
        self.incident = incident
        self.failures = 1
        self.due_s: float | None = None
        """None until the next decision, because changes carry no time."""
        self.node = ""
        """The node that a bare stand-in for a pod names, because the place that the pod had could
        not be carried over; "": the one in the change."""
        self.weaker = 0
        """How many stand-ins met a defect as well: the next one has less content."""

    def stand_in(self) -> Change | None:
        """Return the change to take in instead; None: the object is left out."""
        if not self.weaker or isinstance(self.change, changes.PodGone):
            return stand_in(self.change, self.incident)
        if isinstance(self.change, changes.PodChanged) and self.weaker == 1:
            return changes.PodChanged(_bare(self.change.pod, self.node))
        return None


class Defects:
    """Incidents that were not reported yet, and the objects that are set aside."""

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._made = 0
        self._incidents: list[Incident] = []
        self._untold: dict[str, Incident] = {}
        """By stage, the incidents beyond the bound, as one with a count."""
        self._objects: dict[ObjectId, _Object] = {}

    def __len__(self) -> int:
        """Return how many objects are set aside."""
        return len(self._objects)

    def note(self, stage: str, about: str, error: Exception) -> Incident:
        """Note a defect that was met; return it with its id."""
        self._made += 1
        frames = traceback.extract_tb(error.__traceback__)[-policy.INCIDENT_FRAMES_MAX :]
        trace = " < ".join(f"{f.name}:{f.lineno}" for f in reversed(frames))
        found = Incident(
            id=f"{self._identity}-d{self._made}",
            stage=stage,
            about=about,
            error=f"{type(error).__name__}: {error}"[:200],
            trace=trace,
        )
        if len(self._incidents) < policy.INCIDENTS_KEPT_MAX:
            self._incidents.append(found)
        else:
            before = self._untold.get(stage)
            self._untold[stage] = replace(found, times=before.times + 1 if before else 1)
        return found

    def take_incidents(self) -> list[Incident]:
        """Return the incidents since the last call."""
        incidents = [*self._incidents, *self._untold.values()]
        self._incidents, self._untold = [], {}
        return incidents

    def set_aside(
        self, what: ObjectId, change: Change, error: Exception, *, bare: bool = False
    ) -> None:
        """Set an object aside because a change of it met a defect.

        ``bare``: a pod then only takes its room.
        """
        incident = self.note("observe", " ".join(what), error)
        known = self._objects.get(what)
        if known is None:
            known = self._objects[what] = _Object(change, incident.id)
        else:
            known.change, known.incident, known.due_s = change, incident.id, None
            known.failures += 1
        if bare:
            known.weaker = max(known.weaker, 1)

    def weaken(self, what: ObjectId, error: Exception, node: str = "") -> None:
        """Use a simpler stand-in for an object, because the last one met a defect as well.

        ``node`` is where a pod takes room, if the defect was met when its place was carried over.
        """
        self.note("observe", f"what stands in for {' '.join(what)}", error)
        known = self._objects[what]
        if known.weaker == 1 and node and not known.node:
            known.node = node
        else:
            known.weaker += 1

    def remove(self, what: ObjectId) -> None:
        """Forget an object that was taken in or is gone."""
        self._objects.pop(what, None)

    def has(self, what: ObjectId) -> bool:
        """Whether an object is set aside."""
        return what in self._objects

    def replace(self, what: ObjectId, change: Change) -> Change | None:
        """Note a newer change of an object that is set aside; return the stand-in for it."""
        known = self._objects[what]
        known.change = change
        return known.stand_in()

    def stand_ins(self) -> dict[ObjectId, Change | None]:
        """Return the stand-in of each object that is set aside; None: it is left out."""
        return {what: known.stand_in() for what, known in self._objects.items()}

    def due(self, now_s: float) -> Iterator[tuple[ObjectId, Change]]:
        """Yield the objects to try again now, with their newest changes."""
        for what, known in list(self._objects.items()):
            if known.due_s is None:
                known.due_s = now_s + policy.back_off_s(known.failures)
            elif known.due_s <= now_s:
                yield what, known.change

    def due_s(self) -> float | None:
        """Return the next time at which an object is tried again (epoch seconds), or None."""
        return min((h.due_s for h in self._objects.values() if h.due_s is not None), default=None)


def culprit(error: Exception) -> GangKey | None:
    """Return the gang that was being handled when an exception was raised, or None.

    It is the first gang in a local variable of the innermost function that has one.
    """
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        for value in frame.f_locals.values():
            match value:
                case GangKey():
                    return value
                case GangEntry(key=key) | PodEntry(gang=GangEntry(key=key)):
                    return key
    return None


def stand_in(change: Change, incident: str) -> Change | None:
    """Return a simple version of an object that is safe to take in, or None: it is left out.

    A pod on a node still takes its room there, and a claim keeps its devices. A waiting pod gets
    the defect as its reason to wait.
    """
    words = f"a defect of quorate's own ({incident}) keeps it from being read"
    match change:
        case changes.PodGone() | changes.NodeGone() | changes.GangGone() | changes.ObjectGone():
            return change
        case changes.PodChanged(pod):
            return changes.PodChanged(_plain(pod, incident, words))
        case changes.NodeChanged(node):
            return changes.NodeGone(node.name, words)
        case changes.GangChanged(spec):
            return changes.GangChanged(replace(spec, defect=words, min_resources=()))
        case changes.ObjectChanged(ResourceClaim() as claim):
            return changes.ObjectChanged(replace(claim, spec=ClaimSpec(defect=words)))
        case changes.ObjectChanged(one):
            namespace = getattr(one, "namespace", "")
            return changes.ObjectGone(type(one).__name__, namespace, one.name, words)
        case _:
            return None


def _plain(pod: Pod, incident: str, words: str) -> Pod:
    """Return the pod with only its name, its gang, its node and what it takes there."""
    return Pod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        scheduler=pod.scheduler,
        spec=PodSpec(
            requests=pod.spec.requests,
            scored=pod.spec.scored,
            host_ports=pod.spec.host_ports,
        ),
        created_s=pod.created_s,
        node=pod.node,
        phase=pod.phase,
        priority=pod.priority,
        terminating=pod.terminating,
        membership=pod.membership,
        owner=pod.owner,
        defect=f"InternalError {incident}: {words}",
        defect_reason=Reason.INTERNAL_ERROR,
        attempt=pod.attempt,
        attempt_size=pod.attempt_size,
        bound_for=pod.bound_for,
        started=pod.started,
        refusal=pod.refusal,
    )


def _bare(pod: Pod, node: str) -> Pod:
    """Return a pod without scheduler and gang that takes the same room on its node.

    ``node`` is its node if the pod itself names none; "": the place that it had is carried over.
    """
    return Pod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        scheduler="",
        spec=PodSpec(requests=pod.spec.requests, scored=pod.spec.scored),
        node=pod.node or node,
        phase=pod.phase,
        terminating=pod.terminating,
    )
