"""Waiting of tests: for a condition, within a limit that only a hang reaches."""

import pytest

from tools.testing import wait_for


def test_what_comes_in_time_is_given():
    assert wait_for(iter([0, "", "here"]).__next__, "it comes") == "here"


def test_what_does_not_come_is_named_with_its_last_value():
    with pytest.raises(AssertionError, match="after 0 s still not true: it comes; last: 0"):
        wait_for(lambda: 0, "it comes", timeout_s=0.0)
