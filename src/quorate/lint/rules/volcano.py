"""Rules about fields that only Volcano's PodGroup has: ignored ones, what it names, its tasks."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from quorate.core.model import GangSpec
from quorate.core.words.counting import counted
from quorate.dialects import by_name
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding
from quorate.lint.manifests import Manifests
from quorate.lint.objects import KubeObject, path_text, text, value_at
from quorate.lint.tree import Path
from quorate.lint.workloads.promise import Promise


def ignored_fields(manifests: Manifests) -> Iterator[Finding]:
    """A field of a PodGroup that is ignored, with the scheduler's own message."""
    for group in manifests.groups:
        for said in filter(None, group.spec.warning.split("; ")):
            field = said.split(" ", 1)[0].removeprefix("spec.")
            hint = "leave it out, or see docs/users/semantics.md for what counts"
            yield group.object.warning("podgroup-field-ignored", ("spec", field), said, hint)


class _Named(NamedTuple):
    """Objects of the cluster that a gang's object may name, and which of them every cluster has."""

    rule: str
    group: str
    kind: str
    words: str
    built_in: tuple[str, ...]
    in_group: Callable[[GangSpec], str]
    group_path: Path
    promise_path: Callable[[Promise], Path]


_NAMED = (
    _Named(
        "queue-missing",
        "scheduling.volcano.sh",
        "Queue",
        "queue",
        ("root", "default"),
        lambda spec: spec.queue,
        ("spec", "queue"),
        lambda promise: promise.queue,
    ),
    _Named(
        "priority-class-missing",
        "scheduling.k8s.io",
        "PriorityClass",
        "priority class",
        ("system-node-critical", "system-cluster-critical"),
        lambda spec: spec.priority_class,
        ("spec", "priorityClassName"),
        lambda promise: promise.priority_class,
    ),
)


def missing_names(manifests: Manifests) -> Iterator[Finding]:
    """A queue or priority class that the files do not have, though they have others."""
    for what in _NAMED:
        of_kind = [one for one in manifests.objects if one.kind == what.kind]
        there = {one.name for one in of_kind if one.group == what.group}
        if not there:
            continue
        for group in manifests.groups:
            name = what.in_group(group.spec)
            yield from _missing(what, group.object, what.group_path, name, there)
        for promise in manifests.promises:
            path = what.promise_path(promise)
            name = text(value_at(promise.object.value, path)) if path else ""
            yield from _missing(what, promise.object, path, name, there)


def _missing(
    what: _Named, one: KubeObject, path: Path, name: str, there: set[str]
) -> Iterator[Finding]:
    if not name or name in there or name in what.built_in:
        return
    close = difflib.get_close_matches(name, there, n=1)
    yield one.warning(
        what.rule,
        path,
        f"{what.words} {shown(name)} is in none of the files, which have others",
        f"write {path_text(path)}: {close[0]}"
        if close
        else f"add that {what.kind}, or have it made before",
    )


def min_by_task(manifests: Manifests) -> Iterator[Finding]:
    """A task that needs more members than the files create: the gang would wait for ever."""
    for gang in manifests.gangs:
        if gang.group is None or gang.count is None:
            continue
        dialect = by_name(gang.key.dialect)
        task_key = dialect.task_key.key if dialect is not None and dialect.task_key else "task"
        made = Counter[str]()
        for source in gang.sources:
            named = source.resolution.membership
            made[named.task if named is not None else ""] += source.count or 0
        for task, least in gang.group.spec.min_by_task:
            if made[task] < least:
                yield gang.group.object.error(
                    "min-task-above-replicas",
                    ("spec", "minTaskMember", task),
                    f"task {shown(task)} needs {counted(least, 'member')} (spec.minTaskMember), "
                    f"and the files make {made[task]} with {task_key}: {task}",
                    f"make {counted(least, 'pod')} of it, or lower minTaskMember",
                )
