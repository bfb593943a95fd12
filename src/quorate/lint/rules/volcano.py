"""Rules about fields that only Volcano's PodGroup has: ignored ones, what it names, its tasks."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from quorate.core.words.counting import counted
from quorate.dialects import by_name
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding
from quorate.lint.manifests import Manifests
from quorate.lint.objects import KubeObject, path_text, text, value_at
from quorate.lint.tree import Path


def ignored_fields(manifests: Manifests) -> Iterator[Finding]:
    """A field of a PodGroup that is ignored, with the scheduler's own message."""
    for group in manifests.groups:
        for said in filter(None, group.spec.warning.split("; ")):
            field = said.split(" ", 1)[0].removeprefix("spec.")
            hint = "leave it out, or see docs/users/semantics.md for what counts"
            yield group.object.warning("podgroup-field-ignored", ("spec", field), said, hint)


class _Named(NamedTuple):
    """Objects of the cluster that a gang's object may name, and which of them every cluster has.

    ``attribute`` is the name in a ``GangSpec``, and the field in a ``Promise``; ``path`` is the
    field of a PodGroup.
    """

    rule: str
    group: str
    kind: str
    attribute: str
    path: Path
    built_in: tuple[str, ...]


_NAMED = (
    _Named(
        "queue-missing",
        "scheduling.volcano.sh",
        "Queue",
        "queue",
        ("spec", "queue"),
        ("root", "default"),
    ),
    _Named(
        "priority-class-missing",
        "scheduling.k8s.io",
        "PriorityClass",
        "priority_class",
        ("spec", "priorityClassName"),
        ("system-node-critical", "system-cluster-critical"),
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
            name = getattr(group.spec, what.attribute)
            yield from _missing(what, group.object, what.path, name, there)
        for promise in manifests.promises:
            path = getattr(promise, what.attribute)
            name = text(value_at(promise.object.value, path))
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
        f"{what.attribute.replace('_', ' ')} {shown(name)} is in none of the files, which have "
        "others",
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
