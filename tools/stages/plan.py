"""The stages of ``make test``: what each runs, what it waits for, how many cores it keeps busy."""

import sys
from typing import NamedTuple


class Stage(NamedTuple):
    """One command of the run."""

    name: str
    command: tuple[str, ...]
    load: float = 1.0
    """How many cores it keeps busy while it runs, on average; stages that wait have little."""
    after: tuple[str, ...] = ()
    """Stages that must have passed before it begins."""


def _python(name: str, module: str, *arguments: str, **more: object) -> Stage:
    return Stage(name, (sys.executable, "-m", module, *arguments), **more)  # type: ignore[arg-type]


def _tests(name: str, *arguments: str, **more: object) -> Stage:
    return _python(name, "pytest", "-q", *arguments, **more)


def stages() -> list[Stage]:
    """Return all stages; of those that can begin and fit, the first one begins first.

    The longest come first. Those that compute have a process for each of two cores, and fill what
    the tests on clusters leave while they wait: a test on a real one keeps a third of a core busy.
    ``hostile`` compares times with and without an attack, so it has little company.
    """
    real, oracle = ("build-controlplane",), ("build-oracle",)
    by_file = ("--dist", "loadfile")
    stealing = ("-n2", "--dist", "worksteal")  # long tests come last: they are shared out again
    embedded_unit = ("embedded/tests/unit", "embedded/tests/test_own.py")
    clients = ("embedded/tests/clients", "tests/clients", "tests/up")
    return [
        _tests("e2e-real", "-n3", *by_file, "tests/e2e", "--cluster=real", after=real),
        _python("build-controlplane", "tools.controlplane", "build", "--if-possible"),
        Stage("check", ("make", "--no-print-directory", "check")),
        Stage("docs", ("make", "--no-print-directory", "docs")),
        _tests("unit", *stealing, "tests/unit", "tests/property", *embedded_unit),
        _tests("simulation", *stealing, "tests/simulation"),
        _tests("clients", "-n2", *by_file, *clients, after=real),
        _python("build-oracle", "tools.oracle", "build", "--tables", "--if-possible", after=real),
        _python(
            "build-tools",
            "tools.controlplane",
            *("build", "--tools", "--if-possible"),
            after=("build-oracle",),
        ),
        _tests("chart", "-n0", "tests/chart", after=("build-controlplane", "build-tools")),
        _tests("image", "-n0", "tests/image", after=("build-tools",)),
        _tests("e2e-embedded", "-n2", "tests/e2e", "--cluster=embedded", after=real),
        _tests("parity", *stealing, "tests/oracle", "tests/parity", after=oracle),
        _tests("hostile", "-n0", "tests/hostile", load=1.5, after=real),
        _tests("differential", "-n0", "embedded/tests/differential", after=real),
    ]
