"""Which gang is next, and which wait for what."""
