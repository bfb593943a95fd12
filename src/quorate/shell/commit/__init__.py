"""Carry out plans: binds and evictions; their outcomes return to the core as changes."""
