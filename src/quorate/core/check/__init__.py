"""Says things a second time, by code of its own: plans, bindings and invariants."""
