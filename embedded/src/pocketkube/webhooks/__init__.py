"""Admission webhooks: programs outside, asked before a write, that may change or refuse it."""
