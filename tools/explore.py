"""``make explore``: fresh chance and long runs, until the time is over. Nothing waits for it.

In: minutes, and what to explore. Out: a line for each run, and in ``tests/finds.toml`` an entry
for each that failed: when, the seed, the command that plays it again, what it said. Who mends a
find moves its seed to ``tests/property/kept_seeds.toml``, or writes a test of its own.
"""

import argparse
import datetime
import json
import random
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path

from tools.signals import heeding_signals, stop_if_asked
from tools.stages import Running, Stage, stop

FINDS = Path(__file__).parent.parent / "tests" / "finds.toml"
_PYTEST = ("-m", "pytest", "-q", "--timeout", "1800")
_CLUSTERS = (*_PYTEST, "-n2", "--dist", "loadfile")
KINDS = {
    "simulation": ("-m", "simulate", "--soak", "300", "--seed", "{seed}"),
    "worlds": ("-m", "tests.property.worlds", "--worlds", "1000", "--seed", "{seed}"),
    "properties": (*_PYTEST, "-n2", "tests/property", "tests/unit/core", "tests/unit/lint"),
    "long": (*_PYTEST, "-n2", "-m", "explore", "tests/unit", "tests/property", "tests/simulation"),
    "embedded": (*_CLUSTERS, "tests/e2e", "--cluster=embedded", "-m", "explore"),
    "real": (*_CLUSTERS, "tests/e2e", "--cluster=real"),
    "hostile": (*_PYTEST, "-n0", "tests/hostile"),
    "clients": (*_CLUSTERS, "-m", "explore", "tests/up", "tests/chart", "tests/image"),
    "parity": ("-m", "tools.parity", "20000", "{seed}"),
    "differential": ("-m", "embedded.tests.differential.explore", "3000"),
}
"""What a run of each kind is: arguments of Python. Nothing is drawn but from ``QUORATE_SEED``."""
TURN_S = 600.0
"""What one kind may take before the next has its turn."""
_FIND = re.compile(r"FAILED |ERROR |seed \d+:|world \d+ \(")
"""How a line begins that tells of a find: of pytest, the simulation and parity, the worlds."""


def explore(kind: str, seed: int, limit_s: float) -> str:
    """Run one kind; keep what fails, also of a run that is cut off. Return how it went."""
    arguments = [part.format(seed=seed) for part in KINDS[kind]]
    stage, end_s = Stage(kind, (sys.executable, *arguments)), time.monotonic() + limit_s
    with tempfile.TemporaryDirectory(prefix="quorate-explore-") as folder:
        one = Running(stage, Path(folder), chance_of(seed))
        try:
            while (code := one.process.poll()) is None and time.monotonic() < end_s:
                stop_if_asked()
                time.sleep(0.1)
        finally:
            stop([one])
        said = one.output()
    if finds := finds_in(said, code):
        print(said[-4000:], flush=True)
        keep(kind, seed, arguments, finds)
        return f"kept in {FINDS.name}"
    return "nothing found" if code == 0 else "nothing found when its time was over"


def chance_of(seed: int) -> dict[str, str]:
    """Return what a run is drawn from, as environment; every other seed reverses the tests."""
    order = "reversed" if seed % 2 else "written"
    return {"QUORATE_SEED": str(seed), "QUORATE_TIMES": "1", "QUORATE_ORDER": order}


def finds_in(said: str, code: int | None) -> list[str]:
    """Return the lines that tell of finds; of a run that failed without any, its last ones.

    ``code`` is the exit code of what printed ``said``; None: it was cut off.
    """
    found = [line for line in said.splitlines() if _FIND.match(line)]
    if found or not code:
        return found[:10]
    return said.strip().splitlines()[-5:] or [f"exit code {code}, without a word"]


def keep(kind: str, seed: int, arguments: list[str], lines: list[str]) -> None:
    """Write a find to the file."""
    text = "\n".join(line[:300] for line in lines).replace("'''", '"""')
    today = datetime.datetime.now(tz=datetime.UTC).date()
    drawn = " ".join(f"{name}={value}" for name, value in chance_of(seed).items())
    again = f"{drawn} .venv/bin/python {shlex.join(arguments)}"
    with FINDS.open("a") as file:
        file.write(f"\n[[find]]\nkind = '{kind}'\ndate = {today}\nseed = {seed}\n")
        file.write(f"again = {json.dumps(again)}\nsaid = '''\n{text}\n'''\n")


def main() -> int:
    """Explore until the time is over; return 0: finds are data, no failure of the run."""
    parser = argparse.ArgumentParser(prog="make explore", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--of", choices=KINDS, help="only this (all in turn)")
    options = parser.parse_args()
    chance, found = random.SystemRandom(), 0
    kinds = [options.of] if options.of else list(KINDS)
    chance.shuffle(kinds)
    end_s = time.monotonic() + 60 * options.minutes
    turn = 0
    while (left_s := end_s - time.monotonic()) > 1:
        kind, seed = kinds[turn % len(kinds)], chance.randrange(2**32)
        turn += 1
        print(f"{kind}, seed {seed} ...", flush=True)
        began_s = time.monotonic()
        how = explore(kind, seed, min(left_s, TURN_S))
        found += how.startswith("kept")
        print(f"{kind}, seed {seed}: {how} ({time.monotonic() - began_s:.0f} s)", flush=True)
    print(f"{turn} runs, {found} finds{f': see {FINDS}' if found else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(heeding_signals(main))
