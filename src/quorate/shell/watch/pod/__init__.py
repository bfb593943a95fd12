"""A pod's JSON to a value of the core."""
