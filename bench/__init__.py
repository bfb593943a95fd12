"""Benchmarks: quorate beside its peers on one real API server, and the core alone.

They run from a checkout and are not part of the installed package: ``python -m bench --help``.
"""
