"""The search for devices as a recursion that tries everything, to compare the real one with."""

from quorate.core.cluster.devices.pools import PoolState
from quorate.core.cluster.devices.requests import SCORE_OF_FIRST
from quorate.core.model import policy
from quorate.core.room.devices.allocator import ChosenDevices
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.picked import LookCount, PickedDevices, SizedChoice, StoppedError

DONE, NOT, TOO_MANY = "done", "not", "too many"


class Plain:
    def __init__(self, claims, kind, numbers):
        self.claims, self.kind, self.numbers = claims, kind, numbers
        self.taken = PickedDevices(claims, kind, LookCount())
        self.wanted = {}

    def run(self):
        try:
            self.size()
            if self.place(0, 0, None, 0, (0, 0)) == DONE:
                return ChosenDevices(
                    tuple(tuple(picks) for picks in self.taken.picks), self.score()
                )
        except StoppedError as error:
            return Broken(str(error))
        if any(pool.state is PoolState.INVALID for pool in self.kind):
            return Broken("invalid resource pools were encountered")
        return None

    def score(self):
        return sum(
            SCORE_OF_FIRST - choice
            for number, claim in enumerate(self.claims)
            for index, request in enumerate(claim.requests)
            if request.is_list
            for choice in {p.choice for p in self.taken.picks[number] if p.request == index}
        )

    def size(self):
        for number, claim in enumerate(self.claims):
            least = 0
            for index, request in enumerate(claim.requests):
                keys = [(number, index, which) for which in range(len(request.choices))]
                for key, choice in zip(keys, request.choices, strict=True):
                    found = self.all_of(key, choice) if choice.wanted.count is None else None
                    count = choice.wanted.count if found is None else len(found)
                    self.wanted[key] = SizedChoice(choice, self.numbers[key], count, found)
                least += min(self.wanted[key].count for key in keys)
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
            for device, one in enumerate(pool.devices):
                if self.taken.may_have(key, choice, self.numbers[key], (at, device), one):
                    found.append((at, device))
        return found

    def place(self, number, index, which, got, start):
        if number >= len(self.claims):
            return DONE
        requests = self.claims[number].requests
        if index >= len(requests):
            after = self.place(number + 1, 0, None, 0, (0, 0))
            return NOT if after == TOO_MANY else after
        if which is None and requests[index].is_list:
            return self.place_one_of(number, index, len(requests[index].choices))
        return self.place_device((number, index, which or 0), got, start)

    def place_one_of(self, number, index, choices):
        said = []
        for one in range(choices):
            said.append(self.place(number, index, one, 0, (0, 0)))
            if said[-1] == DONE:
                return DONE
        return TOO_MANY if set(said) == {TOO_MANY} else NOT

    def place_device(self, key, got, start):
        number, index, _ = key
        wanted = self.wanted[key]
        if wanted.everything == []:
            return NOT
        if got >= wanted.count:
            return self.place(number, index + 1, None, 0, (0, 0))
        if len(self.taken.picks[number]) + wanted.count - got > policy.DEVICES_PER_CLAIM_MAX:
            return TOO_MANY
        if wanted.everything is not None:
            return self.with_device(key, wanted, got, wanted.everything[got])
        for at in range(start[0], len(self.kind)):
            if self.kind[at].state is not PoolState.GOOD:
                continue
            first = start[1] if at == start[0] else 0
            for device in range(first, len(self.kind[at].devices)):
                outcome = self.with_device(key, wanted, got, (at, device))
                if outcome != NOT:
                    return outcome
        return NOT

    def with_device(self, key, wanted, got, place):
        number, index, which = key
        one = self.kind[place[0]].devices[place[1]]
        if not self.taken.take(key, wanted, place, one):
            return NOT
        outcome = self.place(number, index, which, got + 1, (place[0], place[1] + 1))
        if outcome != DONE:
            self.taken.give_back()
        return outcome
