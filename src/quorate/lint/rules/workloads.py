"""Rules about objects that make pods: pods of no gang, and what operators make of min."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.core.model import DEFAULT_SCHEDULER
from quorate.core.words.counting import counted
from quorate.dialects import DIALECTS
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding
from quorate.lint.manifests import Gang, Manifests
from quorate.lint.objects import KubeObject, mapping, path_text, value_at
from quorate.lint.pod_sources import PodSource
from quorate.lint.rules.gangs import in_all_templates, min_place
from quorate.lint.rules.stages import is_in_order, stage_of, waits
from quorate.lint.workloads.kubeflow import MIN_AVAILABLE
from quorate.lint.workloads.promise import Promise, total, whole
from quorate.lint.workloads.ray import GANG_LABEL
from quorate.lint.workloads.trainer import RUNTIMES

_NEVER_GANGS = ("Pod", "PodTemplate", "DaemonSet")
_RAY = "ray.io"
_POLICY = "podManagementPolicy"
_KEYS = tuple(key for dialect in DIALECTS for key in dialect.keys)
_WITHOUT_OBJECT = next((one.member_key, one.min_key) for one in DIALECTS if one.min_key)
"""The labels that make a gang without an object."""


def pods_without_gang(manifests: Manifests) -> Iterator[Finding]:
    """Several pods of one object that a gang scheduler places, and that belong to no gang."""
    promised = {id(promise.object) for promise in manifests.promises}
    with_runtime = {id(source.object) for gang in manifests.gangs for source in gang.sources}
    known = set(manifests.options.gang_schedulers) - {DEFAULT_SCHEDULER}
    of_object: dict[int, list[PodSource]] = {}
    for source in manifests.sources:
        of_object.setdefault(id(source.object), []).append(source)
    for number, sources in of_object.items():
        one, count = sources[0].object, total(tuple(sources))
        named = {source.scheduler for source in sources}
        if number in promised | with_runtime or one.kind in _NEVER_GANGS or not named <= known:
            continue
        if _says_something(sources) or _has_policy(one) or count in (0, 1):
            continue
        pods = "its pods have" if count is None else f"{count} pods,"
        yield one.warning(
            "pods-without-gang",
            (*sources[0].path, "metadata"),
            f"{one.subject.short}: {pods} no gang: each starts alone",
            _how_to_gang(one, count),
        )


def _says_something(sources: list[PodSource]) -> bool:
    """Whether a template names a gang, rightly or not: then other rules speak of it."""
    return any(
        bool(one.resolution.membership or one.resolution.defect or one.resolution.warning)
        or one.misplaced is not None
        or any(key.value(one.facts) is not None for key in _KEYS)
        for one in sources
    )


def _has_policy(one: KubeObject) -> bool:
    return one.kind in RUNTIMES and bool(mapping(one.spec().get("podGroupPolicy")))


def _how_to_gang(one: KubeObject, count: int | None) -> str:
    """Return how the pods of this kind of object become a gang."""
    if one.kind in RUNTIMES:
        return "add spec.podGroupPolicy.coscheduling: {}"
    if one.group == _RAY:
        return (
            f'add label {GANG_LABEL}: "true" to the {one.kind}, and run KubeRay with '
            "--batch-scheduler=scheduler-plugins"
        )
    name, least = _WITHOUT_OBJECT
    number = "" if count is None else f': "{count}"'
    where = "each template" if one.kind == "JobSet" else "the template"
    return (
        f"add labels {name.key}: {one.name} and {least.key}{number} to {where}, if they are to "
        "start together"
    )


def unusable_min(manifests: Manifests) -> Iterator[Finding]:
    """A min that an operator cannot write into a PodGroup, or a task with more than its pods."""
    for promise in manifests.promises:
        one, path = promise.object, promise.min_path
        written = value_at(one.value, path)
        if path[-1] == "minAvailable" and not whole(written):
            yield one.error(
                "workload-min-invalid",
                path,
                f"{path_text(path)} is {shown(written)}; it has to be a whole number, 1 or more",
                "write how many pods must start together, or leave it out",
            )
        yield from _tasks(promise)


def _tasks(promise: Promise) -> Iterator[Finding]:
    tasks = promise.object.spec().get("tasks")
    for index, task in enumerate(tasks if isinstance(tasks, list) else ()):
        least, count = (whole(mapping(task).get(name)) for name in ("minAvailable", "replicas"))
        if least is not None and least > (count or 0):
            yield promise.object.error(
                "workload-min-invalid",
                ("spec", "tasks", index, "minAvailable"),
                f"task {shown(mapping(task).get('name', index))} needs {counted(least, 'pod')} "
                f"(minAvailable), and makes {count or 0}",
                f"make {counted(least, 'replica')} of it, or lower its minAvailable",
            )


def made_later(manifests: Manifests) -> Iterator[Finding]:
    """A gang with members that are made when the others run, which wait for them.

    The later jobs of a JobSet.
    """
    for gang in manifests.gangs:
        least = gang.min_count
        for one in {id(source.object): source.object for source in gang.sources}.values():
            path = waits(one)
            stages = [(stage_of(source, one), source) for source in gang.sources]
            first = min(stage for stage, _ in stages)
            now = total(tuple(source for stage, source in stages if stage == first))
            if not path or least is None or now is None:
                continue
            if now < least:
                yield one.warning(
                    "members-made-later",
                    path,
                    f"{one.subject.short} makes {now} of its gang's pods first and the others when "
                    f"those run, and {least} have to start together: they would wait for one "
                    "another for ever",
                    _lower_min(gang, now),
                )


def made_in_order(manifests: Manifests) -> Iterator[Finding]:
    """A gang with pods that a StatefulSet makes one after another, each when the last is ready."""
    for gang in manifests.gangs:
        least, ordered = gang.min_count, [one for one in gang.sources if is_in_order(one)]
        now = total(tuple(one for one in gang.sources if one not in ordered))
        if not ordered or least is None or now is None:
            continue
        if now + len(ordered) < least:
            for one in {id(source.object): source.object for source in ordered}.values():
                yield one.error(
                    "pods-made-in-order",
                    ("spec", _POLICY) if _POLICY in one.spec() else ("spec",),
                    f"{one.subject.short} makes its pods one after another, each when the one "
                    f"before is ready, and {least} have to start together: they can never start",
                    f"write spec.{_POLICY}: Parallel",
                )


def runs_share_gang(manifests: Manifests) -> Iterator[Finding]:
    """A CronJob whose runs may overlap, though one at a time is the gang that all of them name."""
    for gang in manifests.gangs:
        for source in gang.sources:
            one = source.object
            policy = one.spec().get("concurrencyPolicy")
            if (one.group, one.kind) == ("batch", "CronJob") and policy in (None, "", "Allow"):
                yield one.warning(
                    "runs-share-gang",
                    ("spec", "concurrencyPolicy") if policy else ("spec",),
                    f"a run of {one.subject.short} may begin while another one goes on, and all "
                    f"have the gang {gang.key.name}: the pods of the later one wait until the "
                    "other has ended",
                    "write spec.concurrencyPolicy: Forbid",
                )


def _lower_min(gang: Gang, count: int) -> str:
    """Return how to say a smaller min; an operator's own default stands in no field."""
    field = min_place(gang)[1]
    if gang.promise is not None and field != MIN_AVAILABLE:
        return f"set {path_text(MIN_AVAILABLE)} to {count}"
    where, value = path_text(field), str(count)
    if gang.group is not None:  # another object than the one that the finding is about
        where += f" of {gang.group.title}"
    elif gang.promise is None:  # labels: members that differ are held
        value = f'"{count}"{in_all_templates(gang)}'
    return f"lower {where} to {value}, or let all be made at once"
