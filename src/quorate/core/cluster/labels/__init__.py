"""Counts of pods by labels: columns for spread and affinity, and a ledger for verification."""
