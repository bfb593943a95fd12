"""Checks a run against what was true in the simulated API server."""
