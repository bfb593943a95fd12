"""What lint understood, in lines, and its whole report as an object for programs.

In: a ``Report``. Out: lines of text, or builtins with ``apiVersion`` and ``kind``, which
docs/users/lint.md describes. Fields are only ever added within one ``apiVersion``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quorate.cli.show.gang_data import API_VERSION
from quorate.core.words.counting import counted
from quorate.lint.check import Report
from quorate.lint.understood import GangSeen, PodsSeen

LINES_MAX = 100
"""So many lines about what was understood are shown to people."""


def report_object(report: Report, unreadable: Sequence[str]) -> dict[str, Any]:
    """Return the report, of kind ``LintReport``."""
    return {
        "apiVersion": API_VERSION,
        "kind": "LintReport",
        "errors": report.errors,
        "warnings": report.warnings,
        "files": report.files,
        "objects": report.objects,
        "findings": msgspec.to_builtins(report.findings),
        "gangs": msgspec.to_builtins(report.gangs),
        "podsWithoutGang": msgspec.to_builtins(report.others),
        "notKnown": msgspec.to_builtins(report.not_seen),
        "unreadable": list(unreadable),
        "skipped": list(report.skipped),
    }


def understood(report: Report) -> Iterator[str]:
    """Yield a line for each gang, and for each object with pods of no gang."""
    lines = [
        *map(_gang, report.gangs),
        *map(_others, report.others),
        *(f"not known: the pods of {one.object.short}: {one.why}" for one in report.not_seen),
    ]
    yield from lines[:LINES_MAX]
    if len(lines) > LINES_MAX:
        yield f"... and {len(lines) - LINES_MAX} more; -o json has all"


def _gang(one: GangSeen) -> str:
    facts = [
        f"min {'?' if one.min is None else one.min}",
        _pods(one.pods),
        *_gpus(one.gpus),
        *_schedulers(one.scheduler_names),
        *([f"queue {one.queue}"] if one.queue else []),
    ]
    each = ""
    if one.gangs != 1:
        each = f", {'as many as replicas' if one.gangs is None else one.gangs} of them"
    made_by = " and ".join(subject.short for subject in one.made_by)
    operator = f"; PodGroup by {one.operator}" if one.operator else ""
    return f"gang {one.namespace}/{one.name}: {', '.join(facts)}{each} ({made_by}{operator})"


def _others(one: PodsSeen) -> str:
    facts = [_pods(one.pods), *_gpus(one.gpus), *_schedulers(one.scheduler_names)]
    return f"no gang: {one.object.short}: {', '.join(facts)}"


def _pods(count: int | None) -> str:
    return "pods not known" if count is None else counted(count, "pod")


def _gpus(count: int | None) -> list[str]:
    return [counted(count, "GPU")] if count else []


def _schedulers(names: tuple[str, ...]) -> list[str]:
    return [f"schedulerName {' and '.join(names)}"] if names else []
