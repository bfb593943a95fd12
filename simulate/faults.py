"""The faults of a run and their rates, drawn from its seed.

In: a seed. Out: ``Profile``, and the fate of each request and stream. Each seed turns on about half
of the kinds of faults and draws its own rates, because faults that are always on together hide one
another. ``stop`` ends all faults.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Literal, NamedTuple

import msgspec

from simulate.cluster.server import Request

_ONE_LEADER = 0.4
"""Share of runs in which one replica leads throughout: a new leader would mend what it forgot."""
_HELD_UP = 0.5
"""Share of the writes to slow paths that take longer."""

Blow = Literal["", "dropped", "lost", "late", "refused"]
Stage = Literal["unsent", "sent", "done"]
STAGES: tuple[Stage, ...] = ("unsent", "sent", "done")
"""Where in a request a replica may die: before it is sent, under way, or carried out."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What may go wrong in one run. Shares are of requests, times are mean times between faults."""

    lost: float = 0.0  # carried out, but the answer never comes
    dropped: float = 0.0  # the request never comes
    late: float = 0.0  # the answer is an error, and then it is carried out
    refused: float = 0.0  # 429, 500 or 503, and nothing was done
    conflict: float = 0.0  # 409 that nobody has earned
    slow: float = 0.0  # takes up to a second
    requests_per_s: float = 0.0  # quota for each replica; 0: none
    stream_s: float = 0.0  # how long a watch lasts
    repeated: float = 0.0  # of events, which a watch tells twice
    lag_s: float = 0.0  # how far watches may fall behind, each by its own lag
    crash_s: float = 0.0
    crash_at_request: float = 0.0  # share of requests at which the replica dies
    restart_s: float = 0.0  # graceful
    outage_s: float = 0.0
    partition_s: float = 0.0
    jump_s: float = 0.0  # of the wall clock of one replica
    node_s: float = 0.0  # lost, cordoned, refusing
    rival_s: float = 0.0  # another scheduler takes room
    steal_s: float = 0.0  # another scheduler binds a pod of ours
    delete_s: float = 0.0  # somebody deletes a pod
    edit_s: float = 0.0  # somebody edits or deletes a PodGroup
    meddle_s: float = 0.0  # somebody else writes pods, our Lease, or the status of a PodGroup
    ambush: float = 0.0  # share of our binds that are followed by harm to the same gang
    ambush_kills: float = 0.0  # share of these in which a replica dies as well
    replicas: int = 1


def profile_of(chance: random.Random) -> Profile:
    """Draw which faults are on."""

    def share(most: float) -> float:
        return chance.uniform(0.2 * most, most) if chance.random() < 0.5 else 0.0

    def every(least_s: float, most_s: float) -> float:
        return chance.uniform(least_s, most_s) if chance.random() < 0.45 else 0.0

    profile = Profile(
        lost=share(0.15),
        dropped=share(0.15),
        late=share(0.08),
        refused=share(0.15),
        conflict=share(0.2),
        slow=share(0.3),
        requests_per_s=every(10, 60),
        stream_s=every(1, 10),
        repeated=share(0.3),
        lag_s=chance.choice((0.0, 0.05, 0.5, 2.0)),
        crash_s=every(3, 15),
        crash_at_request=share(0.03),
        restart_s=every(6, 20),
        outage_s=every(7, 20),
        partition_s=every(7, 20),
        jump_s=every(3, 12),
        node_s=every(2, 10),
        rival_s=every(1, 6),
        steal_s=every(5, 20),
        delete_s=every(1, 6),
        edit_s=every(2, 8),
        meddle_s=every(1, 4),
        ambush=share(0.6),
        ambush_kills=share(0.8),
        replicas=chance.choice((1, 1, 2)),
    )
    if chance.random() < _ONE_LEADER:
        profile = msgspec.structs.replace(
            profile,
            crash_s=0.0,
            crash_at_request=0.0,
            restart_s=0.0,
            partition_s=0.0,
            ambush_kills=0.0,
        )
    return profile


class Fate(NamedTuple):
    """What becomes of one request."""

    out_s: float  # until it arrives
    back_s: float  # until its answer arrives
    blow: Blow = ""
    status: int = 0  # of a refusal
    kills: Stage | None = None  # where the replica dies


class StreamFate(NamedTuple):
    """How long a watch lasts, how it ends, and how far it is behind."""

    lasts_s: float | None
    ending: Literal["cut", "end", "gone", "error", "torn"]
    lag_s: float
    silent_s: float = 0.0  # before it ends with 410: what happens meanwhile is never told


