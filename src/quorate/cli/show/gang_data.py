"""Gangs as JSON and YAML: the objects that docs/users/json.md describes.

In: explanations. Out: builtins with ``apiVersion`` and ``kind``. Fields are only ever added within
one ``apiVersion``.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

import msgspec

from quorate.cli.asking.told import Line
from quorate.cli.show.survey_result import SurveyResult, state_of
from quorate.core.model import GangKey
from quorate.core.model.quantity import gpus_in
from quorate.core.model.reasons import Explanation, Reason
from quorate.shell.apis import api_words

API_VERSION = "quorate.dev/v1alpha1"
_LEFT_TO_US = (
    "key",
    "state",
    "reason",
    "members",
    "missingClass",
    "heldUntilS",
    "order",
    "exhausted",
)


def gang_object(explanation: Explanation, result: SurveyResult) -> dict[str, Any]:
    """Return a gang, of kind ``Gang``."""
    key, gang = explanation.key, result.gang(explanation.key)
    words = api_words().get(key.dialect)
    first = next(iter(gang.members.values()), None)
    owner = first.pod.owner if first else None
    leads, said = result.leader.holder, result.said.get(key)
    pods = (entry.pod for entry in gang.members.values())
    facts = {name: value for name, value in _camel(explanation).items() if name not in _LEFT_TO_US}
    return {
        "apiVersion": API_VERSION,
        "kind": "Gang",
        "metadata": {
            "name": key.bare_name,
            "namespace": key.namespace,
            "creationTimestamp": _timestamp(gang.created_s),
        },
        "api": key.dialect,
        "object": {"apiVersion": words.api_version, "kind": words.kind}
        if words and words.kind and gang.spec is not None
        else None,
        "owner": owner and {"kind": owner.kind, "name": owner.name},
        "schedulerName": first.pod.scheduler if first else "",
        "state": state_of(explanation),
        "reason": "" if explanation.reason is Reason.NONE else str(explanation.reason),
        "gpus": sum(gpus_in(pod.spec.requests) for pod in pods if not pod.finished),
        "line": _line(key, result.line),
        "members": _members(explanation, minimum_is_known=gang.quorum_is_known),
        **facts,
        "saidAt": _timestamp(said.at_s) if said is not None else None,
        "saidBeforeNews": said is not None and said.is_older,
        "schedulerLeads": None if leads is None else bool(leads),
    }


def _line(key: GangKey, line: Line) -> dict[str, int | str] | None:
    place = line.places.get(key)
    if place is None:
        return None
    return {"place": place, "length": len(line.places), "namespace": line.namespace}


def list_of(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return objects as one list, whose kind ends in ``List``."""
    return {"apiVersion": API_VERSION, "kind": f"{kind}List", "items": items}


def _members(explanation: Explanation, *, minimum_is_known: bool) -> dict[str, int | None]:
    counts: dict[str, int] = msgspec.to_builtins(explanation.members)
    minimum = counts.pop("needed")
    return {"min": minimum if minimum_is_known else None, **counts}


def _timestamp(seconds: float) -> str | None:
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    made = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return made.strftime("%Y-%m-%dT%H:%M:%SZ")


def _camel(value: Any) -> Any:  # noqa: ANN401 - any builtin
    """Return builtins with keys as Kubernetes writes them."""
    if isinstance(value, msgspec.Struct):
        return _camel(msgspec.to_builtins(value))
    if isinstance(value, dict):
        return {_camel_name(name): _camel(inner) for name, inner in value.items()}
    return [_camel(inner) for inner in value] if isinstance(value, list | tuple) else value


def _camel_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def typed_name(one: dict[str, Any]) -> str:
    """Return the name of a gang's object as kubectl and ``quorate why`` take it."""
    made = one["object"]
    if made is None:
        return f"{'pod' if one['api'] == 'pod' else 'gang'}/{one['metadata']['name']}"
    group = made["apiVersion"].partition("/")[0]
    return f"{made['kind'].lower()}.{group}/{one['metadata']['name']}"
