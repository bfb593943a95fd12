"""Where a whole gang goes: every member that it needs, or none."""
