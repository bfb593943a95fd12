"""The checker of reservations: nothing is reserved for a gang that is finished.

In: the leading replica and the state at the last revision that it has received. Out: checks and
violations. It reads only the owner of each reservation from the replica, and determines itself
whether that gang goes on. ``rest`` checks that reserved room becomes free again.
"""

from __future__ import annotations

from simulate.checkers.history import History
from simulate.checkers.records import GangTruth, PodTruth
from simulate.checkers.requests import Checks
from simulate.fleet import Replica

_PROMISE = "nothing is held for a finished gang"
_LATE_S_MAX = 1.0
"""The end of a gang may be noticed only by the next decision."""


class Holding:
    """Measures for how long room was reserved for each finished gang."""

    def __init__(self, history: History, checks: Checks) -> None:
        self._history = history
        self._checks = checks
        self._late_s: dict[tuple[str, str], float] = {}

    def on_tick(self, passed_s: float, leader: Replica | None) -> None:
        """Some time has passed; ``leader`` was able to act all the while, if there is one."""
        late_before, self._late_s = self._late_s, {}
        if leader is None:
            return
        told = leader.link.told.get("/api/v1/pods", 0)
        keys = {one.key for one in leader.scheduler.cluster.reservations}
        for name in {self._history.of_key(key) for key in keys}:
            gang = self._history.gangs.get(name)
            place = leader.link.name, name
            if gang is not None and not _goes_on(gang, told):
                self._late_s[place] = late_before.get(place, 0.0) + passed_s
            self._checks.check(
                _PROMISE,
                self._late_s.get(place, 0.0) <= _LATE_S_MAX,
                lambda n=name, r=leader.link.name: f"{r} holds room for {n}",  # type: ignore[misc]
            )


def _goes_on(gang: GangTruth, told: int) -> bool:
    """Whether a member runs or waits, as of a revision, or some failed and others succeeded."""
    ended = {pod.phase for pod in gang.pods.values() if pod.finished <= told}
    return ended >= {"Succeeded", "Failed"} or any(_lives(pod, told) for pod in gang.pods.values())


def _lives(pod: PodTruth, told: int) -> bool:
    return pod.created <= told < min(pod.finished, pod.terminating, pod.gone)
