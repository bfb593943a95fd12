"""JSON, merge, strategic-merge and apply patches: pure functions over plain dictionaries."""
