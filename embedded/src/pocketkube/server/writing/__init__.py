"""Requests that write: their bodies, what is written, and what lies below one object."""
