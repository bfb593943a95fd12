"""Look for differences at length: ``python -m embedded.tests.differential.explore --help``.

Nothing stops at the first difference: all are counted by kind, request and place, and each is shown
with its shortest example.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings

from embedded.tests.differential.accepted.differences import ends, unexplained
from embedded.tests.differential.asking import Request, Server
from embedded.tests.differential.kinds import KINDS
from embedded.tests.differential.playing import Exchange, play
from embedded.tests.differential.sequences import sequences
from embedded.tests.differential.starting import both

_WIDTH = 400


class Found:
    """Differences by signature, with the shortest sequence that showed each."""

    def __init__(self, *, with_advice: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.shortest: dict[str, list[Exchange]] = {}
        self.sequences = self.requests = 0
        self._with_advice = with_advice

    def play(self, real: Server, embedded: Server, steps: Sequence[Request]) -> None:
        """Play a sequence up to its first difference."""
        self.sequences += 1
        done: list[Exchange] = []
        for exchange in play(real, embedded, steps):
            self.requests += 1
            done.append(exchange)
            diffs = unexplained(exchange)
            if not diffs and self._with_advice:
                for diff in exchange.advice:
                    self._note(f"{_about(exchange)} {diff.place} {_short(diff.real)}", done)
            if not diffs and ends(exchange):
                return
            if diffs:
                places = " ".join(sorted({_shape(exchange, diff.place) for diff in diffs})[:3])
                self._note(f"{_about(exchange)} {places}", done)
                return

    def _note(self, signature: str, done: list[Exchange]) -> None:
        self.counts[signature] += 1
        known = self.shortest.get(signature)
        if known is None or len(done) < len(known):
            self.shortest[signature] = list(done)

    def __str__(self) -> str:
        lines = []
        for signature, count in self.counts.most_common():
            lines.append(f"\n== {count} x {signature}")
            *before, last = self.shortest[signature]
            lines += [f"  after {exchange.sent[0]}"[:_WIDTH] for exchange in before[-4:]]
            lines += [f"  {last.sent[0]}"[: 2 * _WIDTH]]
            lines += [f"    {line}"[: 2 * _WIDTH] for line in map(str, unexplained(last)[:5])]
            lines += [f"  advice {diff}" for diff in last.advice[:1] if self._with_advice]
        lines.append(
            f"\n{self.sequences} sequences, {self.requests} requests, "
            f"{len(self.counts)} kinds of differences"
        )
        return "\n".join(lines)


def _about(exchange: Exchange) -> str:
    step = exchange.step
    tail = step.path.rpartition("/")[2]
    subresource = tail if tail in _SUBRESOURCES else ""
    patch = step.content_type.partition("/")[2] if step.method == "PATCH" else ""
    return " ".join(filter(None, (step.method, subresource, patch)))


_SUBRESOURCES = {sub for kind in KINDS.values() for sub in (*kind.more, "nothing", "log")}
_QUOTED = re.compile(r"(\S*\.)?\S+ \"[^\"]*\"|\([^)]*\)|\S+\.\S+")


def _shape(exchange: Exchange, place: str) -> str:
    real, embedded = exchange.real, exchange.embedded
    if place == "code":
        messages = [a.body.get("message", "") if isinstance(a.body, dict) and a.is_error else ""
                    for a in (real, embedded)]  # fmt: skip
        texts = [_QUOTED.sub("..", message)[:70] for message in messages]
        return f"{real.code} {texts[0]} | {embedded.code} {texts[1]}"
    return f"{place} {real.code}"


def _short(value: object) -> str:
    return str(value)[:50]


def main() -> int:
    """Play sequences for a number of examples, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", type=int, help="how many sequences")
    parser.add_argument("--seed", type=int, default=int(time.monotonic_ns() % 10**9))
    parser.add_argument("--kinds", default="", help="only these, with commas between")
    parser.add_argument("--advice", action="store_true", help="messages and warnings too")
    options = parser.parse_args()
    found = Found(with_advice=options.advice)
    plurals = tuple(filter(None, options.kinds.split(",")))
    with both() as (real, embedded):

        @seed(options.seed)
        @settings(
            max_examples=options.examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(sequences(plurals))
        def explore(steps: list[Request]) -> None:
            found.play(real, embedded, steps)

        explore()
    print(found)
    print(f"seed {options.seed}")
    return 1 if found.counts else 0


if __name__ == "__main__":
    sys.exit(main())
