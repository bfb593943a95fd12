"""What every test may use. In CI nothing is skipped: what is missing there is a failure."""

import os

import pytest


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def skip_or_fail(why: str) -> None:
    """Skip with a plain message on a developer's machine; fail in CI."""
    if in_ci():
        pytest.fail(f"{why} (in CI nothing is skipped)", pytrace=False)
    pytest.skip(why)
