"""Finds the gangs that have come to rest, so that reporting why they wait is worth a request.

In: touched gangs and times. Out: gangs to explain. A gang that starts at once is never explained,
so it costs only its binds. Times are seconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.nodes.nodes import NodesVersion
from quorate.core.model import GangKey, policy


class QuietGangs:
    """Remembers when gangs were touched, and when they were last explained."""

    def __init__(self) -> None:
        self._touched: dict[GangKey, tuple[float, float]] = {}
        """When a gang was first and last touched since it was last explained."""
        self._explained_s: dict[GangKey, float] = {}
        self._later: dict[GangKey, float] = {}
        """When to explain a gang again even if it is not touched."""
        self._told_of: dict[GangKey, NodesVersion] = {}
        """Gangs that were told how the nodes stand, and in which version of them; oldest first."""
        self._renewed_until_s = 0.0
        self._said_s: dict[GangKey, float] = {}
        """When an Event of a gang was said last; oldest first."""

    def __len__(self) -> int:
        """Return how many gangs will be explained; a gang may count twice."""
        return len(self._touched) + len(self._later)

    def touch(self, key: GangKey, now_s: float) -> None:
        """Have a gang explained when it has come to rest."""
        first_s, _ = self._touched.get(key, (now_s, now_s))
        self._touched[key] = first_s, now_s

    def explain_at(self, key: GangKey, at_s: float) -> None:
        """Have a gang explained at ``at_s``, or earlier if it is touched."""
        self._later[key] = min(at_s, self._later.get(key, at_s))

    def note_explained(self, key: GangKey, now_s: float) -> None:
        """Note that a gang is being explained now."""
        self.drop(key)
        self._explained_s[key] = now_s

    def drop(self, key: GangKey) -> None:
        """Do not explain a gang until it is touched."""
        self._touched.pop(key, None)
        self._later.pop(key, None)

    def forget(self, key: GangKey) -> None:
        """Forget a gang."""
        self.drop(key)
        self._explained_s.pop(key, None)
        self._told_of.pop(key, None)
        self._said_s.pop(key, None)

    # Words that change with the nodes, and words that time alone makes untrue or forgotten

    @property
    def has_told(self) -> bool:
        """Whether there are words that time or changes of the nodes may make untrue."""
        return bool(self._told_of or self._said_s)

    def note_said(self, key: GangKey, now_s: float) -> None:
        """Note that the gang's Event is written now; it is to be written again, before it ends."""
        self._said_s.pop(key, None)
        self._said_s[key] = now_s

    def note_told(self, key: GangKey, version: NodesVersion | None) -> None:
        """Note that a gang was told how the nodes stood in a version; None: nothing of nodes."""
        self._told_of.pop(key, None)
        if version is not None:
            self._told_of[key] = version

    def renew(
        self, gangs: Mapping[GangKey, GangEntry], version: NodesVersion, now_s: float
    ) -> None:
        """Have gangs explained because the nodes have another version than they were told of.

        The gang that was told longest ago comes first. Where only pods came or went on the nodes it
        is one gang, and the next one after ``policy.PATIENCE_S``, or later if it has many pods:
        each of them may have to hear.
        """
        told = islice(self._told_of.items(), policy.EXPLAINED_PER_TURN_MAX)
        found = [key for key, known in told if known.attributes != version.attributes]
        if not found and now_s >= self._renewed_until_s:
            found = [key for key, known in islice(self._told_of.items(), 1) if known != version]
            pods = sum(len(gangs[key].members) for key in found if key in gangs)
            if found:
                pace_s = max(policy.PATIENCE_S, pods / policy.PODS_RENEWED_PER_S)
                self._renewed_until_s = now_s + pace_s
        for key in found:
            self.note_told(key, version)
            self.explain_at(key, now_s)
        said = islice(self._said_s.items(), policy.EXPLAINED_PER_TURN_MAX)
        for key in [key for key, at_s in said if now_s >= at_s + policy.STILL_SO_S]:
            self.note_said(key, now_s)
            self.explain_at(key, now_s)

    # All of them

    def due(
        self, gangs: Mapping[GangKey, GangEntry], now_s: float, count_max: int
    ) -> list[GangKey]:
        """Return gangs to explain, at most ``count_max``.

        They have come to rest, have kept changing for too long, or their time has come.
        """
        found = []
        for key, (first_s, last_s) in self._touched.items():
            gang = gangs.get(key)
            pods = len(gang.members) if gang else 0
            patience_s = max(policy.PATIENCE_S, pods / policy.PODS_PER_S)
            since_look_s = now_s - self._explained_s.get(key, -1e9)
            if now_s - first_s >= patience_s or (
                now_s - last_s >= policy.QUIET_S and since_look_s >= pods / policy.PODS_PER_S
            ):
                found.append(key)
                if len(found) == count_max:
                    return found
        for key, at_s in self._later.items():
            if at_s <= now_s and key not in self._touched:
                found.append(key)
                if len(found) == count_max:
                    break
        return found
