"""What every test of quorate may use. In CI nothing is skipped: what is missing is a failure."""

from tools.testing import in_ci, skip_or_fail

__all__ = ["in_ci", "skip_or_fail"]
