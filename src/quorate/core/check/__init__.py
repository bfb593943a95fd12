"""Checks plans, bindings and invariants a second time, by code independent of the planner."""
