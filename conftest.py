"""What the tests of both distributions may use: one profile of Hypothesis, and ``--cluster``."""

import signal

import hypothesis
import hypothesis.internal.conjecture.providers as providers
import pytest

from tests.property.seeds import SEED

hypothesis.settings.register_profile(
    "quorate",
    deadline=None,  # no test measures time
    derandomize=False,  # the seed of the run decides, see pytest_configure
    database=None,  # what failed in an earlier run is not drawn again by itself
    print_blob=True,
)
hypothesis.settings.load_profile("quorate")
# It also draws constants of all modules that are loaded: which ones depends on the tests before.
providers._get_local_constants = lambda: providers._local_constants
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say the seed of the run, also when all is well."""
    terminalreporter.write_line(f"QUORATE_SEED={SEED} draws the same again")
