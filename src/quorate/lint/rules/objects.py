"""Rules about any object: duplicates, labels that clusters refuse, invalid numbers of pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from quorate.dialects import DIALECTS
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding
from quorate.lint.manifests import Manifests
from quorate.lint.objects import KubeObject, mapping, value_at
from quorate.lint.pod_values import as_text, is_scalar
from quorate.lint.tree import Path

_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PREFIX_MAX = 253
_COUNTS = ("replicas", "parallelism", "completions", "size")
_GANG_KEYS = frozenset(key.key for dialect in DIALECTS for key in dialect.keys)


def duplicate_keys(manifests: Manifests) -> Iterator[Finding]:
    """A key that one mapping has twice: kubectl silently uses the last one."""
    told: set[int] = set()
    for one in manifests.objects:
        if id(one.document) in told:
            continue
        told.add(id(one.document))
        for path, first, line in one.document.twice:
            found = one.error(
                "duplicate-key",
                path,
                f"{path[-1]} is written twice, in lines {first} and {line}: the last counts",
                "remove one of the two",
            )
            yield _at_line(found, line)


def _at_line(found: Finding, line: int) -> Finding:
    return msgspec.structs.replace(found, line=line)


def duplicate_objects(manifests: Manifests) -> Iterator[Finding]:
    """An object that the files contain twice: the one applied last counts."""
    first: dict[tuple[str, str, str, str], KubeObject] = {}
    for one in manifests.objects:
        generated = not mapping(one.value.get("metadata")).get("name")
        key = one.group, one.kind, manifests.where(one), one.name
        if generated or not one.name:
            continue
        if (before := first.setdefault(key, one)) is not one:
            line = before.document.line_of(before.prefix)
            yield one.error(
                "duplicate-object",
                ("metadata", "name"),
                f"{one.subject} is in the files twice, the first time at {before.file}:{line}",
                "remove or rename one: the later one would overwrite the other",
            )


def label_values(manifests: Manifests) -> Iterator[Finding]:
    """Labels and annotations that the API server refuses (apimachinery's validation)."""
    for one in manifests.objects:
        yield from _of_metadata(one, ("metadata",), one.value.get("metadata"))
    for source in manifests.sources:
        if source.path:
            path = (*source.path, "metadata")
            yield from _of_metadata(source.object, path, source.template.get("metadata"))
            yield from _selector(source.object, source.path, source.template)


def _of_metadata(one: KubeObject, path: Path, metadata: object) -> Iterator[Finding]:
    for field in ("labels", "annotations"):
        for key, value in mapping(mapping(metadata).get(field)).items():
            here = (*path, field, key)
            written = as_text(value) if is_scalar(value) else ""
            if not isinstance(value, str | None):  # null is an empty text to the API server
                yield _not_a_string(one, here, value)
            if field == "labels":
                yield from _invalid(one, here, key, written)
            elif key in _GANG_KEYS and len(written) > _PREFIX_MAX:
                what = f"annotation {key} is longer than a name of an object can be"
                yield one.error("label-invalid", here, what, "shorten it to 253 characters")


def _not_a_string(one: KubeObject, here: Path, value: object) -> Finding:
    place, key = str(here[-2])[:-1], here[-1]
    kind = "a boolean" if isinstance(value, bool) else "a number"
    if not is_scalar(value):
        kind = "no text"
    quoted = f'write it in quotes: "{as_text(value)}"' if is_scalar(value) else "write a text"
    return one.error(
        "label-not-a-string",
        here,
        f"{place} {key} is {shown(value)}, {kind}: the API server refuses the object",
        quoted,
    )


def _invalid(one: KubeObject, here: Path, key: str, value: str) -> Iterator[Finding]:
    prefix, slash, name = key.rpartition("/")
    bad_prefix = slash and (len(prefix) > _PREFIX_MAX or not _PREFIX.fullmatch(prefix))
    if bad_prefix or not _NAME.fullmatch(name):
        yield one.error(
            "label-invalid",
            here,
            f"{shown(key)} cannot be the key of a label",
            "use prefix/name: a DNS name, then at most 63 letters, digits, '-', '_' and '.'",
        )
    if len(value) > 63:
        yield one.error(
            "label-invalid",
            here,
            f"label {key} has {len(value)} characters; a label's value has at most 63",
            "shorten it, and the name of the PodGroup with it, if it is one",
        )
    elif not _VALUE.fullmatch(value):
        yield one.error(
            "label-invalid",
            here,
            f"label {key} is {shown(value)}, which no label's value can be",
            "use letters, digits, '-', '_' and '.', with a letter or a digit at both ends",
        )


def _selector(one: KubeObject, path: Path, template: object) -> Iterator[Finding]:
    """A workload that does not select its own pods: the API server refuses it."""
    if path != ("spec", "template") or one.group != "apps":
        return
    wanted = mapping(mapping(one.spec().get("selector")).get("matchLabels"))
    has = mapping(mapping(mapping(template).get("metadata")).get("labels"))
    for key, value in wanted.items():
        if has.get(key) != value:
            yield one.error(
                "label-invalid",
                ("spec", "selector", "matchLabels", key),
                f"the selector wants label {key}: {shown(value)}, which the template has not",
                "give the template the same label",
            )


def replicas(manifests: Manifests) -> Iterator[Finding]:
    """A number of pods that is negative or not a whole number."""
    told: set[tuple[int, Path]] = set()
    for source in manifests.sources:
        for field in _COUNTS:
            path = (*source.path[:-1], field)
            value = value_at(source.object.value, path)
            here = id(source.object), path
            if value is None or here in told or (type(value) is int and value >= 0):
                continue
            told.add(here)
            yield source.object.error(
                "replicas-invalid",
                path,
                f"{field} is {shown(value)}, which is no number of pods",
                "write a whole number of 0 or more, without quotes",
            )