class Faults:
    """Draws fates, and counts what it did by kind."""

    def __init__(self, profile: Profile, chance: random.Random) -> None:
        self.profile = profile
        self.counts: Counter[str] = Counter()
        self.on = True
        self.requests = 0
        self.kill_at: tuple[int, Stage] | None = None
        """The replica that sends the request of this number dies at this stage of it."""
        self.busy: dict[str, float] = {}
        """Gangs whose binds are refused with 429, and until when."""
        self.slow_paths: dict[str, float] = {}
        """By a part of their paths, so many seconds some writes take longer at most."""
        self._chance = chance
        self._budgets: dict[str, tuple[float, float]] = {}

    def stop(self) -> None:
        """From now on everything goes well, and fast."""
        self.on = False

    def fate(self, who: str, request: Request, now_s: float) -> Fate:
        """Return what becomes of a request that is sent now."""
        chance, profile = self._chance, self.profile
        out_s, back_s = chance.uniform(0.0005, 0.004), chance.uniform(0.0005, 0.004)
        self.requests += 1
        if self.kill_at is not None and self.requests == self.kill_at[0]:
            self.counts["crash"] += 1
            return Fate(out_s, back_s, kills=self.kill_at[1])
        if not self.on:
            return Fate(out_s, back_s)
        if chance.random() < profile.slow:
            self.counts["slow"] += 1
            out_s, back_s = chance.uniform(0.0, 0.5), chance.uniform(0.0, 0.5)
        out_s += self._held_up_s(request)
        if chance.random() < profile.crash_at_request:
            self.counts["crash"] += 1
            return Fate(out_s, back_s, kills=chance.choice(STAGES))
        if limit := self._limit(who, request, now_s):
            self.counts[limit] += 1
            return Fate(out_s, back_s, "refused", 429)
        dice = chance.random()
        for blow, share in (
            ("lost", profile.lost),
            ("dropped", profile.dropped),
            ("late", profile.late),
        ):
            if dice < share:
                self.counts[blow] += 1
                return Fate(out_s, back_s + chance.choice((0.0, 0.1, 2.0)), blow)  # type: ignore[arg-type]
            dice -= share
        if dice < profile.refused:
            self.counts["refused"] += 1
            return Fate(out_s, back_s, "refused", chance.choice((429, 500, 503)))
        dice -= profile.refused
        if dice < profile.conflict and request.method in ("POST", "PUT", "PATCH"):
            self.counts["conflict"] += 1
            return Fate(out_s, back_s, "refused", 409)
        return Fate(out_s, back_s)

    def _held_up_s(self, request: Request) -> float:
        """Return how much longer a write takes on its way because its path is slow."""
        for part, most_s in self.slow_paths.items():
            is_slow = part in request.path and request.method == "PATCH"
            if is_slow and self._chance.random() < _HELD_UP:
                self.counts["slow"] += 1
                return self._chance.uniform(0.0, most_s)
        return 0.0

    def stream_fate(self) -> StreamFate:
        """Return how a watch that begins now will go."""
        chance, profile = self._chance, self.profile
        if not self.on:
            return StreamFate(None, "end", 0.002)
        lag_s = chance.choice((0.001, 0.01, profile.lag_s / 4, profile.lag_s))
        if not profile.stream_s:
            return StreamFate(None, "end", lag_s)
        lasts_s = chance.expovariate(1 / profile.stream_s)
        endings: tuple[Literal["cut", "end", "gone", "error", "torn"], ...]
        endings = ("cut", "end", "gone", "error", "torn")
        return StreamFate(lasts_s, chance.choice(endings), lag_s, chance.choice((0.0, 0.5, 2.0)))

    def repeats(self) -> bool:
        """Whether a watch tells twice what it tells now."""
        if not self.on or self._chance.random() >= self.profile.repeated:
            return False
        self.counts["repeated"] += 1
        return True

    def _limit(self, who: str, request: Request, now_s: float) -> str:
        """Return what refuses a request with 429, or nothing."""
        path = request.path
        for gang, until_s in self.busy.items():
            if request.is_bind and now_s < until_s and f"/{gang}-" in path:
                return "busy"
        has_quota = self.profile.requests_per_s > 0.0
        return "quota" if has_quota and not self._within_quota(who, now_s) else ""

    def _within_quota(self, who: str, now_s: float) -> bool:
        """A bucket that holds one second's worth of requests."""
        rate = self.profile.requests_per_s
        left, at_s = self._budgets.get(who, (rate, now_s))
        left = min(rate, left + (now_s - at_s) * rate)
        if left < 1.0:
            self._budgets[who] = left, now_s
            return False
        self._budgets[who] = left - 1.0, now_s
        return True
