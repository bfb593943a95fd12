"""What ``quorate why`` and ``quorate gangs`` have seen, and the data that they print of it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation
from quorate.core.scheduler import Scheduler
from quorate.shell.survey import Leader


class Seen(NamedTuple):
    """What was found: the core, the keys looked for, who leads, when, and in which namespace.

    ``namespace`` is empty when all were looked in. ``found`` explains the gangs of ``keys``.
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
    """Return why the gangs that were looked for stand where they stand."""
    explainer = scheduler.explainer(now_s)
    return [found for key in keys if (found := explainer.explain(key)) is not None]


def as_data(explanation: Explanation, seen: Seen) -> dict[str, Any]:
    """Return an explanation as builtins, for JSON and YAML."""
    facts: dict[str, Any] = msgspec.to_builtins(explanation)
    key = explanation.key
    facts["key"] = {"namespace": key.namespace, "dialect": key.dialect, "name": key.bare_name}
    leads = seen.leader
    facts["schedulerLeads"] = None if leads.holder is None else bool(leads.holder)
    return facts


def age(seconds: float) -> str:
    """Return a time span as kubectl shows ages, in one unit."""
    if not math.isfinite(seconds):
        return "?"  # of an object without a time, and without pods
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
