"""Rules about fields that only Volcano's PodGroup has: ignored fields, and its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from quorate.core.words.counting import counted
from quorate.dialects import by_name
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding
from quorate.lint.manifests import Gang, Manifests
from quorate.lint.objects import text


def ignored_fields(manifests: Manifests) -> Iterator[Finding]:
    """A field of a PodGroup that is ignored, with the scheduler's own message."""
    for group in manifests.groups:
        for said in filter(None, group.spec.warning.split("; ")):
            field = said.split(" ", 1)[0].removeprefix("spec.")
            hint = "leave it out, or see docs/users/semantics.md for what counts"
            yield group.object.warning("podgroup-field-ignored", ("spec", field), said, hint)
    for gang in manifests.gangs:
        yield from _priority_class(gang)


def _priority_class(gang: Gang) -> Iterator[Finding]:
    wanted = gang.group.spec.priority_class if gang.group is not None else ""
    for source in gang.sources if wanted else ():
        if gang.group is not None and text(source.spec.get("priorityClassName")) != wanted:
            yield gang.group.object.warning(
                "podgroup-field-ignored",
                ("spec", "priorityClassName"),
                f"spec.priorityClassName is {shown(wanted)}, which the pods of {source.title} do "
                "not have: the priority of the pods counts",
                f"write priorityClassName: {wanted} in the spec of these pods",
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
