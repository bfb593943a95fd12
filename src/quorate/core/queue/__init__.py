"""Which gang comes next, and what wakes it."""
