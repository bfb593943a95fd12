"""Cases of ``bench.core_bench``: the core without I/O."""
