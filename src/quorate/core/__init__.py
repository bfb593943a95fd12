"""The pure core: changes in, plans out. No I/O, clock, chance or log (import-linter holds this)."""
