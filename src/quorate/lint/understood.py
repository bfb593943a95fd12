"""What lint understood: the gangs that manifests make, with their pods and GPUs.

In: ``Manifests``. Out: values that ``quorate lint`` prints. Nothing here finds fault.
"""

from __future__ import annotations

import msgspec

from quorate.lint.finding import Subject
from quorate.lint.manifests import Gang, Manifests
from quorate.lint.objects import mapping, text, value_at
from quorate.lint.pod_sources import PodSource
from quorate.lint.workloads.promise import total
from quorate.lint.workloads.trainer import RUNTIMES

_GPU = ("gpu", "mig-")
"""How names of resources that are GPUs begin, after their vendor's domain."""


class GangSeen(msgspec.Struct, frozen=True, rename="camel"):
    """A gang, or ``gangs`` of them that are alike; numbers are those of one.

    None means that the files do not say it. ``made_by`` are the objects that make its pods,
    ``object`` is the one that says min, ``operator`` who makes the PodGroup where no file has it.
    ``queue`` is the one that the gang starts from, which has to exist; "" where none is named.
    """

    namespace: str
    name: str
    api: str
    gangs: int | None
    min: int | None
    pods: int | None
    gpus: int | None
    object: Subject
    made_by: tuple[Subject, ...]
    scheduler_names: tuple[str, ...]
    operator: str
    queue: str


class PodsSeen(msgspec.Struct, frozen=True, rename="camel"):
    """Pods of one object that belong to no gang."""

    namespace: str
    object: Subject
    pods: int | None
    gpus: int | None
    scheduler_names: tuple[str, ...]


class NotSeen(msgspec.Struct, frozen=True):
    """An object whose pods are not known, and why."""

    object: Subject
    why: str


def not_seen(manifests: Manifests) -> tuple[NotSeen, ...]:
    """Return the TrainJobs whose runtime is in none of the files."""
    in_gangs = {id(gang.promise.object) for gang in manifests.gangs if gang.promise is not None}
    runtimes = {one.name for one in manifests.objects if one.kind in RUNTIMES}
    found = []
    for one in manifests.objects:
        name = text(mapping(one.spec().get("runtimeRef")).get("name"))
        if one.kind == "TrainJob" and id(one) not in in_gangs and name not in runtimes:
            found.append(NotSeen(one.subject, f"its runtime {name} is in none of the files"))
    return tuple(found)


def gangs_of(manifests: Manifests) -> tuple[GangSeen, ...]:
    """Return the gangs, in the order of the files; those of operators last."""
    return tuple(_seen(gang) for gang in manifests.gangs)


def others_of(manifests: Manifests) -> tuple[PodsSeen, ...]:
    """Return the objects with pods of no gang, and those pods, in the order of the files."""
    in_gangs = {(id(one.object), one.path) for gang in manifests.gangs for one in gang.sources}
    found: dict[int, list[PodSource]] = {}
    for source in manifests.sources:
        if (id(source.object), source.path) not in in_gangs:
            found.setdefault(id(source.object), []).append(source)
    return tuple(
        PodsSeen(
            sources[0].namespace,
            sources[0].object.subject,
            total(tuple(sources)),
            _gpus(sources),
            _names(sources),
        )
        for sources in found.values()
    )


def _seen(gang: Gang) -> GangSeen:
    promise = gang.promise
    says = gang.group.object if gang.group else promise.object if promise else None
    makers = [promise.object] if promise else [one.object for one in gang.sources]
    made_by = dict.fromkeys(one.subject for one in makers)
    return GangSeen(
        namespace=gang.key.namespace,
        name=gang.key.name,
        api=gang.key.dialect,
        gangs=promise.times if promise else 1,
        min=gang.min_count,
        pods=gang.count,
        gpus=_gpus(gang.sources),
        object=says.subject if says else gang.sources[0].object.subject,
        made_by=tuple(made_by),
        scheduler_names=_schedulers(gang),
        operator=promise.maker if promise and gang.group is None else "",
        queue=_queue(gang),
    )


def _queue(gang: Gang) -> str:
    if gang.group is not None:
        return gang.group.spec.queue
    promise = gang.promise
    return text(value_at(promise.object.value, promise.queue)) if promise else ""


def _schedulers(gang: Gang) -> tuple[str, ...]:
    """Return the schedulers that the pods will name, as far as the files say it."""
    promise = gang.promise
    if promise is None or not promise.names_scheduler:
        return _names(gang.sources)
    if promise.names_scheduler == "always":
        return (promise.scheduler,) if promise.scheduler else ()
    return _names([one for one in gang.sources if one.spec.get("schedulerName")])


def _gpus(sources: list[PodSource]) -> int | None:
    """Return how many GPUs all pods ask for; None when their number is not known."""
    count = 0
    for source in sources:
        if source.count is None:
            return None
        asked = sum(amount for name, amount in source.pod.spec.requests if _is_gpu(name))
        count += asked * source.count
    return count


def _is_gpu(resource: str) -> bool:
    return resource.rpartition("/")[2].startswith(_GPU)


def _names(sources: list[PodSource]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.scheduler for one in sources))
