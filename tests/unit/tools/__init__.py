"""Tests of the tools of this repository."""
