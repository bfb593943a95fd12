"""Objects of Kubernetes in documents: Lists are taken apart, and each object knows where it stands.

In: documents of ``tree``. Out: ``KubeObject``, or ``NotAnObject`` for what kubectl would refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.lint.finding import Finding, Severity, Subject
from quorate.lint.tree import Document, Path

Json = dict[str, Any]


class NotAnObject(ValueError):  # noqa: N818 - a finding about a file, not about our code
    """A document that is no object of Kubernetes; ``line`` is where it starts."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True, eq=False)
class KubeObject:
    """One object. ``namespace`` is ``""`` when the manifest names none."""

    file: str
    document: Document
    prefix: Path
    value: Json
    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def group(self) -> str:
        """The API group; ``""`` for the core group."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    @property
    def subject(self) -> Subject:
        """The object as findings name it."""
        return Subject(self.kind, self.namespace, self.name)

    def spec(self) -> Json:
        """Return ``spec``; empty when it is not an object."""
        return mapping(self.value.get("spec"))

    def finding(
        self, rule: str, severity: Severity, path: Path, message: str, hint: str
    ) -> Finding:
        """Return a finding at a field of this object."""
        return Finding(
            file=self.file,
            document=self.document.number,
            line=self.document.line_of((*self.prefix, *path)),
            object=self.subject,
            path=path_text(path),
            severity=severity,
            rule=rule,
            message=message,
            hint=hint,
        )

    def error(self, rule: str, path: Path, message: str, hint: str) -> Finding:
        """Return a finding that keeps pods from running as meant."""
        return self.finding(rule, Severity.ERROR, path, message, hint)

    def warning(self, rule: str, path: Path, message: str, hint: str) -> Finding:
        """Return a finding that may be meant so."""
        return self.finding(rule, Severity.WARNING, path, message, hint)


def objects_of(file: str, document: Document) -> list[KubeObject]:
    """Return the object of a document, or those of its List. Raises ``NotAnObject``."""
    value = document.value
    if not isinstance(value, dict):
        raise NotAnObject(
            "is no object of Kubernetes, which has apiVersion and kind", document.line
        )
    return _expand(file, document, (), value)


def mapping(value: object) -> Json:
    """Return ``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return ``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def value_at(value: object, path: Path) -> object:
    """Return the object's field at a path; None if it is absent."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) else None
        else:
            value = mapping(value).get(part)
    return value


def path_text(path: Path) -> str:
    """Return a path as people write it: ``spec.containers[0].name``, keys with dots in brackets."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, int) or "." in part or "/" in part:
            parts.append(f"[{part}]")
        else:
            parts.append(f".{part}" if parts else part)
    return "".join(parts)


def _expand(file: str, document: Document, prefix: Path, value: Json) -> list[KubeObject]:
    kind, api_version = value.get("kind"), value.get("apiVersion")
    line = document.line_of(prefix)
    for field, written in (("kind", kind), ("apiVersion", api_version)):
        if not isinstance(written, str) or not written:
            raise NotAnObject(f"has no {field}: is it a manifest of Kubernetes?", line)
    items = value.get("items")
    if str(kind).endswith("List") and isinstance(items, list) and not prefix:
        found: list[KubeObject] = []
        for index, item in enumerate(items):
            here: Path = ("items", index)
            if not isinstance(item, dict):
                raise NotAnObject(f"has no object at items[{index}]", document.line_of(here))
            found += _expand(file, document, here, _with_type(value, item))
        return found
    meta = mapping(value.get("metadata"))
    name = text(meta.get("name")) or text(meta.get("generateName"))
    return [
        KubeObject(
            file,
            document,
            prefix,
            value,
            str(api_version),
            str(kind),
            text(meta.get("namespace")),
            name,
        )
    ]


def _with_type(whole: Json, item: Json) -> Json:
    """Return the item with its type: in a typed list, such as a PodList, it may go without."""
    kind = str(whole["kind"]).removesuffix("List")
    return {"apiVersion": whole["apiVersion"], "kind": kind, **item} if kind else item
