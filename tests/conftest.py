"""What every test may use. In CI nothing is skipped: what is missing there is a failure."""

import os

import hypothesis
import pytest

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


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def skip_or_fail(why: str) -> None:
    """Skip with a plain message on a developer's machine; fail in CI."""
    if in_ci():
        pytest.fail(f"{why} (in CI nothing is skipped)", pytrace=False)
    pytest.skip(why)
