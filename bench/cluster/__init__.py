"""Benchmarks on a real API server: cases, loads, runs and their tables."""
