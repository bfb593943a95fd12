"""Decodes a pod's JSON into a value of the core."""
