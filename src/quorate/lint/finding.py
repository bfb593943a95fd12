"""What a rule says of a manifest: one ``Finding``, as people and CI systems read it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad it is: an error keeps pods from running as their author meant."""

    ERROR = "error"
    WARNING = "warning"


class Subject(msgspec.Struct, frozen=True):
    """The object that a finding is about, named as its manifest names it."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else self.short

    @property
    def short(self) -> str:
        """The object without its namespace."""
        return f"{self.kind} {self.name}"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence about one place in one file, and what to do about it.

    ``document`` counts from 0 within the file, ``line`` from 1; ``path`` is the field, such as
    ``spec.minMember``; ``rule`` is a stable name in kebab-case.
    """

    file: str
    document: int
    line: int
    object: Subject
    path: str
    severity: Severity
    rule: str
    message: str
    hint: str
