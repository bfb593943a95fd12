"""Which gangs a list shows, and in which order: ``--selector``, ``--state``, ``--sort-by``.

In: what was typed. Out: predicates and keys over gangs' objects, as ``gang_data`` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from quorate.cli.show.survey_result import FAILED, FINISHED, STATES
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model.selectors import Requirement

SORT_PATHS = {
    "namespace": ".metadata.namespace",
    "name": ".metadata.name",
    "age": ".metadata.creationTimestamp",
    "state": ".state",
    "members": ".members.bound",
    "min": ".members.min",
    "gpus": ".gpus",
    "place": ".line.place",
    "priority": ".priority",
    "reason": ".reason",
}
_KEY = r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_EQUAL = re.compile(rf"(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})")
_AMONG = re.compile(rf"(?P<key>{_KEY})\s+(?P<sign>in|notin)\s*\((?P<values>[^()]*)\)")
_THERE = re.compile(rf"(?P<sign>!?)\s*(?P<key>{_KEY})")
_PART = re.compile(r"(?:[^,()]|\([^()]*\))+")


class SelectionError(ValueError):
    """What was typed selects nothing that there is; the text says what to write."""


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a label selector as kubectl takes it. Raises SelectionError."""
    parts = [part.strip() for part in _PART.findall(text)]
    if not parts or not all(parts) or ",".join(_PART.findall(text)) != text:
        raise SelectionError(_bad_selector(text))
    return tuple(_requirement(part, text) for part in parts)


def _requirement(part: str, text: str) -> Requirement:
    if found := _EQUAL.fullmatch(part):
        operator = "NotIn" if found["sign"] == "!=" else "In"
        return Requirement(found["key"], operator, (found["value"],))
    if found := _AMONG.fullmatch(part):
        values = tuple(value.strip() for value in found["values"].split(","))
        if all(re.fullmatch(_VALUE, value) for value in values):
            return Requirement(found["key"], "In" if found["sign"] == "in" else "NotIn", values)
    elif found := _THERE.fullmatch(part):
        return Requirement(found["key"], "DoesNotExist" if found["sign"] else "Exists")
    raise SelectionError(_bad_selector(text))


def _bad_selector(text: str) -> str:
    return (
        f"-l {text!r} is no label selector: write key=value, key!=value, 'key in (a,b)', key or "
        "!key, with commas between"
    )


def is_selected(gang: GangEntry, requirements: Sequence[Requirement]) -> bool:
    """Whether the labels of one of the gang's pods satisfy all requirements."""
    if not requirements:
        return True
    each = (dict(entry.pod.labels) for entry in gang.members.values())
    return any(all(one.holds(labels) for one in requirements) for labels in each)


def parse_states(given: Sequence[str]) -> frozenset[str]:
    """Return the states, each given alone or several with commas. Raises SelectionError."""
    known = {state.lower(): state for state in STATES}
    typed = [word.strip() for one in given for word in one.split(",")]
    for word in typed:
        if word.lower() not in known:
            raise SelectionError(f"--state {word!r} is no state: choose among {', '.join(known)}")
    return frozenset(known[word.lower()] for word in typed)


def parse_sort(typed: str) -> str:
    """Return the path to sort by, of a word or of a path as kubectl takes it."""
    path = SORT_PATHS.get(typed.lower(), typed).strip("{}'")
    if not re.fullmatch(r"(\.[A-Za-z]+)+", path):
        raise SelectionError(
            f"--sort-by {typed!r} is neither one of {', '.join(SORT_PATHS)} nor a path such as "
            ".metadata.creationTimestamp"
        )
    return path


def in_order(objects: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return the gangs sorted by the field at a path; without one by name, ended gangs last.

    What has no such field comes last. Raises SelectionError where no gang has it.
    """
    if not path:
        return sorted(objects, key=_ended_last)
    keyed = [(_at(one, path), one) for one in objects]
    if objects and all(value is None for value, _ in keyed):
        raise SelectionError(f"--sort-by {path}: no gang has that field (see -o json)")
    there = [pair for pair in keyed if pair[0] is not None]
    numbers = all(isinstance(value, int) for value, _ in there)
    there.sort(key=lambda pair: (pair[0] if numbers else str(pair[0]), _by_name(pair[1])))
    return [one for _, one in there] + [one for value, one in keyed if value is None]


def _at(value: Any, path: str) -> Any:  # noqa: ANN401 - any builtin
    for name in path.removeprefix(".").split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return None if isinstance(value, Mapping | list) else value


def _by_name(one: dict[str, Any]) -> tuple[str, str]:
    return one["metadata"]["namespace"], one["metadata"]["name"]


def _ended_last(one: dict[str, Any]) -> tuple[bool, str, str]:
    return one["state"] in (FINISHED, FAILED), *_by_name(one)
