"""What every test may use. In CI nothing is skipped: what is missing there is a failure."""

import os

import hypothesis
import pytest

from tests.property.seeds import SEED

hypothesis.settings.register_profile(
    "quorate",
    deadline=None,  # no test measures time
    derandomize=False,  # in CI too each run draws other examples
    print_blob=True,
)
hypothesis.settings.load_profile("quorate")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        choices=["real", "embedded"],
        default=None,
        help="a real control plane (tests/e2e by itself), or quorate up (tests/clients by itself)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let the seed of the run decide what hypothesis draws, so that a run can be had again."""
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = SEED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say the seed of the run, also when all is well."""
    terminalreporter.write_line(f"QUORATE_SEED={SEED} draws the same again")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def skip_or_fail(why: str) -> None:
    """Skip with a plain message on a developer's machine; fail in CI."""
    if in_ci():
        pytest.fail(f"{why} (in CI nothing is skipped)", pytrace=False)
    pytest.skip(why)
