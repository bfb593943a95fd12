"""All rules over all files: the one door of ``quorate.lint``.

In: named texts and options. Out: a ``Report`` with findings in the order of the files, and what
could not be read. Nothing is raised for what a file holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.lint.finding import Finding, Severity
from quorate.lint.manifests import Manifests, Options
from quorate.lint.objects import KubeObject, NotAnObject, objects_of
from quorate.lint.rules import RULES
from quorate.lint.tree import TextError, documents
from quorate.lint.understood import GangSeen, NotSeen, PodsSeen, gangs_of, not_seen, others_of


class Text(NamedTuple):
    """A file's content. ``named`` says whether the caller named it, or a folder held it."""

    file: str
    text: str
    named: bool = True


class Report(NamedTuple):
    """What was found. ``unreadable`` are whole lines about files; ``skipped`` are no manifests.

    ``gangs`` is what was understood; ``others`` are the objects with pods of no gang, ``not_seen``
    those of which the files do not say what pods they make.
    """

    findings: tuple[Finding, ...]
    unreadable: tuple[str, ...]
    skipped: tuple[str, ...]
    objects: int
    files: int
    gangs: tuple[GangSeen, ...] = ()
    others: tuple[PodsSeen, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()

    @property
    def errors(self) -> int:
        """The number of findings that are errors."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        """The number of findings that are warnings."""
        return len(self.findings) - self.errors


def check(texts: Iterable[Text], options: Options, ignore: Sequence[str] = ()) -> Report:
    """Return what is wrong with the manifests; ``ignore`` are names of findings to leave out."""
    objects: list[KubeObject] = []
    unreadable: list[str] = []
    skipped: list[str] = []
    files = 0
    for one in texts:
        files += 1
        try:
            for document in documents(one.text):
                try:
                    objects += objects_of(one.file, document)
                except NotAnObject as error:
                    where = f"{one.file}:{error.line}: document {document.number} {error.message}"
                    (unreadable if one.named else skipped).append(where)
        except TextError as error:
            unreadable.append(f"{one.file}:{error.line}: {error.message}{_hint(one.text)}")
    manifests = Manifests(objects, options)
    findings = [finding for rule in RULES for finding in rule.check(manifests)]
    kept = [finding for finding in _unsilenced(findings, objects) if finding.rule not in ignore]
    return Report(
        findings=tuple(_in_order(kept, objects)),
        unreadable=tuple(unreadable),
        skipped=tuple(skipped),
        objects=len(objects),
        files=files,
        gangs=gangs_of(manifests),
        others=others_of(manifests),
        not_seen=not_seen(manifests),
    )


def _unsilenced(findings: Iterable[Finding], objects: Iterable[KubeObject]) -> list[Finding]:
    allowed = {(one.file, one.document.number): one.document.allowed for one in objects}
    return [
        finding
        for finding in findings
        if finding.rule not in allowed.get((finding.file, finding.document), ())
    ]


def _in_order(findings: list[Finding], objects: Iterable[KubeObject]) -> list[Finding]:
    """Sort by file, in the order of the call, then by line."""
    files = {name: index for index, name in enumerate(dict.fromkeys(o.file for o in objects))}
    return sorted(findings, key=lambda finding: (files[finding.file], finding.line))


def _hint(text: str) -> str:
    if "{{" in text:
        return (
            ". It looks like a Helm template: render it first (helm template ... | quorate lint -)"
        )
    return ""
