"""What the tests of both distributions may use: one profile of Hypothesis, and ``--cluster``."""

import contextlib
import gc
import os
import signal
import warnings
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from tests.property.seeds import SEED, times

hypothesis.settings.register_profile(
    "quorate",
    max_examples=times(500),
    deadline=None,  # no test measures time
    derandomize=False,  # the seed of the run decides, see pytest_configure
    database=None,  # what failed in an earlier run is not drawn again by itself
    print_blob=True,
)
hypothesis.settings.load_profile("quorate")
# It also draws constants of all modules that are loaded: which ones depends on the tests before.
providers._get_local_constants = lambda: providers._local_constants
_OPEN = pytest.StashKey[set[tuple[int, int]]]()
# Who started pytest may ignore Ctrl-C (a script does, with "&"); what tests start must hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the caller name the cluster."""
    parser.addoption(
        "--cluster",
        choices=["real", "embedded"],
        default=None,
        help="a real control plane (tests/e2e by itself), or the embedded one (the clients' tests "
        "by themselves)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let the seed of the run decide what hypothesis draws, so that a run can be had again."""
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = SEED


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests from the last to the first where ``QUORATE_ORDER`` says so: any order does."""
    if os.environ.get("QUORATE_ORDER") == "reversed":
        items.reverse()


def pytest_collection_finish() -> None:
    """Make collections cheap: what is there now is not looked through again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail the test that left something open, and not the one in which memory is collected."""
    yield
    known = item.config.stash.get(_OPEN, set())
    item.config.stash[_OPEN] = _open_files()
    if item.config.stash[_OPEN] <= known:
        return
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
    item.config.stash[_OPEN] = _open_files()
    if left:
        pytest.fail("\n".join(f"left open: {one.message}" for one in left), pytrace=False)


def _open_files() -> set[tuple[int, int]]:
    """Return this process's descriptors, each with the number of what it stands for."""
    found = set()
    for one in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):  # closed meanwhile, as the list's own is
            found.add((one, os.fstat(one).st_ino))
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say the seed of the run, also when all is well."""
    terminalreporter.write_line(f"QUORATE_SEED={SEED} draws the same again")
