"""The search for devices as a recursion that tries everything, to compare the real one with."""

from quorate.core.cluster.devices.requests import SCORE_OF_FIRST
from quorate.core.cluster.devices.views import PoolState
from quorate.core.model import policy
from quorate.core.model.selectors import tolerates
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.search import ChosenDevices, Pick

DONE, NOT = "done", "not"


class StoppedError(Exception):
    """A verdict is broken, or it tries too much."""


class Plain:
    def __init__(self, claims, kind):
        self.claims, self.kind = claims, kind
        self.picks = [[] for _ in claims]
        self.tried = 0
        self.numbers, self.wanted = {}, {}
        for number, claim in enumerate(claims):
            for index, request in enumerate(claim.requests):
                for which in range(len(request.choices)):
                    self.numbers[number, index, which] = len(self.numbers)

    def run(self):
        try:
            self.size()
            if self.place(0, 0, None, 0, (0, 0)) == DONE:
                return ChosenDevices(tuple(tuple(picks) for picks in self.picks), self.score())
        except StoppedError as error:
            return Broken(str(error))
        if any(pool.state.name == "INVALID" for pool in self.kind):
            return Broken("invalid resource pools were encountered")
        return None

    def score(self):
        return sum(
            SCORE_OF_FIRST - choice
            for number, claim in enumerate(self.claims)
            for index, request in enumerate(claim.requests)
            if request.is_list
            for choice in {p.choice for p in self.picks[number] if p.request == index}
        )

    def matches(self, key, place):
        verdict = self.kind[place[0]].looks[place[1]].verdicts[self.numbers[key]]
        if isinstance(verdict, Broken):
            raise StoppedError(str(verdict))
        return verdict

    def size(self):
        for number, claim in enumerate(self.claims):
            least = 0
            for index, request in enumerate(claim.requests):
                counts = []
                for which, choice in enumerate(request.choices):
                    key = number, index, which
                    found = self.all_of(key, choice) if choice.wanted.count is None else None
                    counts.append(choice.wanted.count if found is None else len(found))
                    self.wanted[key] = choice, counts[-1], found
                least += min(counts)
            most = policy.DEVICES_PER_CLAIM_MAX
            if least > most:
                raise StoppedError(
                    f"number of requested devices {least} exceeds the claim limit of {most}"
                )

    def all_of(self, key, choice):
        found = []
        for at, pool in enumerate(self.kind):
            if pool.state is not PoolState.GOOD:
                words = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise StoppedError(
                    f"request {choice.wanted.name}: asks for all devices, but resource pool "
                    f"{pool.label} is currently {words}"
                )
            found += [(at, d) for d in range(len(pool.looks)) if self.matches(key, (at, d))]
        return found

    def place(self, number, index, which, got, start):
        if number >= len(self.claims):
            return DONE
        requests = self.claims[number].requests
        if index >= len(requests):
            return self.place(number + 1, 0, None, 0, (0, 0))
        if which is not None:
            return self.place_device((number, index, which), got, start)
        for one in range(len(requests[index].choices)):
            is_allowed = self.is_within_limit(number, index, one)
            if is_allowed and self.place(number, index, one, 0, (0, 0)) == DONE:
                return DONE
        return NOT

    def is_within_limit(self, number, index, which):
        """Whether the claim has not too many devices yet, however few its later requests take."""
        sizes = {}
        for (claim, request, _), (_, count, _) in self.wanted.items():
            if claim == number and request > index:
                sizes.setdefault(request, []).append(count)
        least = len(self.picks[number]) + self.wanted[number, index, which][1]
        return least + sum(map(min, sizes.values())) <= policy.DEVICES_PER_CLAIM_MAX

    def place_device(self, key, got, start):
        number, index, _ = key
        _, count, everything = self.wanted[key]
        if everything == []:
            return NOT
        if got >= count:
            return self.place(number, index + 1, None, 0, (0, 0))
        if everything is not None:
            return self.with_device(key, got, everything[got])
        for at in range(start[0], len(self.kind)):
            if self.kind[at].state is not PoolState.GOOD:
                continue
            first = start[1] if at == start[0] else 0
            for device in range(first, len(self.kind[at].looks)):
                outcome = self.with_device(key, got, (at, device))
                if outcome != NOT:
                    return outcome
        return NOT

    def with_device(self, key, got, place):
        self.tried += 1
        if self.tried > policy.DEVICE_LOOKS_MAX:
            raise StoppedError("cut short")
        number, index, which = key
        if not self.may_take(key, place):
            return NOT
        self.picks[number].append(Pick(*place, index, which))
        outcome = self.place(number, index, which, got + 1, (place[0], place[1] + 1))
        if outcome != DONE:
            self.picks[number].pop()
        return outcome

    def may_take(self, key, place):
        taken = {(pick.pool, pick.device) for picks in self.picks for pick in picks}
        if self.kind[place[0]].used[place[1]] or place in taken:
            return False
        choice, _, everything = self.wanted[key]
        if everything is None and not self.matches(key, place):
            return False
        return all(
            taint.effect not in ("NoSchedule", "NoExecute")
            or tolerates(choice.wanted.tolerations, taint)
            for taint in self.kind[place[0]].looks[place[1]].taints
        )
