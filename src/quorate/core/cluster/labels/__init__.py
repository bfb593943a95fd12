"""Counts of pods by labels, as columns for spread and affinity."""
