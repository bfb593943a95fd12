"""Rules about one pod template at a time: whether it can be read, and which gang it names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from quorate.core.model.reasons import Reason
from quorate.dialects import DIALECTS, Dialect, PodKey, near_misses
from quorate.dialects.common.fields import shown
from quorate.lint.finding import Finding
from quorate.lint.manifests import Manifests
from quorate.lint.pod_sources import PodSource
from quorate.lint.tree import Path

_NAMED_ALONE = {
    dialect.member_key.key
    for dialect in DIALECTS
    if dialect.min_key is None and dialect.member_key.place != "field"
}
"""Keys that name a gang on their own."""


def unreadable(manifests: Manifests) -> Iterator[Finding]:
    """A pod with a field that the scheduler cannot read, such as an invalid quantity."""
    for source in manifests.sources:
        if source.pod.defect and source.pod.defect_reason == Reason.POD_INVALID.value:
            yield source.object.error(
                "pod-invalid",
                _field(source, source.pod.defect),
                f"the pod cannot be placed: {source.pod.defect}",
                "fix that field",
            )


def _field(source: PodSource, defect: str) -> Path:
    """Return the part that exists of the field a defect names (``spec.containers[0]...: what``)."""
    where = defect.partition(":")[0]
    return (*source.path, "spec") if where.startswith("spec") else source.path


def unknown_labels(manifests: Manifests) -> Iterator[Finding]:
    """A label or annotation that names a gang, or resembles that, where no scheduler reads it."""
    told: set[tuple[int, Path]] = set()
    for source in manifests.sources:
        if (one := source.misplaced) and (id(source.object), one.path) not in told:
            told.add((id(source.object), one.path))
            yield source.object.error("unknown-gang-label", one.path, one.meant.words, one.remedy)
        is_ours = source.scheduler in manifests.options.gang_schedulers
        defect = source.resolution.defect
        if defect and (is_ours or not near_misses.is_of_another_scheduler(source.facts)):
            what, _, hint = defect.partition("; ")
            yield source.object.error(
                "unknown-gang-label", _path_of_key(source, what), what, hint or "remove it"
            )


def _path_of_key(source: PodSource, what: str) -> Path:
    """Return the path of the label or annotation at the start of a message."""
    place, _, rest = what.partition(" ")
    return (*source.path, "metadata", f"{place}s", rest.partition(" ")[0])


def incomplete_labels(manifests: Manifests) -> Iterator[Finding]:
    """Labels of gang and min that are incomplete, so that each pod would start alone."""
    for source in manifests.sources:
        for dialect in DIALECTS:
            if dialect.min_key is not None:
                yield from _incomplete(source, dialect, dialect.min_key)
    yield from _empty_names(manifests)


def _incomplete(source: PodSource, dialect: Dialect, min_key: PodKey) -> Iterator[Finding]:
    facts, name_key = source.facts, dialect.member_key
    written = min_key.value(facts)
    path = (*source.path, *(name_key if written is None else min_key).path)
    if warning := dialect.warning(facts):
        about_min = warning.startswith(f"{min_key} is ")
        yield source.object.error(
            "min-available-invalid" if about_min else "gang-label-incomplete",
            path,
            warning,
            f'give the pods both {name_key.key} and {min_key.key}: "4", or neither',
        )
    elif dialect.membership(facts) is None and name_key.value(facts):
        yield source.object.warning(
            "min-available-invalid",
            path,
            f'{min_key} is "{written}": the pods are no gang, each starts alone',
            "write 1 or more for a gang, or remove both labels",
        )


def _empty_names(manifests: Manifests) -> Iterator[Finding]:
    for source in manifests.sources:
        for place, pairs in (
            ("labels", source.facts.labels),
            ("annotations", source.facts.annotations),
        ):
            for key in sorted(_NAMED_ALONE & pairs.keys()):
                if not pairs[key]:
                    yield source.object.error(
                        "gang-label-incomplete",
                        (*source.path, "metadata", place, key),
                        f"{place[:-1]} {key} is empty: each pod starts alone",
                        "write the gang's name, or remove it",
                    )


def several_dialects(manifests: Manifests) -> Iterator[Finding]:
    """A pod that names gangs in two ways: only one of them counts."""
    for source in manifests.sources:
        said = source.resolution
        if said.membership is not None and said.warning not in ("", said.note):
            what, _, hint = source.resolution.warning.rpartition("; ")
            yield source.object.warning("several-dialects", (*source.path, "metadata"), what, hint)


def other_spellings(manifests: Manifests) -> Iterator[Finding]:
    """A pod that names its gang by a further spelling of the key, which others do not read."""
    for source in manifests.sources:
        if source.resolution.note:
            what, _, hint = source.resolution.note.partition("; ")
            yield source.object.warning(
                "gang-label-not-current", _path_of_key(source, what), what, hint
            )


def did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Return ``; did you mean X?`` if one of ``known`` is close, else ""."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {shown(close[0])}?" if close else ""
