"""``quorate lint``: files in, findings out, and an exit code for CI.

0 nothing is wrong (warnings may be said), 1 errors were found (or warnings, with ``--strict``), 2 a
file cannot be read or the call is at fault.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

from rich.text import Text

from quorate.cli.show import output
from quorate.cli.show.lint_report import report_object, understood
from quorate.core.words.counting import counted
from quorate.lint.check import Report, check
from quorate.lint.empty_cluster import ShapeNodesError
from quorate.lint.finding import Finding, Severity
from quorate.lint.manifests import Options
from quorate.lint.reading import read
from quorate.lint.rules import NAMES, RULES
from quorate.shapes.shape_file import ShapeError, load, nodes_of

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}
_SKIPPED_SHOWN_MAX = 5


class Call(NamedTuple):
    """What the command line says."""

    files: Sequence[str]
    namespace: str | None
    shape: str | None
    scheduler_names: Sequence[str]
    ignore: Sequence[str]
    strict: bool
    output: str


class LintCallError(ValueError):
    """The call cannot be carried out; the text says what to write instead."""


def lint(call: Call) -> int:
    """Check the files, print what is wrong, and return the exit code."""
    try:
        _check_ignored(call.ignore)
        nodes = _nodes(call.shape) if call.shape is not None else None
        options = Options(
            namespace=call.namespace or "default",
            namespace_given=call.namespace is not None,
            scheduler_names=tuple(call.scheduler_names),
            nodes=nodes,
            shape_name=call.shape or "",
        )
        texts, failed = read(call.files, _stdin)
        report = check(texts, options, call.ignore)
    except (LintCallError, ShapeNodesError) as error:
        return output.error(str(error))
    failed += report.unreadable
    if call.output in ("json", "yaml"):
        output.print_data(report_object(report, failed), call.output)
    else:
        _print_report(report, wide=call.output == "wide")
    _say_skipped(report.skipped)
    for line in failed:
        output.error(line)
    if failed:
        return 2
    return 1 if report.errors or (call.strict and report.warnings) else 0


def _stdin() -> BinaryIO:
    return sys.stdin.buffer


def _check_ignored(ignore: Sequence[str]) -> None:
    for name in ignore:
        if name not in NAMES:
            raise LintCallError(f"--ignore {name}: no such rule. The rules are {', '.join(NAMES)}")


def _nodes(shape: str) -> list[dict[str, Any]]:
    """Return the nodes of a shape. Raises LintCallError."""
    try:
        return list(nodes_of(load(shape)))
    except ShapeError as error:
        raise LintCallError(f"--shape {shape}: {error}") from error


def _say_skipped(skipped: Sequence[str]) -> None:
    """Name what folders held and was passed over, so that nobody thinks that it was checked."""
    for line in skipped[:_SKIPPED_SHOWN_MAX]:
        output.say(f"Skipped: {line}", err=True)
    if len(skipped) > _SKIPPED_SHOWN_MAX:
        output.say(f"Skipped: {len(skipped) - _SKIPPED_SHOWN_MAX} more", err=True)


def _print_report(report: Report, *, wide: bool) -> None:
    abouts = {name: rule.about for rule in RULES for name in rule.names}
    for file, findings in groupby(report.findings, key=lambda finding: finding.file):
        output.print_lines([Text(file, style="bold")])
        for finding in findings:
            output.print_lines(_lines(finding, abouts[finding.rule] if wide else ""))
    if wide or not report.findings:
        output.print_lines(Text(line) for line in understood(report))
    counts = f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}"
    where = f"{counted(report.objects, 'object')} of {counted(report.files, 'file')}"
    output.print_lines([Text(f"{counts} in {where}")])


def _lines(finding: Finding, about: str) -> Iterator[Text]:
    """Return a finding in three lines; more with ``about``, what its rule is for."""
    first = Text(f"  line {finding.line}: ")
    first.append(finding.severity, style=_STYLES[finding.severity])
    first.append(f" {finding.rule}: ")
    yield first.append(f"{finding.object}, {finding.path}", style="cyan")
    yield Text(f"    {finding.message}")
    if about:
        yield Text(f"    rule:   {about} (document {finding.document})")
    yield Text(f"    hint: {finding.hint}")
