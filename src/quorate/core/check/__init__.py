"""Checks plans a second time before they are sent, by code independent of the planner."""
