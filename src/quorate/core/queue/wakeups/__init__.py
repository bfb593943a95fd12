"""Gangs that did not fit, by what they need."""
