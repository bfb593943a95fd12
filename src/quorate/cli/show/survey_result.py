"""The result of a survey of the cluster, as ``quorate why`` and ``quorate gangs`` print it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation
from quorate.core.scheduler import Scheduler
from quorate.shell.survey import Leader


class SurveyResult(NamedTuple):
    """A core that has observed the cluster, the gangs that were asked for, and who leads.

    ``now_s`` is the time of the survey, in seconds since 1970. ``namespace`` is "" for all.
    ``found`` has the explanations of ``keys``.
    """

    scheduler: Scheduler
    keys: list[GangKey]
    leader: Leader
    now_s: float
    namespace: str
    found: list[Explanation]

    def gang(self, key: GangKey) -> GangEntry:
        """Return the core's entry of a gang."""
        return self.scheduler.cluster.gangs[key]


def explanations(scheduler: Scheduler, keys: list[GangKey], now_s: float) -> list[Explanation]:
    """Return the explanations of these gangs; gangs that are gone are left out."""
    explainer = scheduler.explainer(now_s)
    return [found for key in keys if (found := explainer.explain(key)) is not None]


def as_data(explanation: Explanation, result: SurveyResult) -> dict[str, Any]:
    """Return an explanation as builtins, for JSON and YAML."""
    facts: dict[str, Any] = msgspec.to_builtins(explanation)
    key = explanation.key
    facts["key"] = {"namespace": key.namespace, "dialect": key.dialect, "name": key.bare_name}
    leads = result.leader
    facts["schedulerLeads"] = None if leads.holder is None else bool(leads.holder)
    return facts


def age(seconds: float) -> str:
    """Return a time span as kubectl shows ages, in one unit."""
    if not math.isfinite(seconds):
        return "?"  # the object has no time, and no pods
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
